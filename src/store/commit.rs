//! Turns the saves among a decision's effects into the statements of one commit.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Error;

use super::rows::{HeaderRow, InstanceRow, TokenRow};
use crate::engine::{Effect, Run};

/// JSON arrays for `schema::SAVE_RUN`, `schema::SAVE_TOKENS` and `schema::DELETE_RUN`; `None` where there is nothing to do.
#[derive(Debug, Default, PartialEq)]
pub struct Commit {
    pub run: Option<String>,
    pub tokens: Option<String>,
    pub deleted: Option<String>,
}

impl Commit {
    pub fn of(effects: &[Effect], run_state: &Run) -> Result<Commit, Error> {
        let snapshot = run_state.snapshot();
        let mut deleted: Vec<String> = Vec::new();
        let mut run = Array::default();
        let mut tokens = Array::default();
        // The run has forgotten the instances that this decision closed; the rows of their tokens still tell of them.
        let closed: BTreeMap<u64, (&str, u32)> = effects
            .iter()
            .filter_map(|effect| {
                let Effect::SaveInstance(it) = effect else {
                    return None;
                };
                it.closed.then_some((it.id.0, (it.group.as_str(), it.total)))
            })
            .collect();
        for effect in effects {
            match effect {
                Effect::SaveSnapshot(text) => run.row(|row| row.text("\"snapshot\"")?.text(text))?,
                Effect::SaveInput(input) => run.row(|row| row.text("\"input\"")?.value(&**input))?,
                Effect::SaveRun(header) => {
                    run.row(|row| row.text("\"header\"")?.value(&HeaderRow::of(header)))?;
                }
                Effect::SaveContext { key, text } => run.row(|row| row.key(CONTEXT, key)?.text(text))?,
                Effect::SaveToken(token) => {
                    let mut own = TokenRow::of(token, run_state);
                    if let Some(branch) = &mut own.branch
                        && let Some((group, total)) = closed.get(&branch.instance)
                    {
                        branch.group = Some((*group).to_string());
                        branch.total = Some(*total);
                    }
                    tokens.row(|row| row.value(&token.id.0)?.value(token.status.name())?.value(&own))?;
                }
                Effect::SaveInstance(instance) => run.row(|row| {
                    row.key(INSTANCE, &instance.id.0)?
                        .value(&InstanceRow::of(instance, snapshot))
                })?,
                Effect::SaveGate(gate) => run.row(|row| row.key(GATE, &gate.id)?.value(gate))?,
                Effect::SaveEntry(entry) => run.row(|row| row.value(&event_key(entry.seq))?.value(entry))?,
                Effect::SaveSignals { name, payloads } => {
                    run.row(|row| row.key(SIGNALS, name)?.value(payloads))?;
                }
                Effect::SaveMessage { id, message } => run.row(|row| row.key(OUTBOX, id)?.value(message))?,
                Effect::DeleteContext { key } => deleted.push(format!("{CONTEXT}{key}")),
                Effect::DeleteMessage { id } => deleted.push(format!("{OUTBOX}{id}")),
                Effect::SetAlarm(_)
                | Effect::DeleteStorage
                | Effect::Deliver { .. }
                | Effect::AnnounceGate(_)
                | Effect::AnnounceLatency { .. }
                | Effect::Dispatch(_)
                | Effect::Enqueue { .. }
                | Effect::Hand(_)
                | Effect::Abort { .. }
                | Effect::Announce
                | Effect::RunEnded => {}
            }
        }
        Ok(Commit {
            run: run.finish()?,
            tokens: tokens.finish()?,
            deleted: match deleted.is_empty() {
                true => None,
                false => Some(serde_json::to_string(&deleted)?),
            },
        })
    }
}

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

/// A JSON array of arrays, written in one go: most decisions are no more than this.
#[derive(Default)]
struct Array(Vec<u8>);

type Written<'a> = Result<&'a mut Array, Error>;

impl Array {
    /// What a node on a chain takes.
    const USUAL: usize = 1024;

    fn row(&mut self, fill: impl FnOnce(&mut Array) -> Written<'_>) -> Result<(), Error> {
        match self.0.is_empty() {
            true => {
                self.0.reserve(Self::USUAL);
                self.0.push(b'[');
            }
            false => self.0.push(b','),
        }
        self.0.push(b'[');
        fill(self)?;
        self.0.push(b']');
        Ok(())
    }

    fn separate(&mut self) {
        if self.0.last() != Some(&b'[') {
            self.0.push(b',');
        }
    }

    /// What is JSON already.
    fn text(&mut self, text: &str) -> Written<'_> {
        self.separate();
        self.0.extend_from_slice(text.as_bytes());
        Ok(self)
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Written<'_> {
        self.separate();
        serde_json::to_writer(&mut self.0, value)?;
        Ok(self)
    }

    /// A key of table `run`.
    fn key(&mut self, prefix: &str, name: &impl Display) -> Written<'_> {
        self.value(&Key(prefix, name))
    }

    fn finish(mut self) -> Result<Option<String>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        self.0.push(b']');
        // Text was put in, and what serde_json writes is text.
        String::from_utf8(self.0).map(Some).map_err(Error::custom)
    }
}

struct Key<'a, T>(&'a str, &'a T);

impl<T: Display> Serialize for Key<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{}", self.0, self.1))
    }
}
