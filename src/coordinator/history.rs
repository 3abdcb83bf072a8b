//! What a run has been through, read from its rows when somebody asks.

use serde_json::{Value, json};
use worker::{Error, Result};

use super::object::Object;
use crate::api::error;
use crate::api::recovery;
use crate::api::respond::Answer;
use crate::engine::Entry;

/// Records looked at for one log of timeouts.
const LINES: u64 = 10_000;

impl Object {
    pub fn events(&self, after: u64, limit: u64) -> Result<Answer> {
        let rows = self.sqlite().events(after, limit.clamp(1, 1_000) + 1)?;
        let (entries, next) = page(rows, limit)?;
        let items: Vec<Value> = self.with_run(|run| {
            let view = |entry: &Entry| recovery::event(&run.header.id, entry);
            entries.iter().map(view).collect()
        })?;
        Ok(Ok((200, json!({"items": items, "next_cursor": next}))))
    }

    pub fn timeouts(&self, after: u64, limit: u64) -> Result<Answer> {
        let rows = self.sqlite().timeouts(after, limit.clamp(1, 1_000) + 1)?;
        let (entries, next) = page(rows, limit)?;
        let ended = self.past()?.tokens;
        let items: Vec<Value> = self.with_run(|run| {
            let view = |entry: &Entry| recovery::timeout(run, entry, &ended, false);
            entries.iter().filter_map(view).collect()
        })?;
        Ok(Ok((200, json!({"items": items, "next_cursor": next}))))
    }

    /// One line a timeout; the API makes text of it.
    pub fn timeout_lines(&self) -> Result<Answer> {
        let (entries, _) = page(self.sqlite().timeouts(0, LINES)?, LINES)?;
        let lines: Vec<Value> = self.with_run(|run| {
            let line = |entry: &Entry| recovery::timeout_line(&run.header, entry);
            entries.iter().filter_map(line).collect()
        })?;
        Ok(Ok((200, json!(lines))))
    }

    pub fn timeout(&self, id: u64) -> Result<Answer> {
        let (entries, _) = page(self.sqlite().timeouts(id.saturating_sub(1), 1)?, 1)?;
        let found = entries.iter().find(|entry| entry.seq == id);
        let Some(entry) = found else {
            return Ok(Err(error::Error::not_found("the timeout")));
        };
        let ended = self.past()?.tokens;
        let view = self.with_run(|run| recovery::timeout(run, entry, &ended, true))?;
        Ok(Ok((200, view.unwrap_or_default())))
    }

    pub fn ways_back(&self) -> Result<Answer> {
        let past = self.past()?;
        Ok(Ok((200, self.with_run(|run| recovery::resume(run, &past))?)))
    }

    pub fn deliverable(&self) -> Result<Answer> {
        let past = self.past()?;
        let timeouts = self
            .sqlite()
            .lateness()?
            .iter()
            .map(|(_, count, _, _)| count)
            .sum();
        let view = self.with_run(|run| recovery::deliverable(run, &past.tokens, timeouts))?;
        Ok(view.map(|view| (200, view)))
    }
}

/// The first `limit` of the rows, and where the next page begins.
fn page(rows: Vec<(u64, String)>, limit: u64) -> Result<(Vec<Entry>, Option<String>)> {
    let more = rows.len() as u64 > limit;
    let mut entries = Vec::new();
    for (seq, row) in rows.into_iter().take(limit as usize) {
        let mut entry: Entry = serde_json::from_str(&row)
            .map_err(|wrong| Error::RustError(format!("event {seq} cannot be read: {wrong}")))?;
        entry.seq = seq;
        entries.push(entry);
    }
    let last = entries.last().map(|entry| entry.seq.to_string());
    Ok((entries, last.filter(|_| more)))
}
