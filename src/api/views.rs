//! JSON views of runs, gates and tokens, as the API returns them. Golden files pin these shapes.

use serde_json::{Value, json};

use crate::base::ordered::object_of;
use crate::base::time::Millis;
use crate::run::{GateState, Header, Run, TokenStatus, TriggeredBy};
use crate::storage::rows::TokenRow;

pub fn run(run: &Run, now: Millis) -> Value {
    let header = &run.header;
    let counts = run.counts().iter().filter(|(_, count)| **count > 0);
    let counts = object_of(counts.map(|(status, count)| (status.name().to_string(), json!(count))));
    let mut view = json!({
        "id": header.id,
        "workflow_id": header.workflow_id,
        "version": header.version,
        "status": header.status,
        "input": &*run.context().input,
        "output": header.output,
        "error": header.error,
        "context": {"state": run.context().state(), "output": run.context().output()},
        "started_at": header.started_at,
        "ended_at": header.ended_at,
        "timeout_at": header.limit_due_at(),
        "timeout_ms": header.timeout_ms,
        "duration_ms": header.ended_at.unwrap_or(now).saturating_sub(header.started_at),
        "deadlines": deadlines(run),
        "counts": counts,
        "root_run_id": header.root_run_id,
        "attempt": header.attempt,
        "tags": header.tags,
    });
    if let Some(parent) = &header.parent {
        view["parent"] = json!({"run_id": parent.run_id, "token_id": parent.token_id});
    }
    if let Some(event) = &header.triggered_by {
        view["triggered_by"] = triggered_by(event);
    }
    if let Some(name) = &header.started_by {
        view["started_by"] = json!(name);
    }
    if !header.pause_reasons.is_empty() {
        view["paused_by"] = json!(header.pause_reasons);
    }
    if let Some(open) = run.gate_of_run() {
        view["gate"] = gate(&header.id, open);
    }
    if let Some(reason) = &header.reason {
        view["reason"] = json!(reason);
    }
    if let Some(ending) = &header.ending {
        view["ends_as"] = json!(ending.status);
        view["error"] = json!(ending.error);
    }
    if let Some(compensation) = &header.compensation {
        view["compensation"] = json!(compensation);
    }
    if !header.on_end.is_empty() {
        view["on_end"] = json!(header.on_end);
    }
    view
}

/// All deadlines of the run: absolute times, or remaining milliseconds while their clock stands still. A pause stops all of
/// them, a gate only the run's own and those of children that wait at one.
fn deadlines(run: &Run) -> Vec<Value> {
    if run.header.status.is_terminal() {
        return Vec::new();
    }
    let paused_at = run.header.paused_at;
    let deadline = |kind: &str, at: Millis, stopped_at: Option<Millis>| match stopped_at.or(paused_at) {
        None => json!({"kind": kind, "due_at": at}),
        Some(stopped_at) => json!({"kind": kind, "remaining_ms": at.saturating_sub(stopped_at)}),
    };
    let limit_at = run.header.timeout_at;
    let workflow = match &run.header.ending {
        Some(ending) => Some(deadline("compensation", ending.deadline_at, None)),
        None => limit_at.map(|at| deadline("workflow", at, run.header.stopped_at)),
    };
    let nodes = &run.snapshot().workflow.nodes;
    let tokens = run.live_tokens().filter_map(|token| {
        let (kind, at) = match token.status {
            TokenStatus::Executing | TokenStatus::WaitingForSubworkflow => {
                let is_capped = token.deadline.at.is_some() && token.deadline.stopped_at.is_none();
                let run_ends_at = limit_at.filter(|_| is_capped);
                (
                    "execution",
                    token.deadline.at.into_iter().chain(run_ends_at).min(),
                )
            }
            TokenStatus::AwaitingHuman => ("gate", token.deadline.at),
            TokenStatus::Suspended => ("wait", token.deadline.at.or(token.watch_at)),
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => return None,
        };
        let mut view = deadline(kind, at?, token.deadline.stopped_at);
        view["token_id"] = json!(token.id.to_string());
        view["node_id"] = json!(nodes[token.node].shown_id());
        if token.status == TokenStatus::AwaitingHuman {
            view["gate_id"] = json!(run.gate_id_of(token.id));
        }
        Some(view)
    });
    let joins = run
        .instances()
        .flat_map(|instance| &instance.fan_ins)
        .filter_map(|(node, fan_in)| {
            let mut view = deadline(
                "synchronization",
                fan_in.timeout_at.filter(|_| fan_in.fired_at().is_none())?,
                None,
            );
            view["node_id"] = json!(nodes[*node].id);
            Some(view)
        });
    // A pause does not stop the deadline of the run's own gate.
    let gate = run.gate_of_run().and_then(|gate| {
        gate.timeout_at
            .map(|at| json!({"kind": "gate", "due_at": at, "gate_id": gate.id}))
    });
    workflow
        .into_iter()
        .chain(tokens)
        .chain(joins)
        .chain(gate)
        .collect()
}

pub fn gate(run_id: &str, gate: &GateState) -> Value {
    gate.view(run_id)
}

/// The deadline shown is the token's or its run's, whichever is earlier. It has no moment while its clock stands still.
pub fn token(id: u64, status: TokenStatus, row: TokenRow, run_ends_at: Option<Millis>) -> Value {
    let timeout_at = row.timeout_at.filter(|_| row.deadline_stopped_at.is_none());
    let timeout_at = timeout_at.map(|at| run_ends_at.map_or(at, |ends_at| at.min(ends_at)));
    let branch = row.branch.map(|branch| {
        json!({
            "group": branch.group,
            "instance": branch.instance,
            "index": branch.index,
            "total": branch.total,
            "item": branch.item,
            "output": if branch.output_is_result { row.output.clone().unwrap_or_default() } else { branch.output },
        })
    });
    let (node_id, role) = match row.node_id.split_once('~') {
        Some((node_id, role)) => (node_id, Some(role)),
        None => (row.node_id.as_str(), None),
    };
    let mut view = json!({
        "id": format!("t{id}"),
        "branch": branch,
        "node_id": node_id,
        "status": status.name(),
        "epoch": row.epoch,
        "retry_count": row.retry_count,
        "lane": row.lane,
        "parent_token_id": row.parent.map(|id| format!("t{id}")),
        "created_at": row.created_at,
        "dispatched_at": row.dispatched_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "timeout_at": timeout_at,
        "timeout_ms": row.timeout_ms,
        "timeout_reason": row.timeout_reason,
        "reason": row.reason,
        // An escalated token has no error yet: its failure is part of the escalation until the gate is decided.
        "error": row.error.or(row.escalation.map(|escalation| escalation.failure)),
        "output": row.output,
        "steps": row.steps,
    });
    if let Some(progress) = row.progress {
        view["progress"] = json!(progress);
    }
    match (role, row.compensates) {
        (Some(_), Some(compensates)) => {
            view["compensation"] = json!(true);
            view["compensates"] = json!(compensates.token);
        }
        (Some(_), None) => view["on_end"] = json!(true),
        (None, _) => {}
    }
    view
}

/// The run's entry in lists.
pub fn summary(header: &Header) -> Value {
    let mut view = json!({
        "id": header.id,
        "workflow_id": header.workflow_id,
        "version": header.version,
        "status": header.status,
        "error": header.error,
        "started_at": header.started_at,
        "ended_at": header.ended_at,
        "timeout_at": header.limit_due_at(),
        "duration_ms": header.ended_at.map(|at| at.saturating_sub(header.started_at)),
        "attempt": header.attempt,
        "tags": header.tags,
        "parent": header.parent.as_ref().map(|parent| json!({"run_id": parent.run_id, "token_id": parent.token_id})),
    });
    if let Some(event) = &header.triggered_by {
        view["triggered_by"] = triggered_by(event);
    }
    view
}

fn triggered_by(event: &TriggeredBy) -> Value {
    json!({"event": event.event, "key": event.key})
}
