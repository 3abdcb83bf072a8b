//! The table of legal status changes of a token: the engine agrees with it on every pair, and every legal change happens in
//! some run.

use std::collections::BTreeSet;

use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::TokenStatus::{self, *};
use curfew::run::{CallbackResult, Capability, Command, Event, Settings};
use serde_json::json;

use super::driver::{ROOM, complete_document, succeeded};
use super::history::{History, SETTINGS};
use curfew::simulate::Rng;

/// A status, and all statuses it may change to.
const LEGAL: &[(TokenStatus, &[TokenStatus])] = &[
    (
        Pending,
        &[
            Dispatched,
            Executing,
            WaitingForSiblings,
            WaitingForSubworkflow,
            AwaitingHuman,
            Suspended,
            Completed,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (
        Dispatched,
        &[
            Pending,
            Executing,
            AwaitingHuman,
            WaitingForSiblings,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (
        Executing,
        &[
            Pending,
            Suspended,
            AwaitingHuman,
            WaitingForSiblings,
            Completed,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (WaitingForSiblings, &[Completed, Failed, TimedOut, Cancelled]),
    (
        WaitingForSubworkflow,
        &[
            Pending,
            AwaitingHuman,
            WaitingForSiblings,
            Completed,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (
        AwaitingHuman,
        &[
            Pending,
            WaitingForSiblings,
            Completed,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (
        Suspended,
        &[
            Pending,
            AwaitingHuman,
            WaitingForSiblings,
            Completed,
            Failed,
            TimedOut,
            Cancelled,
        ],
    ),
    (Completed, &[]),
    (Failed, &[]),
    (TimedOut, &[]),
    (Cancelled, &[]),
];

#[test]
fn the_engine_agrees_with_the_table_on_every_pair() {
    for from in TokenStatus::ALL {
        let listed: Vec<_> = LEGAL.iter().filter(|(status, _)| *status == from).collect();
        assert_eq!(listed.len(), 1, "{from:?} stands once in the table");
        let (_, legal) = listed[0];
        for to in TokenStatus::ALL {
            assert_eq!(from.may_become(to), legal.contains(&to), "{from:?} to {to:?}");
        }
        assert_eq!(from.is_terminal(), legal.is_empty(), "{from:?}");
    }
}

#[test]
fn every_legal_change_happens_in_some_run_and_no_other_does() {
    let legal: BTreeSet<_> = LEGAL
        .iter()
        .flat_map(|(from, to)| to.iter().map(|to| (*from, *to)))
        .collect();
    let mut seen = input_fails_at_claim().moves();
    seen.extend(callback_reports_failure().moves());
    // Some changes are rare, so many seeds are tried; the search stops once all were seen.
    for seed in 0..6_000 {
        seen.extend(History::random(&mut Rng::seeded(seed), 40).moves());
        if seed >= 2_000 && legal.is_subset(&seen) {
            break;
        }
    }
    let uncovered: Vec<_> = legal.difference(&seen).collect();
    assert!(uncovered.is_empty(), "no run showed {uncovered:?}");
    let illegal: Vec<_> = seen.difference(&legal).collect();
    assert!(illegal.is_empty(), "runs showed {illegal:?}");
}

/// Too rare for random histories: the input mapping of a branch fails at its claim, and a transition leads into its join.
fn input_fails_at_claim() -> History {
    let settings = Settings {
        queue: true,
        ..SETTINGS
    };
    let join = json!({"sibling_group": "each", "on_branch_failure": "proceed_with_available"});
    let document = complete_document(json!({
        "timeout_ms": 840_000,
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work", "input_mapping": "${state.missing}"}, {"id": "j"}],
        "transitions": [
            {"id": "each", "from_node_id": "s", "to_node_id": "a", "spawn_count": 2},
            {"from_node_id": "a", "to_node_id": "j", "synchronization": join},
            {"from_node_id": "a", "to_node_id": "j", "on": "failure", "synchronization": join},
        ],
    }));
    let mut history = History::start(settings, ROOM, &document);
    let token = "t2".to_string();
    history.feed(
        1_100,
        Event::Claimed {
            token,
            epoch: 1,
            claimant: None,
        },
    );
    history
}

/// Also too rare: the callback of an async action reports a failure that escalates.
fn callback_reports_failure() -> History {
    let document = complete_document(json!({
        "nodes": [{"id": "a", "action_id": "hand-out", "escalate_on": ["unknown"]}],
        "actions": [{"id": "hand-out", "kind": "service_call", "implementation": {"binding": "PEER"},
            "execution": {"mode": "async"}}],
    }));
    let mut history = History::start(SETTINGS, ROOM, &document);
    let capability = history.decisions[0]
        .commands()
        .iter()
        .find_map(|command| match command {
            Command::DispatchTask(order) => Capability::parse(order.capability.as_deref()?),
            _others => None,
        });
    let understood = TaskReport {
        status: ReportStatus::Suspended,
        ..succeeded("t1@1", json!(null))
    };
    history.feed(1_100, Event::TaskReported(Box::new(understood)));
    history.feed(
        1_200,
        Event::CallbackReceived {
            capability: Box::new(capability.expect("an async action has a capability")),
            result: Box::new(CallbackResult::read(json!({"error": "no"}))),
        },
    );
    history
}
