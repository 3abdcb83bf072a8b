//! Restores a run from its rows. The SQLite shell and the simulator both load runs with this code.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::from_json::from_json;
use crate::base::lru_cache::LruCache;
use crate::base::ordered::sort_by_key;
use crate::base::text::shared;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::run::{Instance, Misfit, Notification, Past, Run, Settings, StoredRun, Token, TokenId};
use crate::storage::commit::{CONTEXT, FAILED_WAKES, GATE, HEADER, INSTANCE, NOTIFICATION, OUTBOX, SIGNALS};
use crate::storage::rows::{self, COMPLETED_WITH_CONTEXT, HeaderRow, InstanceRow, TokenRow, parse_status};

/// The rows of a run; values are JSON text.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub run: Vec<(String, String)>,
    /// Live tokens, and completed tokens with context values: id, status, row.
    pub tokens: Vec<(u64, String, String)>,
    pub counts: Vec<(String, u64)>,
    pub alarm_at: Option<Millis>,
    /// The number of the last event that is a row of its own, and of the last one on a token.
    pub last_event: u64,
    pub last_token_event: u64,
    /// Attempts whose late result is an event already: token, epoch.
    pub late: Vec<(String, u64)>,
}

impl Rows {
    /// Whether a run was saved: its first commit writes the header.
    pub fn has_run(&self) -> bool {
        self.run.iter().any(|(key, _)| key == HEADER)
    }
}

/// Parsed snapshots by their text: runs of the same workflow version share one.
pub type Snapshots = LruCache<Snapshot>;

/// An error means that this build cannot read the rows: a bug or a newer schema.
pub fn run(rows: Rows, settings: Settings, snapshots: &mut Snapshots) -> Result<Run, String> {
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
    let mut context_on_tokens = Vec::new();
    for (id, status, row) in rows.tokens {
        let unreadable = |error: serde_json::Error| format!("token t{id}: {error}");
        if status == COMPLETED_WITH_CONTEXT {
            context_on_tokens.extend(rows::context_on_token(&row).map_err(unreadable)?);
            continue;
        }
        let row: TokenRow = from_json(&row).map_err(unreadable)?;
        live.push(row.into_token(id, parse_status(&status)?, &snapshot)?);
    }
    let mut counts = BTreeMap::new();
    for (status, count) in rows.counts {
        *counts.entry(parse_status(&status)?).or_default() += count;
    }
    let mut stored = StoredRun {
        header: header.into_header(),
        input,
        context: Vec::new(),
        context_on_tokens,
        live,
        counts,
        instances: Vec::new(),
        gates: Vec::new(),
        signals: BTreeMap::new(),
        outbox: Vec::new(),
        notifications: Vec::new(),
        alarm_at: rows.alarm_at,
        last_event: rows.last_event,
        last_token_event: rows.last_token_event,
        late: rows.late,
        failed_wakes: 0,
    };
    for (key, value) in &rows.run {
        let unreadable = |error: serde_json::Error| format!("row {key}: {error}");
        if key == FAILED_WAKES {
            stored.failed_wakes = from_json(value).map_err(unreadable)?;
        } else if let Some(name) = key.strip_prefix(CONTEXT) {
            stored.context.push((name.to_string(), value.clone()));
        } else if key.starts_with(INSTANCE) {
            let row: InstanceRow = from_json(value).map_err(unreadable)?;
            stored.instances.push(row.into_instance(&snapshot)?);
        } else if key.starts_with(GATE) {
            stored.gates.push(from_json(value).map_err(unreadable)?);
        } else if let Some(name) = key.strip_prefix(SIGNALS) {
            let payloads = from_json(value).map_err(unreadable)?;
            stored.signals.insert(name.to_string(), payloads);
        } else if let Some(id) = key.strip_prefix(OUTBOX) {
            let id = id.parse().map_err(|_| format!("row {key} has no number"))?;
            stored.outbox.push((id, from_json(value).map_err(unreadable)?));
        } else if let Some(number) = key.strip_prefix(NOTIFICATION) {
            let notification: Notification = from_json(value).map_err(unreadable)?;
            let number = number.parse().map_err(|_| format!("row {key} has no number"))?;
            stored.notifications.push(Notification {
                number,
                ..notification
            });
        }
    }
    sort_by_key(&mut stored.notifications, |notification| notification.number);
    // Keys sort as text, but an inner instance must come after its outer one.
    sort_by_key(&mut stored.instances, |instance| instance.id);
    Run::restore(snapshot, settings, stored)
}

fn parse<T: DeserializeOwned>(rows: &[(String, String)], key: &str) -> Result<T, String> {
    from_json(row(rows, key)?).map_err(|error| format!("row {key}: {error}"))
}

fn row<'a>(rows: &'a [(String, String)], key: &str) -> Result<&'a str, String> {
    let found = rows.iter().find(|(name, _)| name == key);
    let (_, text) = found.ok_or_else(|| format!("row {key} is missing"))?;
    Ok(text)
}

/// Collects what resume plans need, from the rows of tokens and instances, one at a time. It needs no document: the run's version
/// may have changed since the rows were written.
#[derive(Default)]
pub struct PastReader {
    past: Past,
    node_ids: BTreeSet<Rc<str>>,
}

impl PastReader {
    pub fn token(&mut self, id: u64, status: &str, row: &str) -> Result<(), String> {
        let token = rows::past_token(id, status, row, &mut |node_id| {
            shared(&mut self.node_ids, node_id)
        })?;
        self.past.tokens.push(token);
        Ok(())
    }

    pub fn instance(&mut self, row: &str) -> Result<(), String> {
        let row: InstanceRow = from_json(row).map_err(|error| format!("an instance: {error}"))?;
        self.past.instances.push(row.into_summary());
        Ok(())
    }

    pub fn finish(mut self) -> Past {
        sort_by_key(&mut self.past.tokens, |token| token.id);
        sort_by_key(&mut self.past.instances, |instance| instance.id);
        self.past
    }
}

/// A token from its whole row.
pub fn token(id: u64, status: &str, row: &str, snapshot: &Snapshot) -> Result<Token, String> {
    let row: TokenRow = from_json(row).map_err(|error| format!("token t{id}: {error}"))?;
    row.into_token(id, parse_status(status)?, snapshot)
}

/// A token that a run goes on with, on a version that may lack its node.
pub fn token_to_go_on(
    id: u64,
    status: &str,
    row: &str,
    snapshot: &Snapshot,
) -> Result<Result<Token, Misfit>, String> {
    let row: TokenRow = from_json(row).map_err(|error| format!("token t{id}: {error}"))?;
    let has_node = |node_id: &str| snapshot.workflow.node_index(node_id).is_some();
    let misfit = match &row.joins_at {
        _ if !has_node(&row.node_id) => Some((row.node_id.clone(), "the version has no such node")),
        Some(join) if !has_node(join) => Some((
            join.clone(),
            "a branch waits at its join, and the version has no such node",
        )),
        Some(_) | None => None,
    };
    if let Some((node_id, reason)) = misfit {
        return Ok(Err(Misfit::of_token(node_id, TokenId(id), reason)));
    }
    row.into_token(id, parse_status(status)?, snapshot).map(Ok)
}

pub fn instance(row: &str, snapshot: &Snapshot) -> Result<Instance, String> {
    let row: InstanceRow = from_json(row).map_err(|error| format!("an instance: {error}"))?;
    row.into_instance(snapshot)
}

/// An instance that a run goes on with, on a version that may lack its joins.
pub fn instance_to_go_on(row: &str, snapshot: &Snapshot) -> Result<Result<Instance, Vec<Misfit>>, String> {
    let row: InstanceRow = from_json(row).map_err(|error| format!("an instance: {error}"))?;
    let missing = row.missing_joins(snapshot);
    if missing.is_empty() {
        return row.into_instance(snapshot).map(Ok);
    }
    let reason = format!("the version does not join group \"{}\" at this node", row.group);
    let misfits = missing
        .into_iter()
        .map(|node_id| Misfit::of_node(node_id, reason.as_str()));
    Ok(Err(misfits.collect()))
}
