//! What an export may hold. A replay adds moments and durations and copies ids: within these bounds no sum overflows, and no copy
//! is large.

use serde::Serialize;

use crate::api::error::Error;
use crate::base::limits::{CALL_DEPTH, CHILD_RUN_ID_LENGTH, TIMEOUT_CEILING_MS};
use crate::base::text::{json_bytes, shorten};
use crate::base::time::MOMENT_MAX;
use crate::definition::snapshot::StoredSnapshot;
use crate::replay::export::{EXPORT_BYTES, Export, TokenView};
use crate::run::Settings;

/// The largest integer that is exact in JavaScript: no API shows a larger one.
const NUMBER_MAX: u64 = 1 << 53;

/// Versions that a run went on from.
const VERSIONS_MAX: usize = 1_000;

/// More than any chain of events has.
const HOPS_MAX: u32 = 1_000;

/// What requests take of an export: several may have the same value.
const COPIES_BYTES: usize = 2 * EXPORT_BYTES;

pub fn check(export: &Export) -> Result<(), Error> {
    check_run(export)?;
    if export.versions.len() > VERSIONS_MAX {
        let message = format!("the export has more than {VERSIONS_MAX} versions");
        return Err(Error::new(422, "limit_exceeded", message));
    }
    for snapshot in export.versions.values().chain([&export.snapshot]) {
        check_snapshot(snapshot)?;
    }
    for (number, gate) in export.gates.iter().enumerate() {
        let at = format!("/gates/{number}");
        let decided_at = gate.decision.as_ref().map(|decision| decision.at);
        check_number(&at, [Some(gate.opened_at), decided_at])?;
    }
    for (number, token) in export.tokens.iter().enumerate() {
        check_token(&format!("/tokens/{number}"), token)?;
    }
    for (number, event) in export.events.iter().enumerate() {
        check_number(&format!("/events/{number}"), [Some(event.at), Some(event.seq)])?;
    }
    for (number, timeout) in export.timeouts.iter().enumerate() {
        let event = &timeout.timeout_event;
        let at = format!("/timeouts/{number}");
        check_number(&at, [Some(event.timestamp), Some(event.due_at), event.timeout_ms])?;
    }
    Ok(())
}

fn check_run(export: &Export) -> Result<(), Error> {
    let (run, start) = (&export.run, &export.start);
    check_id("/run/id", &run.id)?;
    check_number("/run", [Some(run.duration_ms), run.ended_at, run.timeout_at])?;
    if run.started_at > MOMENT_MAX {
        return Err(too_large("/run/started_at"));
    }
    check_number(
        "/start/request",
        [start.request.timeout_ms, start.request.budget_ms],
    )?;
    let mut hops = start
        .triggered_by
        .iter()
        .map(|event| event.hops)
        .collect::<Vec<u32>>();
    if let Some(parent) = &start.parent {
        check_id("/start/parent/run_id", &parent.run_id)?;
        check_id("/start/parent/token_id", &parent.token_id)?;
        check_number("/start/parent", [Some(parent.epoch)])?;
        if parent.depth > CALL_DEPTH {
            return Err(too_large("/start/parent/depth"));
        }
        hops.push(parent.hops);
    }
    match hops.into_iter().any(|hops| hops > HOPS_MAX) {
        true => Err(too_large("/start")),
        false => Ok(()),
    }
}

fn check_snapshot(snapshot: &StoredSnapshot) -> Result<(), Error> {
    let latencies = snapshot.latencies.values();
    for latency in latencies {
        check_number(
            "/snapshot/latencies",
            [Some(latency.samples), Some(latency.p99_ms)],
        )?;
    }
    match snapshot.is_whole() {
        true => Ok(()),
        false => {
            let message =
                "the snapshot of the export refers to tasks that it does not have; export the run again";
            Err(Error::invalid_request("/snapshot", message))
        }
    }
}

fn check_token(at: &str, token: &TokenView) -> Result<(), Error> {
    check_id(at, &token.id)?;
    check_id(at, &token.node_id)?;
    let numbers = [
        Some(token.epoch),
        Some(token.created_at),
        token.timeout_ms,
        token.timeout_at,
        token.dispatched_at,
        token.started_at,
        token.ended_at,
    ];
    check_number(at, numbers)
}

fn check_id(pointer: &str, id: &str) -> Result<(), Error> {
    match id.len() > CHILD_RUN_ID_LENGTH {
        true => {
            let message = format!("\"{}\" is longer than any id of a run", shorten(id));
            Err(Error::invalid_request(pointer, message))
        }
        false => Ok(()),
    }
}

fn check_number(pointer: &str, numbers: impl IntoIterator<Item = Option<u64>>) -> Result<(), Error> {
    match numbers.into_iter().flatten().any(|number| number > NUMBER_MAX) {
        true => Err(too_large(pointer)),
        false => Ok(()),
    }
}

fn too_large(pointer: &str) -> Error {
    let message = "a number here is larger than any that a run has; export the run again";
    Error::invalid_request(pointer, message)
}

/// The settings that the run can have had: the Worker reads its variables within the same bounds. A check that is due again at
/// once would repeat forever. An ended run is kept, so that it can be asked how it ended.
pub fn settings(exported: &Settings) -> Settings {
    let bounded = |millis: u64| millis.min(TIMEOUT_CEILING_MS);
    Settings {
        grace_ms: bounded(exported.grace_ms),
        watch_ms: bounded(exported.watch_ms).max(1_000),
        retry_delay_ms: bounded(exported.retry_delay_ms),
        queue: exported.queue,
        routes: exported.routes,
        pending_ms: bounded(exported.pending_ms).max(100),
        no_route_ms: bounded(exported.no_route_ms),
        resend_ms: bounded(exported.resend_ms),
        claim_ms: bounded(exported.claim_ms),
        heartbeat_ms: bounded(exported.heartbeat_ms),
        progress_save_ms: bounded(exported.progress_save_ms),
        suspend_ms: bounded(exported.suspend_ms),
        lost_max: exported.lost_max,
        retention_ms: TIMEOUT_CEILING_MS,
        timeout_max_ms: bounded(exported.timeout_max_ms),
        notify: exported.notify,
    }
}

/// What is copied out of an export: several requests may share one value of it.
#[derive(Default)]
pub struct Copies {
    bytes: usize,
}

impl Copies {
    pub fn add(&mut self, value: &impl Serialize) -> Result<(), Error> {
        self.bytes += json_bytes(value);
        match self.bytes > COPIES_BYTES {
            true => {
                let message =
                    format!("the signals and versions of the run have more than {COPIES_BYTES} bytes");
                Err(Error::new(422, "limit_exceeded", message))
            }
            false => Ok(()),
        }
    }
}
