//! Views of a run's history: events, timeout records, resume options and the deliverable. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::failure::{Failure, FailureClass};
use crate::base::ordered::{object_of, sort_by_key};
use crate::base::time::{Millis, format_moment};
use crate::run::{
    COMPENSATED, CompensationResult, Header, HistoryEvent, Past, PauseReason, REACHED_A_LIMIT, ResumePlan,
    Run, RunEvent, RunStatus, TimeoutRecord, TokenId, TokenStatus, TokenSummary, is_resumable,
};

/// Limits of one deliverable.
const NODES_SHOWN: usize = 1_000;
const ERRORS_SHOWN: usize = 100;

pub fn event(run_id: &str, event: HistoryEvent) -> Value {
    let mut view = json!({"seq": event.seq, "at": event.at, "kind": event.kind});
    if let Value::Object(fields) = &mut view {
        fields.extend(event.fields);
    }
    if event.has_record {
        view["recovery_path"] = json!(recovery_path(run_id, event.seq));
    }
    view
}

fn recovery_path(run_id: &str, seq: u64) -> String {
    format!("/v1/runs/{run_id}/timeouts/{seq}")
}

/// One line of the timeout log; `None` if the event is no timeout.
pub fn timeout_line(header: &Header, entry: &RunEvent) -> Option<Value> {
    let record = entry.record.as_ref()?;
    Some(json!({
        "timestamp": format_moment(record.timeout_event.timestamp),
        "run_id": header.id,
        "flow_key": header.workflow_id,
        "step_id": record.last_known_state.node_id,
        "scope": record.timeout_event.scope,
        "timeout_ms": record.timeout_event.timeout_ms,
        "elapsed_ms": record.timeout_event.elapsed_ms,
        "retry_count": record.retry_count,
        "final_action": record.final_action,
        "recovery_path": recovery_path(&header.id, entry.seq),
    }))
}

/// A timeout record with the checkpoint and the state that a resume would start from.
pub fn timeout(run: &Run, entry: &RunEvent, ended: &[TokenSummary]) -> Option<Value> {
    let record: &TimeoutRecord = entry.record.as_ref()?;
    let mut view = json!({
        "id": entry.seq,
        "timeout_event": record.timeout_event,
        "last_known_state": record.last_known_state,
        "partial_artifacts": record.partial_artifacts,
        "context_for_resume": {
            "last_successful_checkpoint": checkpoint(ended, record.timeout_event.timestamp),
            "state": run.context().state(),
        },
        "retry_count": record.retry_count,
        "final_action": record.final_action,
        "recovery_path": recovery_path(&run.header.id, entry.seq),
    });
    if record.artifacts_cut {
        view["artifacts_cut"] = json!(true);
    }
    if let Some(error) = &record.error {
        view["error"] = json!(error);
    }
    view["timeout_event"]["timestamp"] = json!(format_moment(record.timeout_event.timestamp));
    Some(view)
}

/// The last token that was completed at that time.
fn checkpoint(ended: &[TokenSummary], at: Millis) -> Value {
    let done = ended.iter().filter(|token| {
        token.status == TokenStatus::Completed && token.ended_at.is_some_and(|ended| ended <= at)
    });
    let Some(last) = done.max_by_key(|token| (token.exit_order, token.id)) else {
        return Value::Null;
    };
    json!({
        "token_id": last.id.to_string(),
        "node_id": last.node_id,
        "at": last.ended_at,
    })
}

/// How late the deadlines of each layer were enforced, in seconds. A row is a scope, a count, the sum and the maximum in
/// milliseconds.
pub fn lateness(rows: &[(String, u64, u64, u64)]) -> Value {
    let mut layers: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for (scope, count, sum, most) in rows {
        let scope = serde_json::from_value::<crate::run::TimeoutScope>(json!(scope));
        // A newer build may have written a scope that this one does not know.
        let Ok(scope) = scope else { continue };
        let layer = layers.entry(scope.layer()).or_default();
        *layer = (layer.0 + count, layer.1 + sum, layer.2.max(*most));
    }
    Value::Object(object_of(layers.into_iter().map(
        |(layer, (count, sum, most))| {
            let mean = sum as f64 / count.max(1) as f64 / 1_000.0;
            let view = json!({"count": count, "mean": mean, "max": most as f64 / 1_000.0});
            (layer.to_string(), view)
        },
    )))
}

/// The resume options, with a recommendation and its reason. `errors` are those of the tokens that failed.
pub fn resume(run: &Run, past: &Past, plan: &ResumePlan, errors: &BTreeMap<TokenId, Failure>) -> Value {
    let header = &run.header;
    let closed = match header.status {
        RunStatus::Failed | RunStatus::TimedOut
            if header
                .compensation
                .as_ref()
                .is_some_and(CompensationResult::undid_work) =>
        {
            Some(COMPENSATED.to_string())
        }
        RunStatus::Failed | RunStatus::TimedOut if header.reached_a_limit() => {
            Some(REACHED_A_LIMIT.to_string())
        }
        RunStatus::Failed | RunStatus::TimedOut if !is_resumable(header, plan) => {
            Some("nothing was under way when the run ended: restart it".to_string())
        }
        RunStatus::Failed | RunStatus::TimedOut => None,
        RunStatus::Completed | RunStatus::Cancelled => {
            Some("only a run that failed or timed out goes on; restart this one to run it again".to_string())
        }
        RunStatus::Running | RunStatus::Waiting | RunStatus::Compensating => {
            Some("the run has not ended".to_string())
        }
        RunStatus::Paused => Some(how_to_continue(run)),
    };
    let (recommended, why) = match closed.is_some() {
        true => (Value::Null, Value::Null),
        false => {
            let (mode, why) = recommend(header.error.as_ref(), plan, past);
            (json!(mode), json!(why))
        }
    };
    let version = version_advice(run, recommended.as_str(), errors);
    let is_open = closed.is_none();
    let option = |mode: &str, what: &str| json!({"mode": mode, "open": is_open, "what": what});
    let tokens = |ids: &[TokenId]| -> Vec<Value> {
        let found = past.tokens.iter().filter(|token| ids.contains(&token.id));
        found
            .map(|token| {
                json!({
                    "token_id": token.id.to_string(), "node_id": token.node_id, "status": token.status,
                    "error": errors.get(&token.id), "has_partial_work": token.has_checkpoint,
                })
            })
            .collect()
    };
    json!({
        "run_id": header.id,
        "status": header.status,
        "resumable": is_open,
        "reason": closed,
        "options": [
            option("retry_step", "go on from what failed, with the state as it is and the steps that were finished"),
            option("discard_and_retry", "go on from the last checkpoint; what the failed steps did is dropped"),
            option("escalate", "a person decides first whether it goes on"),
        ],
        "recommended": recommended,
        "why": why,
        "version": version,
        "failed_tokens": tokens(&plan.failed),
        "tokens_to_go_on": plan.tokens.len(),
        "last_successful_checkpoint": checkpoint(&past.tokens, Millis::MAX),
        "error": header.error,
    })
}

fn how_to_continue(run: &Run) -> String {
    let id = &run.header.id;
    match (
        run.gate_of_run(),
        run.header.pause_reasons.contains(&PauseReason::Person),
    ) {
        (Some(gate), _) => format!("a person decides: POST /v1/runs/{id}/gates/{}", gate.id),
        (None, true) => format!("the run is paused: POST /v1/runs/{id}/resume"),
        (None, false) => "the run that called this one stands still; it goes on with it".to_string(),
    }
}

fn recommend(error: Option<&Failure>, plan: &ResumePlan, past: &Past) -> (&'static str, &'static str) {
    let mut ended = past.tokens.iter().filter(|token| plan.tokens.contains(&token.id));
    if ended.any(|token| token.has_checkpoint) {
        return ("retry_step", "steps were finished that need not be done again");
    }
    let Some(error) = error else {
        return ("retry_step", "nothing speaks against trying again");
    };
    match error.class {
        FailureClass::Timeout => ("retry_step", "time ran out; the next attempt has all of it again"),
        FailureClass::Network
        | FailureClass::ServerError
        | FailureClass::ProviderTransient
        | FailureClass::BreakerOpen
        | FailureClass::RateLimited
        | FailureClass::Unknown => ("retry_step", "what failed may have passed by now"),
        FailureClass::Validation if is_answer_of_peer(error) => (
            "discard_and_retry",
            "a peer refused what it was sent; what was written before is better taken back",
        ),
        FailureClass::Validation | FailureClass::Assertion => (
            "discard_and_retry",
            "something did not fit; what was written before it failed is better taken back",
        ),
        FailureClass::BadRequest | FailureClass::Auth | FailureClass::NotFound | FailureClass::Permanent => (
            "escalate",
            "trying again cannot help until a person has changed something",
        ),
    }
}

/// Whether another version of the workflow is the way out: the failure lies in what the document says. `mode` is the recommended
/// mode of a retry, if the run can be retried.
fn version_advice(run: &Run, mode: Option<&str>, errors: &BTreeMap<TokenId, Failure>) -> Value {
    let header = &run.header;
    let (id, workflow) = (&header.id, &header.workflow_id);
    let ways_on = match (header.status, mode) {
        (RunStatus::Failed | RunStatus::TimedOut, Some(mode)) => {
            // The new version is what a person has changed.
            let mode = if mode == "escalate" { "retry_step" } else { mode };
            format!("POST /v1/runs/{id}/retry {{\"mode\": \"{mode}\", \"version\": N}}")
        }
        // What was done is undone, or a path is lost.
        (RunStatus::Failed | RunStatus::TimedOut, None) => {
            format!("POST /v1/runs/{id}/restart {{\"version\": N}}")
        }
        (
            RunStatus::Completed
            | RunStatus::Cancelled
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Compensating,
            _,
        ) => return json!({"current": header.version, "recommended": false, "why": null, "how": null}),
    };
    let why = match header.reached_a_limit() {
        true => Some("the run met a limit of its document, and would meet it again"),
        false => header
            .error
            .iter()
            .chain(errors.values())
            .find_map(fault_of_document),
    };
    let how = why.map(|_| {
        format!("PUT /v1/workflows/{workflow} with a document that is fixed, then {ways_on} with N = the version that PUT answers")
    });
    json!({"current": header.version, "recommended": why.is_some(), "why": why, "how": how})
}

/// Why the same document would fail again, if it would.
fn fault_of_document(error: &Failure) -> Option<&'static str> {
    if error.code == "no_transition" {
        return Some("no transition of the document matched, and none would match again");
    }
    match error.class {
        // A declined card is no fault of the document.
        FailureClass::Validation if is_answer_of_peer(error) => None,
        FailureClass::Validation => Some(
            "a mapping, a condition, a schema or a size of the document did not fit, and would not fit again",
        ),
        FailureClass::BadRequest => {
            Some("a peer refused the request that the document makes, and would refuse it again")
        }
        FailureClass::NotFound => {
            Some("something that the document names was not found, and would not be found again")
        }
        FailureClass::Network
        | FailureClass::ServerError
        | FailureClass::ProviderTransient
        | FailureClass::RateLimited
        | FailureClass::Timeout
        | FailureClass::Auth
        | FailureClass::Assertion
        | FailureClass::Permanent
        | FailureClass::BreakerOpen
        | FailureClass::Unknown => None,
    }
}

/// The class is that of a status, such as 422.
fn is_answer_of_peer(error: &Failure) -> bool {
    error.code.starts_with("http_")
}

/// The tokens whose errors a deliverable shows.
pub fn tokens_with_errors(ended: &[TokenSummary]) -> Vec<TokenId> {
    let failed = ended.iter().filter(|token| token.has_error);
    failed.map(|token| token.id).take(ERRORS_SHOWN).collect()
}

/// Whether the run's deliverable needs its tokens. A completed run has its output, a run that has not ended has no deliverable.
pub fn shows_tokens(header: &Header) -> bool {
    match header.status {
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => true,
        RunStatus::Completed
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Compensating => false,
    }
}

/// The output of a completed run, or the partial results of another ended run. `errors` are those of `tokens_with_errors`.
pub fn deliverable(
    run: &Run,
    ended: &[TokenSummary],
    errors: &BTreeMap<TokenId, Failure>,
    timeouts: u64,
) -> Result<Value, Error> {
    let header = &run.header;
    let reason = match header.status {
        RunStatus::Completed => {
            return Ok(
                json!({"kind": "output", "status": "complete", "run_id": header.id, "output": header.output}),
            );
        }
        RunStatus::Failed | RunStatus::TimedOut => header
            .error
            .as_ref()
            .map_or("failed", |error| error.code.as_str()),
        RunStatus::Cancelled => "cancelled",
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
            let message = "the run has not ended; it has a deliverable when it has";
            return Err(Error::new(409, "run_not_ended", message));
        }
    };
    let mut completed: Vec<&TokenSummary> = ended
        .iter()
        .filter(|token| token.status == TokenStatus::Completed)
        .collect();
    sort_by_key(&mut completed, |token| (token.exit_order, token.id));
    let mut completed_nodes: Vec<&str> = Vec::new();
    for token in completed {
        let id = &*token.node_id;
        if completed_nodes.len() < NODES_SHOWN && !completed_nodes.contains(&id) {
            completed_nodes.push(id);
        }
    }
    let message = match &header.error {
        Some(error) => error.message.clone(),
        None => header
            .reason
            .clone()
            .unwrap_or_else(|| "the run was cancelled".into()),
    };
    let errors: Vec<Value> = ended
        .iter()
        .filter_map(|token| {
            let error = errors.get(&token.id)?;
            Some(json!({"token_id": token.id.to_string(), "node_id": token.node_id, "error": error}))
        })
        .collect();
    Ok(json!({
        "kind": "fallback",
        "status": "partial",
        "run_id": header.id,
        "reason": reason,
        "message": message,
        "completed_nodes": completed_nodes,
        "state": run.context().state(),
        "output": run.context().output(),
        "diagnostics": {
            "run_status": header.status,
            "attempt": header.attempt,
            "duration_ms": header.ended_at.map(|at| at.saturating_sub(header.started_at)),
            "errors": errors,
            "timeouts": timeouts,
            "resume": format!("/v1/runs/{}/resume", header.id),
        },
    }))
}
