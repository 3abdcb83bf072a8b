//! Turns the writes of a decision into the rows of one commit, and encodes them for JavaScript. Also owns the keys of rows.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Error;

use crate::base::limits::TooLarge;
use crate::base::ordered::map_of;
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
        let mut commit = Commit::default();
        // The run has dropped the instances that this decision closed, but the rows of their tokens repeat group and total.
        let closed: BTreeMap<u64, (&str, u32)> = map_of(writes.iter().filter_map(|write| {
            let Write::SaveInstance(instance) = write else {
                return None;
            };
            let group_and_total = (instance.group.as_str(), instance.total);
            instance.is_closed().then_some((instance.id.0, group_and_total))
        }));
        for write in writes {
            match write {
                Write::SaveSnapshot(text) => commit.run.push(("snapshot".to_string(), text.to_string())),
                Write::SaveInput(input) => commit.save("input".to_string(), &**input)?,
                Write::SaveRun(header) => commit.save(HEADER.to_string(), &HeaderRow::of(header))?,
                Write::SaveContext { key, text } => {
                    commit.run.push((format!("{CONTEXT}{key}"), text.to_string()));
                }
                Write::SaveToken(token) => {
                    let mut row = TokenRow::of(token, run_state);
                    if let Some(branch) = &mut row.branch
                        && let Some((group, total)) = closed.get(&branch.instance)
                    {
                        branch.group = Some((*group).to_string());
                        branch.total = Some(*total);
                    }
                    let mut text = to_json(&row)?;
                    if text.len() > SEPARATE_UNDO_FROM_BYTES {
                        for (at, patches) in row.take_large_undo() {
                            commit.save(undo_key(token.id.0, at), &patches)?;
                        }
                        text = to_json(&row)?;
                    }
                    commit.tokens.push((token.id.0, status_of(token), text));
                }
                Write::SaveInstance(instance) => {
                    let row = InstanceRow::of(instance, run_state.snapshot_of_instance(instance.id));
                    commit.save(format!("{INSTANCE}{}", instance.id.0), &row)?;
                }
                Write::SaveGate(gate) => commit.save(format!("{GATE}{}", gate.id), gate)?,
                Write::SaveEvent(entry) => commit.save(event_key(entry.seq), entry)?,
                Write::SaveSignals { name, payloads } => commit.save(format!("{SIGNALS}{name}"), payloads)?,
                Write::SaveMessage { id, message } => commit.save(format!("{OUTBOX}{id}"), message)?,
                Write::SaveNotification(notification) => {
                    commit.save(notification_key(notification.number), notification)?;
                }
                Write::DeleteNotification { number } => commit.deleted.push(notification_key(*number)),
                Write::DeleteContext { key } => commit.deleted.push(format!("{CONTEXT}{key}")),
                Write::DeleteMessage { id } => commit.deleted.push(format!("{OUTBOX}{id}")),
                Write::DeleteFailedWakes => commit.deleted.push(FAILED_WAKES.to_string()),
            }
        }
        Ok(commit)
    }

    /// Encodes the commit for `save.mjs` and assigns ids to new rows.
    pub fn encode(&self, row_ids: &mut RowIds) -> EncodedBatch {
        let mut batch = EncodedBatch::default();
        for (key, value) in &self.run {
            let row_id = match key.starts_with(EVENT) {
                true => row_ids.final_id_of(key),
                false => row_ids.id_of(key),
            };
            batch.add_row(row_id, key, value, "");
        }
        for (id, status, row) in &self.tokens {
            let key = token_key(*id);
            match parse_status(status).is_ok_and(TokenStatus::is_terminal) {
                true => batch.add_row(row_ids.final_id_of(&key), &key, row, status),
                false => batch.add_row(row_ids.id_of(&key), &key, &format!("{row}{PADDING}"), status),
            }
        }
        for key in &self.deleted {
            // A row that was never saved has no id, and nothing to delete.
            if let Some(row_id) = row_ids.release(key) {
                batch.add(&row_id.to_string());
            }
        }
        batch
    }

    /// The run limits all values far below the platform's limit. A row that exceeds it is a bug, and fails here with its key.
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

/// Token rows above this size store large undo patches in rows of their own, so that they do not count against the limit of the
/// token.
const SEPARATE_UNDO_FROM_BYTES: usize = 256 << 10;

/// Cloudflare's limit is two million bytes for a row with all its columns.
const PLATFORM_ROW_BYTES: usize = 1_999_000;

/// Appended to the row of a token that has not ended: the row will grow, and growth beyond its space moves neighbouring rows to
/// other pages.
const PADDING: &str = concat!(
    "                                                                ",
    "                                                                "
);

/// All texts of a commit as one string: each string that is passed to JavaScript has a fixed cost.
#[derive(Debug, Default, PartialEq)]
pub struct EncodedBatch {
    /// Row id, key, value and status of each row, then the ids of the rows to delete.
    pub text: String,
    /// Where each part ends, in UTF-16 code units.
    pub ends: Vec<u32>,
    pub rows: u32,
}

impl EncodedBatch {
    fn add_row(&mut self, row_id: u64, key: &str, value: &str, status: &str) {
        self.add(&row_id.to_string());
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
/// How many wakes in a row could not be saved.
pub const FAILED_WAKES: &str = "failed_wakes";
pub const CONTEXT: &str = "context/";
pub const INSTANCE: &str = "instance/";
pub const GATE: &str = "gate/";
pub const SIGNALS: &str = "signals/";
pub const OUTBOX: &str = "outbox/";

/// Keys of notifications sort by number.
pub const NOTIFICATION: &str = "notification/";

pub fn notification_key(number: u64) -> String {
    format!("{NOTIFICATION}{number:012}")
}

/// Keys of events sort by number, so that a range of keys is a range of events.
pub const EVENT: &str = "event/";
/// Sorts after all keys of events.
pub const EVENT_END: &str = "event0";

pub fn event_key(seq: u64) -> String {
    format!("{EVENT}{seq:012}")
}

/// Large undo patches of a token.
pub const UNDO: &str = "undo/";

pub fn undo_key(token: u64, at: WrittenAt) -> String {
    format!("{UNDO}{token:012}/{}", at.name())
}

pub const TOKEN: &str = "token/";

/// Keys of tokens sort by id.
pub fn token_key(id: u64) -> String {
    format!("{TOKEN}{id:012}")
}
