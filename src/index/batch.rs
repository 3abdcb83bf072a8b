//! Messages of the index queue. Several updates share a message, because the platform bills messages and not bytes. Updates
//! that this build cannot read are counted and skipped: a newer build may have written them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::index::run_summary::RunSummary;
use crate::run::Run;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum IndexUpdate {
    Run(RunSummary),
    Gate {
        gate: Value,
    },
    Removed {
        removed: RemovedRun,
    },
    Latency {
        latency: Value,
    },
    Breaker {
        breaker: Value,
        revision: u64,
    },
    /// No update: the consumer does the next pages of a bulk operation.
    Operation {
        operation: String,
    },
}

/// The message that has a bulk operation continued.
pub fn operation_message(id: &str) -> String {
    json!({"operation": id}).to_string()
}

/// An ended run that its object has deleted. Runs and gates with this id that started later belong to another run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovedRun {
    pub run_id: String,
    pub ended_at: Millis,
    /// Of the run when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Box<RunSummary>>,
}

impl RemovedRun {
    pub fn of(run: &Run, last: RunSummary) -> RemovedRun {
        let header = &run.header;
        RemovedRun {
            run_id: header.id.clone(),
            // Only ended runs are removed. The start is the safe fallback: it removes no row of a later run.
            ended_at: header.ended_at.unwrap_or(header.started_at),
            last: Some(Box::new(last)),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IndexMessage {
    Several(Vec<Value>),
    One(Value),
}

#[derive(Debug, PartialEq)]
pub struct DecodedMessage {
    pub updates: Vec<IndexUpdate>,
    /// Updates of no known kind.
    pub unreadable: usize,
}

pub fn decode(message: &str) -> serde_json::Result<DecodedMessage> {
    let values = match from_json(message)? {
        IndexMessage::Several(values) => values,
        IndexMessage::One(value) => vec![value],
    };
    let count = values.len();
    let updates: Vec<IndexUpdate> = values
        .into_iter()
        .filter_map(|value| serde_json::from_value(value).ok())
        .collect();
    Ok(DecodedMessage {
        unreadable: count - updates.len(),
        updates,
    })
}

/// The platform accepts 128 KB. A single update is always smaller: see `index_view`.
pub const MESSAGE_BYTES: usize = 100_000;

/// The text of a message, and a subject for each update in it.
#[derive(Debug, PartialEq)]
pub struct Message<Subject> {
    pub text: String,
    pub subjects: Vec<Subject>,
}

/// Packs updates, as JSON, into messages. A single update is sent as it is, several as an array.
pub fn pack<Subject>(updates: Vec<(Subject, String)>) -> Vec<Message<Subject>> {
    let mut messages: Vec<(Vec<Subject>, Vec<String>)> = Vec::new();
    let mut free_bytes = 0;
    for (subject, update) in updates {
        match messages.last_mut() {
            Some((subjects, updates)) if update.len() < free_bytes => {
                free_bytes -= update.len() + 1;
                subjects.push(subject);
                updates.push(update);
            }
            Some(_) | None => {
                free_bytes = MESSAGE_BYTES.saturating_sub(update.len());
                messages.push((vec![subject], vec![update]));
            }
        }
    }
    let messages = messages.into_iter().map(|(subjects, updates)| Message {
        subjects,
        text: match updates.as_slice() {
            [single] => single.clone(),
            several => format!("[{}]", several.join(",")),
        },
    });
    messages.collect()
}
