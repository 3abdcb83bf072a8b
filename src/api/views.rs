//! What the API says of a run: shapes pinned by the contract. Pure, so that the shapes are tested natively.

use serde_json::{Map, Value, json};

use crate::engine::{Header, Run, TokenStatus};
use crate::model::time::Millis;
use crate::store::rows::TokenRow;

pub fn run(run: &Run, now: Millis) -> Value {
    let header = &run.header;
    let counts: Map<String, Value> = run
        .counts()
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| (status.name().to_string(), json!(count)))
        .collect();
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
        "timeout_at": header.timeout_at,
        "timeout_ms": header.timeout_ms,
        "duration_ms": header.ended_at.unwrap_or(now).saturating_sub(header.started_at),
        "deadlines": deadlines(run),
        "counts": counts,
        "root_run_id": header.id,
        "attempt": header.attempt,
        "tags": header.tags,
    });
    if let Some(reason) = &header.reason {
        view["reason"] = json!(reason);
    }
    view
}

fn deadlines(run: &Run) -> Vec<Value> {
    if run.header.status.is_terminal() {
        return Vec::new();
    }
    let workflow = run
        .header
        .timeout_at
        .map(|at| json!({"kind": "workflow", "due_at": at}));
    let tokens = run.live_tokens().filter_map(|token| {
        let at = token
            .timeout_at
            .filter(|_| token.status == TokenStatus::Executing)?;
        let node = &run.snapshot().workflow.nodes[token.node].id;
        Some(json!({"kind": "execution", "due_at": at, "token_id": token.id.to_string(), "node_id": node}))
    });
    workflow.into_iter().chain(tokens).collect()
}

pub fn token(id: u64, status: &str, row: TokenRow) -> Value {
    json!({
        "id": format!("t{id}"),
        "node_id": row.node_id,
        "status": status,
        "epoch": row.epoch,
        "retry_count": row.retry_count,
        "lane": row.lane,
        "parent_token_id": row.parent.map(|id| format!("t{id}")),
        "created_at": row.created_at,
        "dispatched_at": row.dispatched_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "timeout_at": row.timeout_at,
        "timeout_ms": row.timeout_ms,
        "reason": row.reason,
        "error": row.error,
        "output": row.output,
        "steps": row.steps,
    })
}

/// The run as the index lists it.
pub fn summary(header: &Header) -> Value {
    json!({
        "id": header.id,
        "workflow_id": header.workflow_id,
        "version": header.version,
        "status": header.status,
        "error": header.error,
        "started_at": header.started_at,
        "ended_at": header.ended_at,
        "timeout_at": header.timeout_at,
        "duration_ms": header.ended_at.map(|at| at.saturating_sub(header.started_at)),
        "attempt": header.attempt,
        "tags": header.tags,
    })
}
