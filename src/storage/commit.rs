//! Turns the writes of a decision into the statements of one commit.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Error;

use crate::base::limits::TooLarge;
use crate::base::text::to_json;
use crate::run::{Run, TokenStatus, Write, WrittenAt};
use crate::storage::row_ids::RowIds;
use crate::storage::rows::{HeaderRow, InstanceRow, TokenRow, parse_status, status_of};

/// The rows for `schema::SAVE`, and those for `schema::DELETE`.
#[derive(Debug, Default, PartialEq)]
pub struct Commit {
    /// Key and value.
    pub run: Vec<(String, String)>,
    /// Id, status and row.
    pub tokens: Vec<(u64, &'static str, String)>,
    /// Keys.
    pub deleted: Vec<String>,
}

impl Commit {
    pub fn of(writes: &[Write], run_state: &Run) -> Result<Commit, Error> {
        let snapshot = run_state.snapshot();
        let mut commit = Commit::default();
        // The run has forgotten the instances that this decision closed; the rows of their tokens still tell of them.
        let closed: BTreeMap<u64, (&str, u32)> = writes
            .iter()
            .filter_map(|write| {
                let Write::SaveInstance(it) = write else {
                    return None;
                };
                it.is_closed().then_some((it.id.0, (it.group.as_str(), it.total)))
            })
            .collect();
        for write in writes {
            match write {
                Write::SaveSnapshot(text) => commit.run.push(("snapshot".to_string(), text.to_string())),
                Write::SaveInput(input) => commit.save("input".to_string(), &**input)?,
                Write::SaveRun(header) => commit.save(HEADER.to_string(), &HeaderRow::of(header))?,
                Write::SaveContext { key, text } => {
                    commit.run.push((format!("{CONTEXT}{key}"), text.to_string()));
                }
                Write::SaveToken(token) => {
                    let mut own = TokenRow::of(token, run_state);
                    if let Some(branch) = &mut own.branch
                        && let Some((group, total)) = closed.get(&branch.instance)
                    {
                        branch.group = Some((*group).to_string());
                        branch.total = Some(*total);
                    }
                    let mut text = to_json(&own)?;
                    if text.len() > UNDO_APART_FROM_BYTES {
                        for (at, patches) in own.take_undo_apart() {
                            commit.save(undo_key(token.id.0, at), &patches)?;
                        }
                        text = to_json(&own)?;
                    }
                    commit.tokens.push((token.id.0, status_of(token), text));
                }
                Write::SaveInstance(instance) => {
                    let row = InstanceRow::of(instance, snapshot);
                    commit.save(format!("{INSTANCE}{}", instance.id.0), &row)?;
                }
                Write::SaveGate(gate) => commit.save(format!("{GATE}{}", gate.id), gate)?,
                Write::SaveEvent(entry) => commit.save(event_key(entry.seq), entry)?,
                Write::SaveSignals { name, payloads } => commit.save(format!("{SIGNALS}{name}"), payloads)?,
                Write::SaveMessage { id, message } => commit.save(format!("{OUTBOX}{id}"), message)?,
                Write::DeleteContext { key } => commit.deleted.push(format!("{CONTEXT}{key}")),
                Write::DeleteMessage { id } => commit.deleted.push(format!("{OUTBOX}{id}")),
                Write::DeleteFailedWakes => commit.deleted.push(FAILED_WAKES.to_string()),
            }
        }
        Ok(commit)
    }

    /// As `save.mjs` takes it. Rows that are new get their places.
    pub fn parcel(&self, places: &mut RowIds) -> EncodedBatch {
        let mut parcel = EncodedBatch::default();
        for (key, value) in &self.run {
            let place = match key.starts_with(EVENT) {
                true => places.last_of(key),
                false => places.of(key),
            };
            parcel.add_row(place, key, value, "");
        }
        for (id, status, row) in &self.tokens {
            let key = token_key(*id);
            match parse_status(status).is_ok_and(TokenStatus::is_terminal) {
                true => parcel.add_row(places.last_of(&key), &key, row, status),
                false => parcel.add_row(places.of(&key), &key, &format!("{row}{ROOM}"), status),
            }
        }
        for key in &self.deleted {
            if let Some(place) = places.leave(key) {
                parcel.add(&place.to_string());
            }
        }
        parcel
    }

    /// The platform takes no larger row. The engine stays far below it: one that comes here is a bug, and is to fail here as it
    /// would there.
    pub fn check(&self) -> Result<(), TooLarge> {
        for (key, value) in &self.run {
            TooLarge::check(format!("row {key}"), value.len(), PLATFORM_ROW_BYTES)?;
        }
        for (id, _, row) in &self.tokens {
            TooLarge::check(format!("row {}", token_key(*id)), row.len(), PLATFORM_ROW_BYTES)?;
        }
        Ok(())
    }

    fn save(&mut self, key: String, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.run.push((key, to_json(value)?));
        Ok(())
    }
}

/// Rows of tokens that are longer hold no long way back: it would count against what the token itself may hold.
const UNDO_APART_FROM_BYTES: usize = 256 << 10;

/// Cloudflare's limit is two million bytes for a row with all its columns.
const PLATFORM_ROW_BYTES: usize = 1_999_000;

/// Behind a token that has not ended: it will say more, and a row that grows moves its neighbours to other pages.
const ROOM: &str = concat!(
    "                                                                ",
    "                                                                "
);

/// Many texts as one: each that goes into JavaScript on its own costs a crossing.
#[derive(Debug, Default, PartialEq)]
pub struct EncodedBatch {
    /// Place, key, value and status of each row, then the places of those that are to go.
    pub text: String,
    /// Where each part ends, in the units JavaScript counts in.
    pub ends: Vec<u32>,
    pub rows: u32,
}

impl EncodedBatch {
    fn add_row(&mut self, place: u64, key: &str, value: &str, status: &str) {
        self.add(&place.to_string());
        self.add(key);
        self.add(value);
        self.add(status);
        self.rows += 1;
    }

    fn add(&mut self, part: &str) {
        let units = match part.is_ascii() {
            true => part.len(),
            false => part.encode_utf16().count(),
        };
        self.ends
            .push(self.ends.last().copied().unwrap_or(0) + units as u32);
        self.text.push_str(part);
    }
}

pub const HEADER: &str = "header";
/// How often in a row what woke the run could not be saved.
pub const FAILED_WAKES: &str = "failed_wakes";
pub const CONTEXT: &str = "context/";
pub const INSTANCE: &str = "instance/";
pub const GATE: &str = "gate/";
pub const SIGNALS: &str = "signals/";
pub const OUTBOX: &str = "outbox/";

/// Events sort by their keys as by their numbers, so that a range of keys is a range of events.
pub const EVENT: &str = "event/";
/// What comes after every key of an event.
pub const EVENT_END: &str = "event0";

/// The key of event number `seq`.
pub fn event_key(seq: u64) -> String {
    format!("{EVENT}{seq:012}")
}

/// The way back from one of a token's writes, where that is long.
pub const UNDO: &str = "undo/";

pub fn undo_key(token: u64, at: WrittenAt) -> String {
    format!("{UNDO}{token:012}/{}", at.name())
}

pub const TOKEN: &str = "token/";

/// Tokens sort by their keys as by their numbers.
pub fn token_key(id: u64) -> String {
    format!("{TOKEN}{id:012}")
}
