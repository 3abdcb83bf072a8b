//! Events that stand on the rows of tokens, gates, instances and the run.

use serde::Deserialize;

use crate::base::from_json::from_json;
use crate::run::{EventSubject, HistoryEvent, RowEvent, TokenId};
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

impl ListedRowEvent {
    /// An error means that the row is none of those that have events: a bug.
    pub fn history_event(&self) -> Result<HistoryEvent, String> {
        Ok(HistoryEvent::of_row(&self.event, &self.subject()?))
    }

    fn subject(&self) -> Result<EventSubject<'_>, String> {
        let unknown = || format!("row {} has no events", self.key);
        let node_id = self.node_id.as_deref();
        if self.key == HEADER {
            return Ok(EventSubject::Run);
        }
        if let Some(id) = self.key.strip_prefix(GATE) {
            let token_id = self.token_id.as_deref();
            return Ok(EventSubject::Gate {
                id,
                node_id,
                token_id,
            });
        }
        if let Some(number) = self.key.strip_prefix(INSTANCE) {
            return number.parse().map(EventSubject::Instance).map_err(|_| unknown());
        }
        let number = self.key.strip_prefix(TOKEN).ok_or_else(unknown)?;
        let id = TokenId(number.parse().map_err(|_| unknown())?);
        Ok(EventSubject::Token { id, node_id })
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
    let row: RowWithEvents = from_json(row).map_err(|error| format!("row {key}: {error}"))?;
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
