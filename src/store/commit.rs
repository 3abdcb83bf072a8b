//! Turns the saves among a decision's effects into the statements of one commit.

use std::collections::BTreeMap;

use serde_json::Value;

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
    pub fn of(effects: &[Effect], run_state: &Run) -> Result<Commit, serde_json::Error> {
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
                Effect::SaveSnapshot(text) => run.push(&["\"snapshot\"", text]),
                Effect::SaveInput(input) => run.push(&["\"input\"", &input.to_string()]),
                Effect::SaveRun(header) => {
                    run.push(&["\"header\"", &serde_json::to_string(&HeaderRow::of(header))?]);
                }
                Effect::SaveContext { key: name, text } => run.push(&[&key(CONTEXT, name), text]),
                Effect::SaveToken(token) => {
                    let mut row = TokenRow::of(token, run_state);
                    if let Some(branch) = &mut row.branch
                        && let Some((group, total)) = closed.get(&branch.instance)
                    {
                        branch.group = Some((*group).to_string());
                        branch.total = Some(*total);
                    }
                    tokens.push(&[
                        &token.id.0.to_string(),
                        &format!("\"{}\"", token.status.name()),
                        &serde_json::to_string(&row)?,
                    ]);
                }
                Effect::SaveInstance(instance) => run.push(&[
                    &key(INSTANCE, &instance.id.0.to_string()),
                    &serde_json::to_string(&InstanceRow::of(instance, snapshot))?,
                ]),
                Effect::SaveGate(gate) => run.push(&[&key(GATE, &gate.id), &serde_json::to_string(gate)?]),
                Effect::SaveEntry(entry) => {
                    run.push(&[&entry_key(entry.seq), &serde_json::to_string(entry)?]);
                }
                Effect::SaveSignals { name, payloads } => {
                    run.push(&[&key(SIGNALS, name), &serde_json::to_string(payloads)?]);
                }
                Effect::SaveMessage { id, message } => {
                    run.push(&[&key(OUTBOX, &id.to_string()), &serde_json::to_string(message)?]);
                }
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
            run: run.finish(),
            tokens: tokens.finish(),
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

fn entry_key(seq: u64) -> String {
    Value::from(event_key(seq)).to_string()
}

/// A key of table `run`, as JSON.
fn key(prefix: &str, name: &str) -> String {
    Value::from(format!("{prefix}{name}")).to_string()
}

/// A JSON array of arrays, put together from parts that are JSON already.
#[derive(Default)]
struct Array(String);

impl Array {
    fn push(&mut self, parts: &[&str]) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push('[');
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(part);
        }
        self.0.push(']');
    }

    fn finish(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(']');
        Some(self.0)
    }
}
