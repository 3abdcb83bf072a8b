//! Warnings about time: limits that are missing, that cannot fit inside of the one around them, or that something else ends first.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::analysis::bounds::Bounds;
use crate::analysis::lint::Lint;
use crate::analysis::node_bounds::policy_of_timeout;
use crate::analysis::quickest;
use crate::base::time::{Limit, format_duration};
use crate::definition::action::{Action, ActionKind, ExecutionTimeoutPolicy};
use crate::definition::node::{NodeKind, NodeRole};
use crate::definition::step::{Step, StepAction};
use crate::definition::wait::{SleepLength, Wait};
use crate::run::Settings;

pub fn check(lint: &Lint, settings: &Settings, bounds: &Bounds) {
    for node in (0..lint.graph.node_count).filter(|node| lint.graph.reachable[*node]) {
        lint.graph.steps.add(1);
        warn_of_attempts(lint, settings, node);
        warn_of_calls(lint, node);
        warn_of_waits(lint, node);
        warn_of_called_workflow(lint, node);
    }
    warn_of_sleeps(lint, bounds);
    warn_of_joins(lint);
    warn_of_missing_limits(lint);
}

/// Fields that are a timeout, wherever they are.
const TIMEOUTS: &[&str] = &["timeout", "timeout_ms"];

/// `attempts x timeout + delays` of a node under the run's limit.
fn warn_of_attempts(lint: &Lint, settings: &Settings, node: usize) {
    let Some(run_ms) = lint.run.limit_ms else {
        return;
    };
    let found = &lint.snapshot.workflow.nodes[node];
    if !found.kind.is_executed() || found.adaptive {
        return;
    }
    // Retries of a call are made as far as there is time; an attempt is what somebody wrote.
    let Some(attempt_ms) = lint.snapshot.execution_limit(node).without_retries.millis() else {
        return;
    };
    let retries = match policy_of_timeout(lint.snapshot, node, false) {
        Some(ExecutionTimeoutPolicy::Retry) => found.max_retries,
        Some(ExecutionTimeoutPolicy::Fail) | None => 0,
    };
    let delays = (0..retries).map(|retry| {
        settings
            .retry_delay_ms
            .saturating_mul(1 << retry.min(16))
            .min(60_000)
    });
    let delays_ms = delays.fold(0, u64::saturating_add);
    let attempts = u64::from(retries) + 1;
    let needed_ms = attempt_ms.saturating_mul(attempts).saturating_add(delays_ms);
    if needed_ms <= run_ms {
        return;
    }
    let what = match retries {
        0 => format!("an attempt of {}", format_duration(attempt_ms)),
        _several => format!(
            "{attempts} attempts of {} with their delays need {}, which",
            format_duration(attempt_ms),
            format_duration(needed_ms)
        ),
    };
    lint.warn(
        &lint.field(&format!("/nodes/{node}"), TIMEOUTS),
        "deadline_cannot_fit",
        format!(
            "{what} cannot fit inside of the run's limit of {}; shorten it, allow fewer retries, or give the workflow a longer \
             \"timeout\"",
            format_duration(run_ms)
        ),
    );
}

/// Calls of a task under the limit of the task or of its node.
fn warn_of_calls(lint: &Lint, node: usize) {
    let Some(task) = lint.snapshot.task_of(node) else {
        return;
    };
    let found = &lint.snapshot.workflow.nodes[node];
    let Some(attempt_ms) = found.timeout.or(task.task.timeout).millis() else {
        return;
    };
    let pointer = lint.field(&format!("/nodes/{node}"), TIMEOUTS);
    let limit = format_duration(attempt_ms);
    let mut all_ms = 0u64;
    for step in &task.task.steps {
        lint.graph.steps.add(1);
        let StepAction::Inline(action) = &step.action else {
            continue;
        };
        if let Some(total_ms) = action
            .retry
            .total_timeout
            .millis()
            .filter(|total_ms| *total_ms > attempt_ms)
        {
            let message = format!(
                "the \"total_timeout\" of {} of step \"{}\" never passes, because an attempt ends after {limit}; shorten it, \
                 or write a longer limit here",
                format_duration(total_ms),
                step.reference
            );
            return lint.warn(&pointer, "deadline_cannot_fit", message);
        }
        let Some(needed_ms) = needed_for_calls(step, action) else {
            continue;
        };
        all_ms = all_ms.saturating_add(needed_ms);
        if needed_ms > attempt_ms {
            let message = format!(
                "the calls of step \"{}\" with the delays between them need {}, but an attempt ends after {limit}; shorten the \
                 action's timeout, lower its \"max_attempts\", or write a longer limit here",
                step.reference,
                format_duration(needed_ms)
            );
            return lint.warn(&pointer, "deadline_cannot_fit", message);
        }
    }
    if all_ms > attempt_ms {
        let message = format!(
            "by their own limits the calls of all steps may need {} together, but an attempt ends after {limit}; shorten the \
             actions' timeouts, or write a longer limit here",
            format_duration(all_ms)
        );
        lint.warn(&pointer, "deadline_cannot_fit", message);
    }
}

/// Sleeps that together are longer than the limit of the run, on every way to an end.
fn warn_of_sleeps(lint: &Lint, bounds: &Bounds) {
    let Some(run_ms) = lint.run.limit_ms else {
        return;
    };
    let is_too_long = |node: usize| {
        let sleep_ms = quickest::sleep_ms(lint.graph, node);
        lint.graph.reachable[node] && sleep_ms >= run_ms
    };
    let least_ms = quickest::least_ms(bounds);
    // A single one that is too long has its own warning.
    if least_ms < run_ms || (0..lint.graph.node_count).any(is_too_long) {
        return;
    }
    let run = format_duration(run_ms);
    lint.warn(
        &lint.field("", TIMEOUTS),
        "deadline_cannot_fit",
        format!(
            "on every way to an end a run sleeps for at least {}, so its limit of {run} always passes first; shorten the waits, \
             or write a longer \"timeout\"",
            format_duration(least_ms)
        ),
    );
}

/// What the calls of a step take if each times out or fails, as far as the document asks for them.
fn needed_for_calls(step: &Step, action: &Action) -> Option<u64> {
    let call_ms = step.call_limit(action, Limit::Unset).millis()?;
    // Retries that nobody wrote are made as far as there is time.
    let calls = u64::from(action.retry.attempts_max.unwrap_or(1).max(1));
    let delays = (1..calls).map(|retry| action.retry.delay_ms(retry as u32, 0.0));
    let delays_ms = delays.fold(0, u64::saturating_add);
    let needed_ms = call_ms.saturating_mul(calls).saturating_add(delays_ms);
    Some(needed_ms.min(action.retry.total_timeout.millis().unwrap_or(u64::MAX)))
}

/// Waits that the run's limit ends first. At gates its clock stands still, unless the workflow says otherwise.
fn warn_of_waits(lint: &Lint, node: usize) {
    let Some(run_ms) = lint.run.limit_ms else {
        return;
    };
    let run = format_duration(run_ms);
    match &lint.snapshot.workflow.nodes[node].kind {
        NodeKind::Gate(gate) => {
            let is_cut = gate.timeout.millis().is_none_or(|millis| millis >= run_ms);
            if is_cut && !lint.run.stops_at_gates {
                lint.warn(
                    &lint.field(&format!("/nodes/{node}/gate"), TIMEOUTS),
                    "gate_cut_by_limit",
                    format!(
                        "with \"clock\": \"runs\" the run's limit of {run} ends this gate before its own deadline; write a \
                         shorter one, a longer \"timeout\" of the workflow, or leave \"clock\" out"
                    ),
                );
            }
        }
        NodeKind::Wait(wait) => {
            let (millis, fields) = match &**wait {
                Wait::Sleep(SleepLength::Millis(millis)) => (*millis, &["sleep", "sleep_ms"][..]),
                Wait::Sleep(SleepLength::Computed(_)) | Wait::Until(_) => return,
                Wait::Signal { timeout, .. } => (timeout.millis().unwrap_or(0), TIMEOUTS),
            };
            if millis >= run_ms {
                lint.warn(
                    &lint.field(&format!("/nodes/{node}/wait"), fields),
                    "deadline_cannot_fit",
                    format!(
                        "a wait of {} cannot fit inside of the run's limit of {run}; shorten it, or give the workflow a longer \
                         \"timeout\"",
                        format_duration(millis)
                    ),
                );
            }
        }
        NodeKind::Task { .. }
        | NodeKind::Action { .. }
        | NodeKind::Workflow { .. }
        | NodeKind::PassThrough => {}
    }
}

/// A called workflow whose own limit is longer than that of its caller, or that has none.
fn warn_of_called_workflow(lint: &Lint, node: usize) {
    if lint.snapshot.call_of(node).is_none() || lint.snapshot.execution_limit(node).limit.millis().is_some() {
        return;
    }
    let child = lint.snapshot.stored.node_children.get(node).copied().flatten();
    let Some(child) = child.and_then(|index| lint.snapshot.stored.children.get(index)) else {
        return;
    };
    let pointer = lint.field(
        &format!("/nodes/{node}"),
        &["workflow_id", "action_id", "task_id"],
    );
    let is_written = TIMEOUTS.iter().any(|field| child.workflow.get(field).is_some());
    let id = child.workflow["id"].as_str().unwrap_or_default();
    let limit_ms = lint.called.of_node(node).limit_ms;
    match (limit_ms, lint.run.limit_ms) {
        (None, _) if is_written => lint.warn(
            &pointer,
            "no_timeout",
            format!(
                "workflow \"{id}\" has no limit, and this node sets none; write \"timeout\" here, for a called workflow \
                 30m to 1h"
            ),
        ),
        (Some(child_ms), Some(run_ms)) if child_ms > run_ms && is_written => lint.warn(
            &pointer,
            "deadline_cannot_fit",
            format!(
                "workflow \"{id}\" may take {}, but this run's limit is {}; write a shorter \"timeout\" here, or a longer one \
                 for the workflow",
                format_duration(child_ms),
                format_duration(run_ms)
            ),
        ),
        (None | Some(_), None | Some(_)) => {}
    }
}

fn warn_of_joins(lint: &Lint) {
    let Some(run_ms) = lint.run.limit_ms else {
        return;
    };
    for (index, transition) in lint.graph.workflow.transitions.iter().enumerate() {
        let Some(join) = &transition.synchronization else {
            continue;
        };
        if let Limit::After(millis) = join.timeout
            && millis >= run_ms
        {
            lint.warn(
                &lint.field(&format!("/transitions/{index}/synchronization"), TIMEOUTS),
                "sync_outlives_run",
                format!(
                    "the run's limit of {} ends before this wait of {}; shorten the wait, or give the workflow a longer \
                     \"timeout\"",
                    format_duration(run_ms),
                    format_duration(millis)
                ),
            );
        }
    }
}

/// The range that is usual for a kind of call. None: its duration says little.
fn recommended(kind: &ActionKind) -> Option<&'static str> {
    match kind {
        ActionKind::LlmCall(_) => Some("2m to 5m"),
        ActionKind::HttpRequest(_) | ActionKind::McpTool(_) => Some("30s to 2m"),
        ActionKind::WorkflowCall(_) => Some("30m to 1h"),
        ActionKind::ServiceCall(_)
        | ActionKind::Shell(_)
        | ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_) => None,
    }
}

/// Calls that nothing but the run's own limit ends, or in a compensation or an end handler the time that all of them have.
fn warn_of_missing_limits(lint: &Lint) {
    let mut reported = BTreeSet::new();
    for (node, found) in lint.snapshot.workflow.nodes.iter().enumerate() {
        let what_ends_it = match found.role {
            NodeRole::Declared => "the run's limit",
            NodeRole::Compensation { .. } | NodeRole::EndHandler => "the \"timeout\" of \"compensation\"",
        };
        let is_call = lint.snapshot.call_of(node).is_some();
        if is_call || lint.snapshot.execution_limit(node).limit.millis().is_some() {
            continue;
        }
        let Some(task) = lint.snapshot.task_of(node) else {
            continue;
        };
        for step in &task.task.steps {
            lint.graph.steps.add(1);
            let StepAction::Inline(action) = &step.action else {
                continue;
            };
            let is_limited = lint.snapshot.call_limit(step, action).millis().is_some()
                || action.retry.total_timeout.millis().is_some();
            let Some(range) = recommended(&action.kind).filter(|_| !is_limited) else {
                continue;
            };
            let pointer = action_pointer(lint, node, step);
            if reported.insert(pointer.clone()) {
                lint.warn(
                    &pointer,
                    "no_timeout",
                    format!(
                        "this {} has no timeout, so only {what_ends_it} ends it; write \"execution\": {{\"timeout\": ...}}, \
                         usually {range}",
                        action.kind.text()
                    ),
                );
            }
        }
    }
}

/// Where the action of a step is written: in the document, or the reference that leads to it.
fn action_pointer(lint: &Lint, node: usize, step: &Step) -> String {
    let document = lint.document;
    let reference = lint.reference_pointer(node);
    let position = |list: &str, id: &Value| {
        let documents = document[list].as_array()?;
        documents
            .iter()
            .position(|other| other["id"] == *id && id.is_string())
    };
    let found = document.pointer(&reference).unwrap_or(&Value::Null);
    if let Some(index) = position("actions", &found["action_id"]) {
        return format!("/actions/{index}");
    }
    let Some(task) = position("tasks", &found["task_id"]) else {
        return lint.field(&reference, &["action_id", "task_id"]);
    };
    let steps = document["tasks"][task]["steps"].as_array();
    let is_meant = |(index, other): &(usize, &Value)| {
        let reference = other["ref"].as_str().map(str::to_string);
        reference.unwrap_or_else(|| format!("step-{}", index + 1)) == step.reference
    };
    let Some((index, written)) = steps.into_iter().flatten().enumerate().find(is_meant) else {
        return format!("/tasks/{task}");
    };
    match position("actions", &written["action_id"]) {
        Some(action) => format!("/actions/{action}"),
        None => format!("/tasks/{task}/steps/{index}"),
    }
}

/// `timeout: null` in any document: nothing but what is around it ends the wait.
pub fn warn_of_null(document: &Value, pointer: &str, report: &dyn Fn(&str, &'static str, String)) {
    const NAMES: &[&str] = &["timeout", "timeout_ms", "timeout_override", "timeout_override_ms"];
    /// Objects whose fields are limits.
    const PLACES: &[&str] = &[
        "nodes",
        "transitions",
        "tasks",
        "actions",
        "steps",
        "action",
        "execution",
        "synchronization",
        "gate",
        "wait",
        "compensate",
    ];
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                let below = format!("{pointer}/{name}");
                if NAMES.contains(&name.as_str()) && value.is_null() {
                    let message =
                        "null means no limit here; write a duration, or leave the field out for the default";
                    report(&below, "null_timeout", message.into());
                }
                if PLACES.contains(&name.as_str()) {
                    warn_of_null(value, &below, report);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                warn_of_null(item, &format!("{pointer}/{index}"), report);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
