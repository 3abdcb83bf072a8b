//! Pages of a run with a fan-out, a retry, a timeout, a child, a model, a tool, gates and a compensation.

use curfew::protocol::trace::TracePage;
use curfew::trace::span::Span;
use curfew::trace::trace_builder::TraceBuilder;
use serde_json::{Value, json};

pub const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn run() -> Value {
    json!({
        "run_id": "run-1", "started_at": 1_000, "workflow_id": "order", "version": 3, "attempt": 1, "end": 1,
        "status": "failed", "began_at": 1_000, "ended_at": 9_000,
        "error": {"code": "http_status", "class": "not_found"}, "traceparent": CALLER,
    })
}

fn step(step_ref: &str, action: &str, status: &str, duration_ms: u64) -> Value {
    json!({"action": action, "ref": step_ref, "status": status, "attempts": 1, "duration_ms": duration_ms})
}

fn with(mut value: Value, more: Value) -> Value {
    for (name, field) in more.as_object().into_iter().flatten() {
        value[name] = field.clone();
    }
    value
}

fn token(id: u64, node_id: &str, kind: &str, times: (u64, u64), more: Value) -> Value {
    let token = json!({
        "id": id, "node_id": node_id, "kind": kind, "status": "completed", "epoch": 1,
        "created_at": times.0, "started_at": times.0, "ended_at": times.1,
        "events": [
            {"seq": id * 10, "at": times.0, "kind": "token_created"},
            {"seq": id * 10 + 1, "at": times.0, "kind": "token_dispatched"},
            {"seq": id * 10 + 9, "at": times.1, "kind": "token_completed"},
        ],
    });
    with(token, more)
}

/// The events, then the tokens in two pages.
pub fn pages() -> Vec<Value> {
    let attempt_2 = "1d2e3f4a5b6c7d8e";
    let llm = with(
        step("ask", "llm_call", "completed", 900),
        json!({
            "started_at": 2_010, "attempts": 2,
            "retries": [{"class": "rate_limited", "code": "http_429", "delay_ms": 300, "after_ms": 100}],
            "gen_ai": {
                "operation": "chat", "provider": "openai", "request_model": "m-1", "response_model": "m-1-2026",
                "input_tokens": 7, "output_tokens": 3,
            },
        }),
    );
    let mcp = with(
        step("look", "mcp_tool", "completed", 50),
        json!({"started_at": 2_920, "span_id": attempt_2, "gen_ai": {"operation": "execute_tool", "tool": "search"}}),
    );
    let gate =
        json!({"id": "g5", "kind": "node", "opened_at": 4_000, "closed_at": 4_500, "status": "decided"});
    let run_gate = json!({"id": "w1", "kind": "workflow_timeout", "opened_at": 8_000, "closed_at": 8_400, "status": "timed_out"});
    vec![
        json!({
            "run": with(run(), json!({"gates": [run_gate]})),
            "events": [
                {"seq": 14, "at": 1_500, "kind": "token_timed_out", "token_id": "t1", "timeout_type": "execution",
                    "timeout_ms": 500, "policy": "retry"},
                {"seq": 15, "at": 1_500, "kind": "token_retried", "token_id": "t1", "delay_ms": 100},
                {"seq": 80, "at": 7_000, "kind": "deadline_warning"},
                {"seq": 90, "at": 9_000, "kind": "run_failed", "token_id": "t4", "code": "http_status"},
            ],
            "next": {"events": 90},
        }),
        json!({
            "run": run(),
            "tokens": [
                token(1, "load", "task", (1_000, 2_000), json!({
                    "epoch": 2, "lane": "direct", "only_step": ["get", "http_request"],
                    "steps": [step("get", "http_request", "completed", 300)],
                    "events": [
                        {"seq": 10, "at": 1_000, "kind": "token_created"},
                        {"seq": 11, "at": 1_000, "kind": "token_dispatched"},
                        {"seq": 16, "at": 1_600, "kind": "token_dispatched", "epoch": 2},
                        {"seq": 19, "at": 2_000, "kind": "token_completed"},
                    ],
                })),
                token(2, "think", "task", (2_000, 3_500), json!({
                    "lane": "direct", "steps": [llm, mcp], "joins_at": "done",
                    "branch": {"group": "each", "index": 0},
                })),
                token(3, "bill", "workflow", (2_000, 3_500), json!({
                    "joins_at": "done", "branch": {"group": "each", "index": 1},
                    "events": [
                        {"seq": 30, "at": 2_000, "kind": "token_created"},
                        {"seq": 31, "at": 2_000, "kind": "subworkflow_started", "child_run_id": "run-1~t3"},
                        {"seq": 38, "at": 3_100, "kind": "subworkflow_ended", "child_run_id": "run-1~t3"},
                    ],
                })),
            ],
            "next": {"tokens": 3},
        }),
        json!({
            "run": run(),
            "tokens": [
                token(4, "send", "task", (3_500, 4_000), json!({
                    "status": "failed", "lane": "queue",
                    "error": {"code": "http_status", "class": "not_found", "step_ref": "post"},
                    "steps": [step("post", "http_request", "failed", 400), step("log", "update_context", "skipped", 0)],
                })),
                token(5, "approve", "gate", (4_000, 4_500), json!({
                    "epoch": 0, "gates": [gate], "events": [{"seq": 50, "at": 4_000, "kind": "token_created"}],
                })),
                token(6, "rest", "wait", (4_500, 6_000), json!({
                    "epoch": 0, "events": [{"seq": 60, "at": 4_500, "kind": "token_created"}],
                })),
                token(7, "stock~compensate", "compensation", (6_000, 6_500), json!({
                    "lane": "inline", "compensates": "t1",
                    "steps": [step("undo", "update_context", "completed", 0)],
                })),
            ],
        }),
    ]
}

pub fn read(pages: Vec<Value>) -> Vec<TracePage> {
    let read = |page| serde_json::from_value(page).expect("a page can be read");
    pages.into_iter().map(read).collect()
}

pub fn spans_of(pages: Vec<TracePage>) -> Vec<Span> {
    let mut builder = TraceBuilder::default();
    pages.into_iter().flat_map(|page| builder.add(page)).collect()
}
