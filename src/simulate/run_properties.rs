//! What must be true of any run between two events, and when it has ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::ordered::{map_of, set_of, sort_by_key};
use crate::base::time::{MINUTE, Millis};
use crate::definition::ending::EndStatus;
use crate::definition::snapshot::Snapshot;
use crate::run::{Run, RunEventKind, RunStatus, TokenId, TokenStatus, TokenSummary};
use crate::simulate::object::SimulatedRun;
use crate::simulate::properties::{Check, ensure, ensure_eq};
use crate::simulate::store::Store;
use crate::simulate::world::World;
use crate::storage::restore::Snapshots;
use crate::storage::rows::{HeaderRow, parse_status};

impl<W: World> SimulatedRun<W> {
    /// What must be true between any two events.
    pub fn check(&self, now: Millis) -> Check {
        if self.is_over() {
            return Ok(());
        }
        let store = self.store();
        let alarm_at = store.alarm_at;
        if let Some(host) = &self.host {
            let checked = host.with_run(|run| {
                self.check_alarm(run, now)?;
                match now.is_multiple_of(16) {
                    true => self.check_metrics(run),
                    false => Ok(()),
                }
            });
            // After a failed commit the run is not in memory.
            checked.unwrap_or(Ok(()))?;
        }
        if alarm_at.is_none() && !self.is_paused() {
            // Only others can move it on: an operator, a signal, a child.
            for (id, (status, row)) in &store.tokens {
                let forgotten = match parse_status(status).expect("a known status") {
                    TokenStatus::Pending | TokenStatus::Dispatched | TokenStatus::Executing => true,
                    TokenStatus::WaitingForSiblings
                    | TokenStatus::WaitingForSubworkflow
                    | TokenStatus::AwaitingHuman
                    | TokenStatus::Suspended
                    | TokenStatus::Completed
                    | TokenStatus::Failed
                    | TokenStatus::TimedOut
                    | TokenStatus::Cancelled => false,
                };
                ensure!(!forgotten, "nothing would wake t{id}: {status} {row}");
            }
        }
        Ok(())
    }

    /// What was counted is what the rows say, so that nothing is lost or counted twice by a crash.
    fn check_metrics(&self, run: &Run) -> Check {
        if let Some(metrics) = run.metrics() {
            let rows = self
                .store()
                .measured()
                .expect("the rows of a run can be measured");
            ensure_eq!(
                *metrics,
                run.counted_from(rows),
                "the metrics of {}",
                run.header.id
            );
        }
        Ok(())
    }

    fn check_alarm(&self, run: &Run, now: Millis) -> Check {
        let (alarm_at, next) = (self.store().alarm_at, run.next_deadline());
        // An alarm that is late counts as rung where nothing else is due.
        let is_late = alarm_at.is_some_and(|at| at <= now) && run.alarm_at().is_none();
        ensure!(
            is_late || alarm_at == run.alarm_at(),
            "{alarm_at:?} {:?}",
            run.alarm_at()
        );
        match (alarm_at, next) {
            (Some(alarm_at), Some(next)) if alarm_at > next => Err(format!("the alarm rings after {next}")),
            (None, Some(next)) => Err(format!("nothing would wake the run at {next}")),
            (Some(_), Some(_)) | (_, None) => Ok(()),
        }
    }

    /// The most time between the decision to end and the end: for compensations, for end handlers, and for the rows that a crash
    /// left unread.
    pub fn ending_ms(&self) -> u64 {
        let store = self.store();
        let Some(snapshot) = store.run.get("snapshot") else {
            return 0;
        };
        let snapshot = Snapshot::parse(snapshot).expect("a snapshot can be read");
        3 * snapshot.workflow.compensation.timeout_ms + 3 * MINUTE
    }

    /// What must be true of a run that is over. Returns the number of joins that were continued.
    pub fn check_end(&self, snapshots: &mut Snapshots) -> Result<u64, String> {
        let store = self.store();
        // A start that was never committed is no run.
        let Some(header) = store.header() else {
            return Ok(0);
        };
        ensure!(
            header.status.is_terminal(),
            "storage deleted under a live run: {header:?}"
        );
        for (id, (status, row)) in &store.tokens {
            let status = parse_status(status).expect("a known status");
            ensure!(status.is_terminal(), "t{id} is still {status:?}: {row}");
        }
        for (key, row) in store.run.range("instance/".to_string().."instance0".to_string()) {
            ensure!(row.contains("\"closed\":true"), "{key} is still open: {row}");
        }
        ensure!(self.open_gates().is_empty(), "an ended run still asks");
        let snapshot = snapshots.get_or_try_insert(&store.run["snapshot"], Snapshot::parse)?;
        check_compensations(&header, &store, &snapshot, self.durable.given_up.get())?;
        self.check_continuations()
    }

    /// Every join that fired has one continuation: a token born there and then of one that waited there. Only the end
    /// of the run at that very moment may have come between. Returns their number.
    fn check_continuations(&self) -> Result<u64, String> {
        let store = self.store();
        let parse = |text: &String| serde_json::from_str::<Value>(text).expect("rows are JSON");
        let mut fired: BTreeMap<(String, u64), u64> = BTreeMap::new();
        for (_, row) in store.run.range("instance/".to_string().."instance0".to_string()) {
            for join in parse(row)["fan_ins"].as_array().into_iter().flatten() {
                if let (Some(node), Some(at)) = (join["node_id"].as_str(), join["fired_at"].as_u64()) {
                    *fired.entry((node.to_string(), at)).or_default() += 1;
                }
            }
        }
        let mut continued: BTreeMap<(String, u64), u64> = BTreeMap::new();
        for (_, row) in store.tokens.values() {
            let row = parse(row);
            let parent = row["parent"].as_u64().and_then(|id| store.tokens.get(&id));
            let Some((_, parent)) = parent else { continue };
            if parse(parent)["joins_at"] == row["node_id"] {
                let node = row["node_id"].as_str().unwrap_or_default().to_string();
                let born_at = row["created_at"].as_u64().unwrap_or_default();
                *continued.entry((node, born_at)).or_default() += 1;
            }
        }
        let continuations: u64 = continued.values().sum();
        for (place, count) in &continued {
            ensure!(
                fired.get(place) >= Some(count),
                "{count} continuations at {place:?}: {:?}",
                store
            );
        }
        let events = store.entries().into_iter();
        let decided_ends: BTreeSet<Millis> = set_of(
            events
                .filter(|event| event.kind == RunEventKind::RunCompensating)
                .map(|event| event.at),
        );
        let ends = |at: &Millis| decided_ends.contains(at) || self.durable.ends.borrow().contains(at);
        for (place, count) in &fired {
            let found = continued.get(place).copied().unwrap_or(0);
            ensure!(
                found == *count || ends(&place.1),
                "{count} joins fired and {found} tokens went on at {place:?}: {:?}",
                store
            );
        }
        Ok(continuations)
    }
}

/// The work of a run was undone in reverse order of its completion, and each end handler ran once. Where the last end was given
/// up, the rest of it was not tried. No run that has compensated is retried, so only the last end did. Restarts and other
/// versions are left out.
fn check_compensations(header: &HeaderRow, store: &Store, snapshot: &Snapshot, is_given_up: bool) -> Check {
    // It failed at once.
    let has_failed_at_once = header
        .error
        .as_ref()
        .is_some_and(|error| error.code == "internal_error");
    let mut events = store.entries().into_iter();
    let has_other_version = events.any(|event| event.fields.contains_key("from_version"));
    if header.attempt != 1 || has_other_version || has_failed_at_once {
        return Ok(());
    }
    let workflow = &snapshot.workflow;
    let status = match header.status {
        RunStatus::Completed => EndStatus::Completed,
        RunStatus::Failed => EndStatus::Failed,
        RunStatus::TimedOut => EndStatus::TimedOut,
        RunStatus::Cancelled => EndStatus::Cancelled,
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
            return Ok(());
        }
    };
    let handlers = workflow
        .end_handlers
        .iter()
        .filter(|handler| handler.on.contains(&status));
    ensure_eq!(
        header.on_end.len(),
        handlers.count(),
        "end handlers of {header:?}"
    );
    let past = store.past().expect("rows can be read");
    let tried: Vec<TokenId> = past.tokens.iter().filter_map(|token| token.compensates).collect();
    if !workflow.compensation.on.contains(&status) {
        ensure!(
            tried.is_empty(),
            "{tried:?} at an end that does not compensate: {header:?}"
        );
        return Ok(());
    }
    let has_compensation = |token: &&TokenSummary| {
        let node = workflow.node_index(&token.node_id);
        node.is_some_and(|node| workflow.nodes[node].compensate.is_some())
    };
    // A retried token that goes on with the work of another has its result.
    let works: BTreeMap<TokenId, &TokenSummary> = map_of(
        past.tokens
            .iter()
            .filter(has_compensation)
            .filter(|token| token.has_output)
            .map(|token| (token.work_of.unwrap_or(token.id), token)),
    );
    let mut done: Vec<&TokenSummary> = works.into_values().collect();
    sort_by_key(&mut done, |token| std::cmp::Reverse((token.exit_order, token.id)));
    let done: Vec<TokenId> = done.into_iter().map(|token| token.id).collect();
    ensure_eq!(
        tried,
        done[..tried.len().min(done.len())].to_vec(),
        "the order of {header:?}"
    );
    let out_of_time = header.compensation.as_ref().is_some_and(|result| {
        let codes = result.failed.iter().filter_map(|it| it.error.as_ref());
        codes
            .into_iter()
            .any(|error| error.code == "compensation_timeout")
    });
    ensure!(
        tried.len() == done.len() || out_of_time || is_given_up,
        "{tried:?} of {done:?}: {header:?}"
    );
    Ok(())
}
