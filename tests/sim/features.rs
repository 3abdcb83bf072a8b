//! Which faults, and which features of workflows and runs, the simulations met: what never happens is not tested.

use std::collections::BTreeMap;

use curfew::definition::node::{NodeKind, NodeRole};
use curfew::definition::snapshot::Snapshot;
use curfew::definition::wait::Wait;
use curfew::run::{Event, Run, RunEventKind, Token, Write};
use curfew::simulate::Faults;

use super::environment::Environment;
use super::faults::Disturbances;

impl Environment {
    pub fn count_features(&self, run: &Run, event: &Event, is_accepted: bool, writes: &[Write]) {
        let outcome = &mut *self.outcome.borrow_mut();
        let request = match event {
            Event::FromParent { event, .. } => match &**event {
                Event::CancelRequested { .. } => Some("cancel by the parent"),
                Event::ParentHolds { .. } => Some("pause by the parent"),
                _other => None,
            },
            Event::RestartRequested { from: None, .. } => Some("restart"),
            Event::RestartRequested { from: Some(_), .. } => Some("restart from a node"),
            Event::RetryRequested { mode, .. } => Some(mode.name()),
            Event::CancelRequested { .. } => Some("cancel"),
            Event::PauseRequested { .. } => Some("pause"),
            Event::ResumeRequested { .. } => Some("resume"),
            _other => None,
        };
        if let Some(request) = request.filter(|_| is_accepted) {
            outcome.count(format!("request {request}"));
        }
        for write in writes {
            match write {
                Write::SaveToken(token) if token.status.is_terminal() => {
                    let kind = kind_of(run.snapshot_of(token.id), token);
                    outcome.count(format!("token {kind} {}", token.status.name()));
                    if let Some(reason) = &token.reason {
                        outcome.count(format!("reason {reason}"));
                    }
                    for event in &token.events {
                        outcome.count(event_name(event.kind));
                    }
                }
                Write::SaveInstance(instance) if instance.is_closed() => {
                    for event in &instance.events {
                        outcome.count(event_name(event.kind));
                    }
                    let snapshot = run.snapshot_of_instance(instance.id);
                    let join = snapshot.joins_of(&instance.group).next();
                    let join =
                        join.and_then(|join| snapshot.workflow.transitions[join].synchronization.as_ref());
                    if let Some(join) = join.filter(|_| instance.has_fired()) {
                        let strategy = format!("{:?}", join.strategy);
                        let strategy = strategy.split('(').next().unwrap_or_default();
                        outcome.count(format!("join {strategy}"));
                        outcome.count(format!("join {:?}", join.on_early_complete));
                        let merge = join.merge.as_ref();
                        let merge = merge.map_or("none".into(), |merge| format!("{:?}", merge.strategy));
                        outcome.count(format!("merge {merge}"));
                    }
                }
                Write::SaveGate(gate) => {
                    for event in &gate.events {
                        outcome.count(event_name(event.kind));
                    }
                    if let Some(decision) = &gate.decision {
                        outcome.count(format!("gate {:?} {}", gate.kind, decision.choice));
                    }
                }
                Write::SaveEvent(event) => outcome.count(event_name(event.kind)),
                _other => {}
            }
        }
    }
}

fn event_name(kind: RunEventKind) -> String {
    format!("event {}", kind.name())
}

fn kind_of(snapshot: &Snapshot, token: &Token) -> &'static str {
    let node = &snapshot.workflow.nodes[token.node];
    match (node.role, &node.kind) {
        (NodeRole::Compensation { .. }, _) => "compensation",
        (NodeRole::EndHandler, _) => "end handler",
        (NodeRole::Declared, NodeKind::Task { .. }) => "task",
        (NodeRole::Declared, NodeKind::Action { .. }) => "action",
        (NodeRole::Declared, NodeKind::Workflow { .. }) => "workflow",
        (NodeRole::Declared, NodeKind::Gate(_)) => "gate",
        (NodeRole::Declared, NodeKind::PassThrough) => "pass-through",
        (NodeRole::Declared, NodeKind::Wait(wait)) => match **wait {
            Wait::Sleep(_) => "sleep",
            Wait::Until(_) => "until",
            Wait::Signal { .. } => "signal",
        },
    }
}

/// What the simulations are supposed to meet, as `count_features` names it.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "event",
        &[
            "attempt_reaped",
            "deadline_warning",
            "dispatch_rung_again",
            "fan_in_completed",
            "fan_in_started",
            "fan_out_started",
            "gate_decided",
            "gate_opened",
            "gate_reminded",
            "gate_timed_out",
            "late_result_discarded",
            "limit_exceeded",
            "run_cancelled",
            "run_compensating",
            "run_completed",
            "run_extended",
            "run_failed",
            "run_paused",
            "run_restarted",
            "run_resumed",
            "run_retried",
            "run_timed_out",
            "signal_received",
            "subworkflow_ended",
            "subworkflow_paused",
            "subworkflow_resumed",
            "subworkflow_started",
            "sync_timed_out",
            "token_cancelled",
            "token_completed",
            "token_created",
            "token_dispatched",
            "token_failed",
            "token_retried",
            "token_timed_out",
        ],
    ),
    ("fault", Faults::NAMES),
    ("fault", Disturbances::NAMES),
    ("gate Escalation", &["fail", "retry", "skip"]),
    ("gate Node", &["approve", "reject"]),
    ("gate WorkflowTimeout", &["abort", "extend", "fail"]),
    (
        "join",
        &["All", "Any", "MOfN", "Abandon", "AllowLateMerge", "Cancel"],
    ),
    (
        "merge",
        &[
            "Append",
            "Concat",
            "KeyedByBranch",
            "LastWins",
            "MergeObject",
            "none",
        ],
    ),
    (
        "reason",
        &["abandoned", "branch_arrived_before", "late_merge", "sync_timeout"],
    ),
    (
        "request",
        &[
            "cancel",
            "cancel by the parent",
            "discard_and_retry",
            "escalate",
            "pause",
            "pause by the parent",
            "restart",
            "restart from a node",
            "resume",
            "retry_step",
        ],
    ),
    ("token action", ENDS),
    ("token compensation", ENDS),
    ("token end handler", ENDS),
    ("token gate", ENDS),
    ("token pass-through", ENDS),
    ("token signal", ENDS),
    ("token sleep", ENDS),
    ("token until", ENDS),
    ("token workflow", ENDS),
];

const ENDS: &[&str] = &["cancelled", "completed", "failed", "timed_out"];

/// Fails if something of the list never happened.
pub fn check_features(found: &BTreeMap<String, u64>) {
    let expected = FEATURES
        .iter()
        .flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}")));
    let missing: Vec<String> = expected.filter(|feature| !found.contains_key(feature)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

#[test]
#[should_panic(expected = "never happened: [\"fault pause\"]")]
fn a_feature_that_never_happens_is_found() {
    let all = FEATURES
        .iter()
        .flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}")));
    check_features(
        &all.filter(|feature| feature != "fault pause")
            .map(|feature| (feature, 1))
            .collect(),
    );
}
