//! The tables of a run's object in memory. Applies a `Commit` as SQLite would (rows replaced by key) and refuses what no commit may do: change a token that has ended, or a run that has.

use std::collections::{BTreeMap, BTreeSet};

use curfew::base::failure::Failure;
use curfew::base::limits::ROW_BYTES;
use curfew::base::time::Millis;
use curfew::definition::snapshot::Snapshot;
use curfew::run::{
    Event, GONE, HistoryEvent, Instance, MeasuredRows, NewVersion, Past, Patch, Rejection, RestartPoint,
    ResumeRows, RetryMode, Rewind, RowEvent, Run, RunEvent, RunEventKind, Settings, TokenId, TokenStatus,
    WrittenAt, last_seq,
};
use curfew::storage::commit::{
    CONTEXT, Commit, EVENT, EVENT_END, FAILED_WAKES, NOTIFICATION, UNDO, event_key, token_key, undo_key,
};
use curfew::storage::measured;
use curfew::storage::pages::ListedRow;
use curfew::storage::restore::{self, PastReader, Rows, Snapshots};
use curfew::storage::rows::{
    COMPLETED_WITH_CONTEXT, HeaderRow, ListedRowEvent, TokenRow, error_of, events_of, parse_status,
    patches_of,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn has_row_events(key: &str) -> bool {
    key == "header"
        || ["token/", "gate/", "instance/"]
            .iter()
            .any(|prefix| key.starts_with(prefix))
}

#[derive(Clone, Debug, Default)]
pub struct Store {
    pub run: BTreeMap<String, String>,
    /// Id to status and row.
    pub tokens: BTreeMap<u64, (String, String)>,
    pub alarm_at: Option<Millis>,
    /// The events of each row, by number: the history never changes once it was committed.
    history: BTreeMap<String, Vec<RowEvent>>,
    last_seq: u64,
}

impl Store {
    /// Rows of an earlier build.
    pub fn of_rows(
        run: BTreeMap<String, String>,
        tokens: BTreeMap<u64, (String, String)>,
        alarm_at: Option<Millis>,
    ) -> Store {
        let mut store = Store {
            run,
            tokens,
            alarm_at,
            ..Store::default()
        };
        store.last_seq = store.entries().last().map_or(0, |event| event.seq);
        for listed in store.list_row_events(0, u64::MAX).expect("rows can be read") {
            store.last_seq = store.last_seq.max(listed.event.seq);
            store.history.entry(listed.key).or_default().push(listed.event);
        }
        store
    }

    /// Puts the row of an earlier build in the place of a row.
    pub fn replace_row(&mut self, key: &str, row: String) {
        self.history.remove(key);
        self.run.insert(key.to_string(), row);
    }

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
            self.run.insert(key.clone(), value.clone());
        }
        for (id, status, row) in &commit.tokens {
            parse::<&RawValue>(row)?;
            parse_status(status)?;
            if ended {
                return Err(format!("the run has ended and t{id} became {status}"));
            }
            let row = (status.to_string(), row.clone());
            if let Some(before) = self.tokens.insert(*id, row.clone())
                && parse_status(&before.0)?.is_terminal()
            {
                return Err(format!("t{id} had ended as {before:?} and became {row:?}"));
            }
        }
        for key in &commit.deleted {
            // Messages that arrived go, also those of an ended run; what a restart takes back goes.
            let was_there = self.run.remove(key).is_some();
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

    pub fn status_of(&self, token: u64) -> Option<TokenStatus> {
        let (status, _) = self.tokens.get(&token)?;
        Some(parse_status(status).expect("checked by apply"))
    }

    pub fn epoch_of(&self, token: u64) -> u64 {
        let row = self.tokens.get(&token).map(|(_, row)| parse::<TokenRow>(row));
        row.and_then(Result::ok).map_or(0, |row| row.epoch)
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

    pub fn header(&self) -> Option<HeaderRow> {
        let text = self.run.get("header")?;
        Some(serde_json::from_str(text).expect("the header was saved as JSON"))
    }

    pub fn snapshot(&self) -> Value {
        let text = self.run.get("snapshot");
        text.map(|text| parse(text).expect("a snapshot is JSON"))
            .unwrap_or_default()
    }

    pub fn has_ended(&self) -> bool {
        self.header().is_some_and(|header| header.status.is_terminal())
    }

    pub fn rows(&self) -> Rows {
        let is_read = |status: &str| {
            status == COMPLETED_WITH_CONTEXT || !parse_status(status).expect("checked by apply").is_terminal()
        };
        let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
        for (status, _) in self.tokens.values() {
            *counts.entry(status).or_default() += 1;
        }
        Rows {
            run: self
                .run
                .iter()
                .filter(|(key, _)| !key.starts_with("event/") && !key.starts_with(UNDO))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            tokens: self
                .tokens
                .iter()
                .filter(|(_, (status, _))| is_read(status))
                .map(|(id, (status, row))| (*id, status.clone(), row.clone()))
                .collect(),
            counts: counts
                .into_iter()
                .map(|(status, count)| (status.clone(), count))
                .collect(),
            alarm_at: self.alarm_at,
            last_event: self
                .run
                .keys()
                .filter_map(|key| key.strip_prefix("event/")?.parse().ok())
                .max()
                .unwrap_or(0),
            last_token_event: self
                .history
                .values()
                .map(|events| last_seq(events))
                .max()
                .unwrap_or(0),
            late: self
                .entries()
                .iter()
                .filter(|entry| entry.kind == RunEventKind::LateResultDiscarded)
                .filter_map(|entry| {
                    let token = entry.fields.get("token_id")?.as_str()?;
                    Some((token.to_string(), entry.fields.get("epoch")?.as_u64()?))
                })
                .collect(),
        }
    }

    pub fn list_tokens(&self, after: u64, limit: u64) -> Vec<ListedRow> {
        let tokens = self.tokens.range(after + 1..).take(limit as usize);
        tokens
            .map(|(id, (status, row))| ListedRow {
                row_id: TOKEN_ROWS + id,
                number: *id,
                status: status.clone(),
                bytes: row.len() as u64,
            })
            .collect()
    }

    pub fn list_events(&self, after: u64, limit: u64, wanted: impl Fn(&RunEvent) -> bool) -> Vec<ListedRow> {
        let events = self.entries().into_iter();
        let events = events.filter(|event| event.seq > after && wanted(event));
        events
            .take(limit as usize)
            .map(|event| {
                let bytes = self.run[&event_key(event.seq)].len() as u64;
                listed(EVENT_ROWS, event.seq, bytes)
            })
            .collect()
    }

    pub fn list_row_events(&self, after: u64, limit: u64) -> Result<Vec<ListedRowEvent>, String> {
        let tokens = self.tokens.iter().map(|(id, (_, row))| (token_key(*id), row));
        let rows = self.run.iter().map(|(key, row)| (key.clone(), row));
        let mut listed = Vec::new();
        for (key, row) in rows.chain(tokens).filter(|(key, _)| has_row_events(key)) {
            listed.extend(events_of(&key, row)?);
        }
        listed.retain(|it| it.event.seq > after);
        listed.sort_by_key(|it| it.event.seq);
        listed.truncate(limit as usize);
        Ok(listed)
    }

    pub fn list_instances(&self) -> Vec<ListedRow> {
        let rows = self.run.range("instance/".to_string().."instance0".to_string());
        rows.map(|(key, row)| {
            let number = key["instance/".len()..].parse().expect("instances are numbered");
            listed(INSTANCE_ROWS, number, row.len() as u64)
        })
        .collect()
    }

    /// The text of a row of one of those lists.
    pub fn listed_value(&self, row: &ListedRow) -> String {
        match row.row_id - row.number {
            TOKEN_ROWS => self.tokens[&row.number].1.clone(),
            EVENT_ROWS => self.run[&event_key(row.number)].clone(),
            _instance => self.run[&format!("instance/{}", row.number)].clone(),
        }
    }

    pub fn undo(&self, token: u64, at: WrittenAt) -> Vec<Patch> {
        self.undo_apart(TokenId(token), at)
    }

    /// How late deadlines were enforced: scope, count, total and maximal milliseconds.
    /// What the metrics of the run are counted from.
    pub fn measured(&self) -> Result<MeasuredRows, String> {
        let mut rows = MeasuredRows::default();
        for event in self.entries() {
            measured::add_event(&mut rows, event.seq, &self.run[&event_key(event.seq)])?;
        }
        for (status, row) in self.tokens.values() {
            measured::add_token(&mut rows, status, row)?;
        }
        Ok(rows)
    }

    pub fn lateness(&self) -> Vec<(String, u64, u64, u64)> {
        let mut by_scope: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for record in self.entries().into_iter().filter_map(|event| event.record) {
            let scope = json!(record.timeout_event.scope);
            let late = record.timeout_event.lateness_ms;
            let sums = by_scope
                .entry(scope.as_str().unwrap_or_default().to_string())
                .or_default();
            *sums = (sums.0 + 1, sums.1 + late, sums.2.max(late));
        }
        let rows = by_scope.into_iter();
        rows.map(|(scope, (count, total, most))| (scope, count, total, most))
            .collect()
    }

    /// Everything the run has been through, as the object reads it to plan a way back.
    pub fn past(&self) -> Result<Past, String> {
        let mut past = PastReader::default();
        for (id, (status, row)) in &self.tokens {
            past.token(*id, status, row)?;
        }
        for row in self.instance_rows() {
            past.instance(row)?;
        }
        Ok(past.finish())
    }

    fn instance_rows(&self) -> impl Iterator<Item = &String> {
        let rows = self.run.range("instance/".to_string().."instance0".to_string());
        rows.map(|(_, row)| row)
    }

    pub fn whole_instances(&self, snapshot: &Snapshot) -> Result<Vec<Instance>, String> {
        let rows = self.instance_rows();
        rows.map(|row| restore::instance(row, snapshot)).collect()
    }

    /// The errors of all tokens that have one.
    pub fn errors(&self) -> BTreeMap<TokenId, Failure> {
        let tokens = self.tokens.iter();
        tokens
            .filter_map(|(id, (_, row))| Some((TokenId(*id), error_of(row).expect("rows can be read")?)))
            .collect()
    }

    /// As the object asks for it: with the plan's rows and no others.
    pub fn retry(&self, run: &Run, by: Option<&str>, mode: RetryMode, token: Option<TokenId>) -> Event {
        self.retry_on(run, by, mode, token, None)
    }

    /// As `retry`, on another version.
    pub fn retry_on(
        &self,
        run: &Run,
        by: Option<&str>,
        mode: RetryMode,
        token: Option<TokenId>,
        version: Option<NewVersion>,
    ) -> Event {
        let snapshot = version
            .as_ref()
            .map_or(run.snapshot(), |version| &version.snapshot);
        let past = self.past().expect("rows can be read");
        let plan = run.resume_plan_on(snapshot, &past);
        let mut rows = ResumeRows::default();
        for id in &plan.tokens {
            let (status, row) = &self.tokens[&id.0];
            let token = restore::token_to_go_on(id.0, status, row, snapshot);
            match token.expect("rows can be read") {
                Ok(mut token) => {
                    if token.undo.apart.contains(&WrittenAt::Exit) {
                        token.undo.writes = self.undo_apart(token.id, WrittenAt::Exit);
                    }
                    rows.tokens.push(token);
                }
                Err(misfit) => rows.misfits.push(misfit),
            }
        }
        for id in &plan.instances {
            let row = &self.run[&format!("instance/{}", id.0)];
            match restore::instance_to_go_on(row, snapshot).expect("rows can be read") {
                Ok(instance) => rows.instances.push(instance),
                Err(misfits) => rows.misfits.extend(misfits),
            }
        }
        Event::RetryRequested {
            by: by.map(str::to_string),
            mode,
            token,
            version,
            past: Box::new(past),
            rows: Box::new(rows),
        }
    }

    /// The way back to a node, as the object finds it.
    pub fn restart_point(&self, run: &Run, node_id: &str) -> Result<RestartPoint, Rejection> {
        self.restart_point_on(run, run.snapshot(), node_id)
    }

    /// As `restart_point`, on another version.
    pub fn restart_point_on(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        node_id: &str,
    ) -> Result<RestartPoint, Rejection> {
        let node = snapshot
            .workflow
            .node_index(node_id)
            .expect("a node of the document");
        let past = self.past().expect("rows can be read");
        let mut rewind = Rewind::plan(run, snapshot, node, &past.tokens)?;
        for (token, at) in rewind.writes().to_vec() {
            let (_, row) = &self.tokens[&token.0];
            let patches = patches_of(row, at).expect("rows can be read");
            rewind.undo(&patches.unwrap_or_else(|| self.undo_apart(token, at)));
        }
        Ok(rewind.finish())
    }

    fn undo_apart(&self, token: TokenId, at: WrittenAt) -> Vec<Patch> {
        let row = self
            .run
            .get(&undo_key(token.0, at))
            .expect("the row that the token speaks of");
        serde_json::from_str(row).expect("a way back can be read")
    }

    /// Number and kind of every event of the history.
    pub fn all_events(&self) -> Vec<(u64, String)> {
        let kind = |kind: RunEventKind| json!(kind).as_str().unwrap_or_default().to_string();
        let on_rows = self.list_row_events(0, u64::MAX).expect("rows can be read");
        let on_rows = on_rows
            .iter()
            .map(|listed| (listed.event.seq, kind(listed.event.kind)));
        let entries = self.entries();
        on_rows
            .chain(entries.iter().map(|event| (event.seq, kind(event.kind))))
            .collect()
    }

    /// The events of the run, oldest first.
    pub fn entries(&self) -> Vec<RunEvent> {
        let rows = self.run.range(EVENT.to_string()..EVENT_END.to_string());
        rows.map(|(key, row)| {
            let mut entry: RunEvent = serde_json::from_str(row).expect("an event can be read");
            entry.seq = key[EVENT.len()..].parse().expect("events are numbered");
            entry
        })
        .collect()
    }

    /// The whole history after number `after`, as `/events` reads it.
    pub fn history(&self, after: u64) -> Vec<HistoryEvent> {
        let on_rows = self.list_row_events(after, u64::MAX).expect("rows can be read");
        let on_rows = on_rows
            .iter()
            .map(|listed| listed.history_event().expect("a known row"));
        let entries = self.entries();
        let of_log = entries
            .iter()
            .filter(|entry| entry.seq > after)
            .map(HistoryEvent::of_log);
        let mut all: Vec<HistoryEvent> = on_rows.chain(of_log).collect();
        all.sort_by_key(|event| event.seq);
        all
    }

    pub fn recall(&self, settings: Settings) -> Result<Run, String> {
        restore::run(self.rows(), settings, &mut Snapshots::default())
    }
}

/// Row ids of the lists, which tell the kinds of rows apart.
const TOKEN_ROWS: u64 = 1 << 40;
const EVENT_ROWS: u64 = 2 << 40;
const INSTANCE_ROWS: u64 = 3 << 40;

fn listed(kind: u64, number: u64, bytes: u64) -> ListedRow {
    ListedRow {
        row_id: kind + number,
        number,
        status: String::new(),
        bytes,
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

fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))
}
