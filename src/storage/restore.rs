//! The rows of a run as text, read back into engine state. The SQLite shell and the simulator both load through here.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::lru_cache::LruCache;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::run::{Instance, Past, Run, Settings, StoredRun, Token};
use crate::storage::commit::{CONTEXT, FAILED_WAKES, GATE, HEADER, INSTANCE, OUTBOX, SIGNALS};
use crate::storage::rows::{self, HeaderRow, InstanceRow, KEEPING, TokenRow, parse_status};

/// Rows as they were read; values are JSON text.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub run: Vec<(String, String)>,
    /// Live tokens, and those that ended and keep something of the context: id, status, row.
    pub tokens: Vec<(u64, String, String)>,
    pub counts: Vec<(String, u64)>,
    pub alarm_at: Option<Millis>,
    /// The number of the last event.
    pub noted: u64,
    /// Attempts whose late result is an event: token, epoch.
    pub late: Vec<(String, u64)>,
}

impl Rows {
    /// A run was saved here: its first commit writes the header with all the rest.
    pub fn hold_run(&self) -> bool {
        self.run.iter().any(|(key, _)| key == HEADER)
    }
}

/// Snapshots by their text: the runs of a workflow share one.
pub type Snapshots = LruCache<Snapshot>;

/// Puts the run together again. An error means rows this build cannot read: a bug or a newer schema.
pub fn recall(rows: Rows, settings: Settings, snapshots: &mut Snapshots) -> Result<Run, String> {
    let header: HeaderRow = parse(&rows.run, HEADER)?;
    if header.schema > crate::storage::schema::VERSION {
        return Err(format!(
            "the run was saved with schema {}, this build knows {}",
            header.schema,
            crate::storage::schema::VERSION
        ));
    }
    let input: Value = parse(&rows.run, "input")?;
    let snapshot = snapshots.get_or_try_insert(row(&rows.run, "snapshot")?, Snapshot::parse);
    let snapshot = snapshot.map_err(|message| format!("row snapshot: {message}"))?;
    let mut live = Vec::with_capacity(rows.tokens.len());
    let mut kept = Vec::new();
    for (id, status, row) in rows.tokens {
        let wrong = |error: serde_json::Error| format!("token t{id}: {error}");
        if status == KEEPING {
            kept.extend(rows::kept(&row).map_err(wrong)?);
            continue;
        }
        let row: TokenRow = serde_json::from_str(&row).map_err(wrong)?;
        live.push(row.into_token(id, parse_status(&status)?, &snapshot)?);
    }
    let mut counts = BTreeMap::new();
    for (status, count) in rows.counts {
        *counts.entry(parse_status(&status)?).or_default() += count;
    }
    let mut remembered = StoredRun {
        header: header.into_header(),
        input,
        context: Vec::new(),
        context_on_tokens: kept,
        live,
        counts,
        instances: Vec::new(),
        gates: Vec::new(),
        signals: BTreeMap::new(),
        outbox: Vec::new(),
        alarm_at: rows.alarm_at,
        noted: rows.noted,
        late: rows.late,
        failed_wakes: 0,
    };
    for (key, value) in &rows.run {
        let wrong = |error: serde_json::Error| format!("row {key}: {error}");
        if key == FAILED_WAKES {
            remembered.failed_wakes = serde_json::from_str(value).map_err(wrong)?;
        } else if let Some(name) = key.strip_prefix(CONTEXT) {
            remembered.context.push((name.to_string(), value.clone()));
        } else if key.starts_with(INSTANCE) {
            let row: InstanceRow = serde_json::from_str(value).map_err(wrong)?;
            remembered.instances.push(row.into_instance(&snapshot)?);
        } else if key.starts_with(GATE) {
            remembered.gates.push(serde_json::from_str(value).map_err(wrong)?);
        } else if let Some(name) = key.strip_prefix(SIGNALS) {
            let payloads = serde_json::from_str(value).map_err(wrong)?;
            remembered.signals.insert(name.to_string(), payloads);
        } else if let Some(id) = key.strip_prefix(OUTBOX) {
            let id = id.parse().map_err(|_| format!("row {key} has no number"))?;
            remembered
                .outbox
                .push((id, serde_json::from_str(value).map_err(wrong)?));
        }
    }
    // Keys sort as text; an inner instance must come after the one it lies in.
    remembered.instances.sort_by_key(|instance| instance.id);
    Run::recall(snapshot, settings, remembered)
}

fn parse<T: DeserializeOwned>(rows: &[(String, String)], key: &str) -> Result<T, String> {
    serde_json::from_str(row(rows, key)?).map_err(|error| format!("row {key}: {error}"))
}

fn row<'a>(rows: &'a [(String, String)], key: &str) -> Result<&'a str, String> {
    let found = rows.iter().find(|(name, _)| name == key);
    let (_, text) = found.ok_or_else(|| format!("row {key} is missing"))?;
    Ok(text)
}

/// Folds the rows of tokens and instances, one after the other, into what plans are made from.
pub struct PastReader<'a> {
    snapshot: &'a Snapshot,
    past: Past,
}

impl<'a> PastReader<'a> {
    pub fn new(snapshot: &'a Snapshot) -> PastReader<'a> {
        PastReader {
            snapshot,
            past: Past::default(),
        }
    }

    pub fn token(&mut self, id: u64, status: &str, row: &str) -> Result<(), String> {
        let token = rows::past_token(id, status, row, self.snapshot)?;
        self.past.tokens.push(token);
        Ok(())
    }

    pub fn instance(&mut self, row: &str) -> Result<(), String> {
        let mut light = instance(row, self.snapshot)?;
        light.last_error = None;
        if let Some(branch) = &mut light.parent {
            branch.item = None;
            branch.output = Value::Null;
        }
        self.past.instances.push(light);
        Ok(())
    }

    pub fn finish(mut self) -> Past {
        self.past.tokens.sort_by_key(|token| token.id);
        self.past.instances.sort_by_key(|instance| instance.id);
        self.past
    }
}

/// A token that goes on, from its whole row.
pub fn token(id: u64, status: &str, row: &str, snapshot: &Snapshot) -> Result<Token, String> {
    let row: TokenRow = serde_json::from_str(row).map_err(|error| format!("token t{id}: {error}"))?;
    row.into_token(id, parse_status(status)?, snapshot)
}

pub fn instance(row: &str, snapshot: &Snapshot) -> Result<Instance, String> {
    let row: InstanceRow = serde_json::from_str(row).map_err(|error| format!("an instance: {error}"))?;
    row.into_instance(snapshot)
}
