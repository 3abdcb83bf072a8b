//! The tables of a run's object in memory. Applies a `Commit` as SQLite would: rows are replaced by key.

use std::collections::BTreeMap;

use crate::base::failure::Failure;
use crate::base::from_json::from_json;
use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::run::{
    HistoryEvent, Instance, MeasuredRows, Past, Patch, RowEvent, Run, RunEvent, RunEventKind, RunStatus,
    Settings, TokenId, TokenStatus, WrittenAt,
};
use crate::storage::commit::{Commit, EVENT, EVENT_END, HEADER, UNDO, event_key, token_key, undo_key};
use crate::storage::measured;
use crate::storage::pages::ListedRow;
use crate::storage::restore::{self, PastReader, Rows, Snapshots};
use crate::storage::rows::{
    COMPLETED_WITH_CONTEXT, HeaderRow, ListedRowEvent, TokenRow, error_of, events_of, parse_status,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn has_row_events(key: &str) -> bool {
    key == "header"
        || ["token/", "gate/", "instance/"]
            .iter()
            .any(|prefix| key.starts_with(prefix))
}

/// What is read of a header at every commit.
#[derive(Deserialize)]
struct StatusOfHeader {
    status: RunStatus,
}

#[derive(Clone, Debug, Default)]
pub struct Store {
    pub run: BTreeMap<String, String>,
    /// Id to status and row.
    pub tokens: BTreeMap<u64, (String, String)>,
    pub alarm_at: Option<Millis>,
    /// The events of each row, by number: the history never changes once it was committed.
    pub(super) history: BTreeMap<String, Vec<RowEvent>>,
    pub last_seq: u64,
    /// Of all rows.
    pub bytes: u64,
    /// Of the run.
    status: Option<RunStatus>,
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
        store.status = store.header().map(|header| header.status);
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
        self.status = self.header().map(|header| header.status);
    }

    /// As SQLite would, without a question. Events on rows are read from the rows when they are asked for.
    pub fn apply_unchecked(&mut self, commit: &Commit) -> Result<(), String> {
        for (key, value) in &commit.run {
            self.last_seq = self.last_seq.max(last_event(key, value)?);
            self.note_status(key, value)?;
            let before = self.run.insert(key.clone(), value.clone());
            self.count(value.len(), before.map_or(0, |before| before.len()));
        }
        for (id, status, row) in &commit.tokens {
            self.last_seq = self.last_seq.max(last_event(&token_key(*id), row)?);
            let before = self.tokens.insert(*id, (status.to_string(), row.clone()));
            self.count(row.len(), before.map_or(0, |(_, before)| before.len()));
        }
        for key in &commit.deleted {
            let before = self.run.remove(key);
            self.count(0, before.map_or(0, |before| before.len()));
        }
        Ok(())
    }

    pub(super) fn note_status(&mut self, key: &str, value: &str) -> Result<(), String> {
        if key == HEADER {
            self.status = Some(parse::<StatusOfHeader>(value)?.status);
        }
        Ok(())
    }

    pub(super) fn count(&mut self, added: usize, removed: usize) {
        // Rows that were put in without a commit were not counted.
        self.bytes = (self.bytes + added as u64).saturating_sub(removed as u64);
    }

    pub fn status_of(&self, token: u64) -> Option<TokenStatus> {
        let (status, _) = self.tokens.get(&token)?;
        Some(parse_status(status).expect("checked by apply"))
    }

    pub fn epoch_of(&self, token: u64) -> u64 {
        let row = self.tokens.get(&token).map(|(_, row)| parse::<TokenRow>(row));
        row.and_then(Result::ok).map_or(0, |row| row.epoch)
    }

    pub fn header(&self) -> Option<HeaderRow> {
        let text = self.run.get("header")?;
        Some(from_json(text).expect("the header was saved as JSON"))
    }

    pub fn snapshot(&self) -> Value {
        let text = self.run.get("snapshot");
        text.map(|text| parse(text).expect("a snapshot is JSON"))
            .unwrap_or_default()
    }

    /// None before its start was committed.
    pub fn status(&self) -> Option<RunStatus> {
        self.status
    }

    pub fn has_ended(&self) -> bool {
        self.status.is_some_and(RunStatus::is_terminal)
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
            last_token_event: self.last_seq,
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
        sort_by_key(&mut listed, |it| it.event.seq);
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

    fn undo_apart(&self, token: TokenId, at: WrittenAt) -> Vec<Patch> {
        let row = self
            .run
            .get(&undo_key(token.0, at))
            .expect("the row that the token speaks of");
        from_json(row).expect("a way back can be read")
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
            let mut entry: RunEvent = from_json(row).expect("an event can be read");
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
        sort_by_key(&mut all, |event| event.seq);
        all
    }

    pub fn recall(&self, settings: Settings) -> Result<Run, String> {
        restore::run(self.rows(), settings, &mut Snapshots::default())
    }
}

/// The number of the last event that a row has.
fn last_event(key: &str, row: &str) -> Result<u64, String> {
    if let Some(number) = key.strip_prefix(EVENT) {
        return number.parse().map_err(|_| format!("{key} has no number"));
    }
    if !has_row_events(key) {
        return Ok(0);
    }
    let events = events_of(key, row)?;
    Ok(events.iter().map(|listed| listed.event.seq).max().unwrap_or(0))
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

pub(super) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    from_json(text).map_err(|error| format!("{error} in {text}"))
}
