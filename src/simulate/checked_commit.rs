//! A commit as `Store` applies it where it is checked: refuses what no commit may do, such as change a token that has ended, or a
//! run that has.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::base::limits::ROW_BYTES;
use crate::run::{GONE, RowEvent, RunEvent, RunEventKind};
use crate::simulate::store::{Store, has_row_events, parse};
use crate::storage::commit::{CONTEXT, Commit, EVENT, FAILED_WAKES, NOTIFICATION, UNDO, token_key};
use crate::storage::rows::{HeaderRow, events_of, parse_status};

impl Store {
    pub fn apply(&mut self, commit: &Commit) -> Result<(), String> {
        self.apply_batch(commit, &BTreeSet::new())
    }

    /// `posted` are the keys of messages that the decisions of a batch saved: a later one may have deleted them again.
    pub fn apply_batch(&mut self, commit: &Commit, posted: &BTreeSet<String>) -> Result<(), String> {
        let brought_back = is_brought_back_by(commit)?;
        let ended = self.has_ended() && !brought_back && !self.is_begun_again_by(commit)?;
        check_sizes(commit)?;
        self.check_history(commit)?;
        for (key, value) in &commit.run {
            // A name whose first value stands on a token, and that has none any more, has an empty row.
            if !(key.starts_with(CONTEXT) && value == GONE) {
                parse::<&RawValue>(value)?;
            }
            // A result that comes too late is noted, also by a run that has ended; and what it had to say may take
            // several turns to be said.
            let goes_on = key.starts_with("outbox/") && self.run.contains_key(key);
            // Notifications are delivered after the end, too.
            let is_notification = key.starts_with(NOTIFICATION);
            if ended && !key.starts_with("event/") && !goes_on && !is_notification {
                return Err(format!("the run has ended and {key} changed to {value}"));
            }
            // A retry or a restart may replace the snapshot, and says so.
            let may_be_replaced = key == "snapshot" && names_version(commit)?;
            if !may_be_replaced {
                self.check_row(key, value, brought_back)?;
            }
            self.note_status(key, value)?;
            let before = self.run.insert(key.clone(), value.clone());
            self.count(value.len(), before.map_or(0, |before| before.len()));
        }
        for (id, status, row) in &commit.tokens {
            parse::<&RawValue>(row)?;
            parse_status(status)?;
            if ended {
                return Err(format!("the run has ended and t{id} became {status}"));
            }
            let row = (status.to_string(), row.clone());
            let before = self.tokens.insert(*id, row.clone());
            self.count(row.1.len(), before.as_ref().map_or(0, |before| before.1.len()));
            if let Some(before) = before
                && parse_status(&before.0)?.is_terminal()
            {
                return Err(format!("t{id} had ended as {before:?} and became {row:?}"));
            }
        }
        for key in &commit.deleted {
            // Messages that arrived go, also those of an ended run; what a restart takes back goes.
            let before = self.run.remove(key);
            self.count(0, before.as_ref().map_or(0, String::len));
            let was_there = before.is_some();
            let may_go = match key.split('/').next() {
                Some("outbox") => was_there || posted.contains(key),
                Some("context") => !ended,
                // Only the last ones are kept.
                Some("notification") => was_there || posted.contains(key),
                // A wake that was saved, or the end.
                Some(FAILED_WAKES) => was_there,
                _others => false,
            };
            if !may_go {
                return Err(format!("{key} was deleted"));
            }
        }
        Ok(())
    }

    /// What is decided stays decided: a closed instance, a join that fired, a gate that is no longer open.
    fn check_row(&self, key: &str, value: &str, brought_back: bool) -> Result<(), String> {
        let Some(before) = self.run.get(key) else {
            return Ok(());
        };
        if key.starts_with(CONTEXT) {
            return Ok(());
        }
        let (old, new): (Value, Value) = (parse(before)?, parse(value)?);
        let kept = match key.split('/').next() {
            Some("instance") => {
                let fired = |row: &Value| -> Vec<Value> {
                    let joins = row["fan_ins"].as_array().cloned().unwrap_or_default();
                    joins
                        .into_iter()
                        .filter(|join| !join["fired_at"].is_null())
                        .map(without_transition)
                        .collect()
                };
                let may_change = old["closed"] != json!(true) || brought_back;
                may_change && fired(&old).iter().all(|join| fired(&new).contains(join))
            }
            Some("gate") => old["status"] == json!("open"),
            // An event that some have heard goes on to the others.
            Some("outbox") => {
                let mut goes_on = old.clone();
                goes_on["after"] = new["after"].clone();
                new["after"].as_str() > old["after"].as_str() && goes_on == new
            }
            Some("snapshot" | "input" | "event") => false,
            _others => true,
        };
        match kept {
            true => Ok(()),
            false => Err(format!("{key} changed from {before} to {value}")),
        }
    }

    /// New events have numbers above all earlier ones, each number once. Earlier events stay as they were.
    fn check_history(&mut self, commit: &Commit) -> Result<(), String> {
        let mut new: Vec<u64> = Vec::new();
        let tokens = commit.tokens.iter().map(|(id, _, row)| (token_key(*id), row));
        let rows = commit.run.iter().map(|(key, row)| (key.clone(), row));
        for (key, row) in rows.chain(tokens) {
            if let Some(number) = key.strip_prefix(EVENT) {
                new.push(number.parse().map_err(|_| format!("{key} has no number"))?);
            }
            if !has_row_events(&key) {
                continue;
            }
            let events: Vec<RowEvent> = events_of(&key, row)?.into_iter().map(|it| it.event).collect();
            let before = self.history.get(&key).map_or(&[][..], Vec::as_slice);
            if !events.starts_with(before) {
                return Err(format!(
                    "the events of {key} were {before:?} and became {events:?}"
                ));
            }
            new.extend(events[before.len()..].iter().map(|event| event.seq));
            self.history.insert(key, events);
        }
        new.sort_unstable();
        let is_rising = new.first().is_none_or(|first| *first > self.last_seq)
            && new.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_rising {
            return Err(format!("events {new:?} come after number {}", self.last_seq));
        }
        self.last_seq = new.last().copied().unwrap_or(self.last_seq);
        Ok(())
    }

    /// Only the next attempt brings an ended run back to life.
    fn is_begun_again_by(&self, commit: &Commit) -> Result<bool, String> {
        let rows = &commit.run;
        let next = rows.iter().find(|(key, _)| key == "header");
        let Some(next) = next.map(|(_, value)| parse::<HeaderRow>(value)).transpose()? else {
            return Ok(false);
        };
        let is_retry = rows
            .iter()
            .any(|(key, row)| key.starts_with("event/") && row.contains("\"run_retried\""));
        Ok(self
            .header()
            .is_some_and(|header| header.attempt < next.attempt || is_retry))
    }
}

/// Our own limit, not the platform's.
fn check_sizes(commit: &Commit) -> Result<(), String> {
    let rows = commit.run.iter().map(|(key, value)| (key.clone(), value));
    let tokens = commit.tokens.iter().map(|(id, _, row)| (format!("t{id}"), row));
    // What was overwritten may have been all of the context, and a patch says where.
    let most = |key: &str| ROW_BYTES + if key.starts_with(UNDO) { 1 << 10 } else { 0 };
    match rows.chain(tokens).find(|(key, row)| row.len() > most(key)) {
        Some((key, row)) => Err(format!("row {key} has {} bytes", row.len())),
        None => Ok(()),
    }
}

/// Another version may number its transitions otherwise.
fn without_transition(mut join: Value) -> Value {
    join["transition_id"].take();
    join
}

fn names_version(commit: &Commit) -> Result<bool, String> {
    for (key, value) in &commit.run {
        if key.starts_with(EVENT) && parse::<RunEvent>(value)?.fields.contains_key("from_version") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A retry says so in the commit that makes it.
fn is_brought_back_by(commit: &Commit) -> Result<bool, String> {
    for (key, value) in &commit.run {
        if key.starts_with(EVENT) && parse::<RunEvent>(value)?.kind == RunEventKind::RunRetried {
            return Ok(true);
        }
    }
    Ok(false)
}
