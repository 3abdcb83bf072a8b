//! Events that stand on the rows of tokens, gates, instances and the run.

use serde::Deserialize;

use crate::run::{RowEvent, TokenId};
use crate::storage::commit::{GATE, HEADER, INSTANCE, TOKEN};

/// An event with the part of its row that its view needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRowEvent {
    /// The key of the row.
    pub key: String,
    pub node_id: Option<String>,
    /// Of a gate.
    pub token_id: Option<String>,
    pub event: RowEvent,
}

/// What an event happened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    Run,
    Token(TokenId),
    Gate(String),
    Instance(u64),
}

impl ListedRowEvent {
    /// An error means that the row is none of those that have events: a bug.
    pub fn subject(&self) -> Result<EventSubject, String> {
        let unknown = || format!("row {} has no events", self.key);
        if self.key == HEADER {
            return Ok(EventSubject::Run);
        }
        if let Some(id) = self.key.strip_prefix(GATE) {
            return Ok(EventSubject::Gate(id.to_string()));
        }
        if let Some(number) = self.key.strip_prefix(INSTANCE) {
            return number.parse().map(EventSubject::Instance).map_err(|_| unknown());
        }
        let number = self.key.strip_prefix(TOKEN).ok_or_else(unknown)?;
        let number = number.parse().map_err(|_| unknown())?;
        Ok(EventSubject::Token(TokenId(number)))
    }
}

/// The parts of any row that `schema::LIST_ROW_EVENTS` reads.
#[derive(Deserialize)]
struct RowWithEvents {
    #[serde(default)]
    node_id: Option<String>,
    #[serde(default)]
    token_id: Option<String>,
    #[serde(default)]
    events: Vec<RowEvent>,
}

/// The events of one row, for stores that are not SQLite.
pub fn events_of(key: &str, row: &str) -> Result<Vec<ListedRowEvent>, String> {
    let row: RowWithEvents = serde_json::from_str(row).map_err(|error| format!("row {key}: {error}"))?;
    let events = row.events.into_iter();
    Ok(events
        .map(|event| ListedRowEvent {
            key: key.to_string(),
            node_id: row.node_id.clone(),
            token_id: row.token_id.clone(),
            event,
        })
        .collect())
}
