//! Turns the saves among a decision's effects into the statements of one commit.

use serde_json::Value;

use super::rows::{HeaderRow, TokenRow};
use crate::engine::Effect;
use crate::model::snapshot::Snapshot;

/// JSON arrays for `schema::SAVE_RUN` and `schema::SAVE_TOKENS`; `None` where there is nothing to save.
#[derive(Debug, Default, PartialEq)]
pub struct Commit {
    pub run: Option<String>,
    pub tokens: Option<String>,
}

impl Commit {
    pub fn of(effects: &[Effect], snapshot: &Snapshot) -> Result<Commit, serde_json::Error> {
        let mut run = Array::default();
        let mut tokens = Array::default();
        for effect in effects {
            match effect {
                Effect::SaveSnapshot(stored) => {
                    run.push(&["\"snapshot\"", &serde_json::to_string(&**stored)?])
                }
                Effect::SaveInput(input) => run.push(&["\"input\"", &input.to_string()]),
                Effect::SaveRun(header) => {
                    run.push(&["\"header\"", &serde_json::to_string(&HeaderRow::of(header))?]);
                }
                Effect::SaveContext { key, text } => {
                    run.push(&[&Value::from(context_key(key)).to_string(), text])
                }
                Effect::SaveToken(token) => tokens.push(&[
                    &token.id.0.to_string(),
                    &format!("\"{}\"", token.status.name()),
                    &serde_json::to_string(&TokenRow::of(token, snapshot))?,
                ]),
                Effect::SetAlarm(_)
                | Effect::DeleteStorage
                | Effect::Dispatch(_)
                | Effect::Abort { .. }
                | Effect::Announce
                | Effect::RunEnded => {}
            }
        }
        Ok(Commit {
            run: run.finish(),
            tokens: tokens.finish(),
        })
    }
}

const CONTEXT: &str = "context/";

fn context_key(key: &str) -> String {
    format!("{CONTEXT}{key}")
}

/// The context's own name of a key of table `run`, if it is one of the context's.
pub fn context_name(key: &str) -> Option<&str> {
    key.strip_prefix(CONTEXT)
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
