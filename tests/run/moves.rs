//! The table of moves a token may make: every pair is listed once, the engine agrees with it, and each legal move is
//! one that really happens.

use std::collections::BTreeSet;

use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::TokenStatus::{self, *};
use curfew::run::{CallbackResult, Capability, Command, Event, Settings};
use serde_json::json;

use super::dice::Dice;
use super::driver::{ROOM, complete_document, succeeded};
use super::history::{History, SETTINGS};

/// From, then all it may become.
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
fn every_pair_of_statuses_is_legal_or_not_as_the_table_says() {
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
fn every_legal_move_happens_in_some_run_and_no_other_does() {
    let legal: BTreeSet<_> = LEGAL
        .iter()
        .flat_map(|(from, to)| to.iter().map(|to| (*from, *to)))
        .collect();
    let mut seen = fails_at_its_claim().moves();
    seen.extend(is_called_back_with_a_failure().moves());
    // Some moves are rare; most seeds after they were all seen would show nothing new.
    for seed in 0..6_000 {
        seen.extend(History::random(&mut Dice::seeded(seed), 40).moves());
        if seed >= 2_000 && legal.is_subset(&seen) {
            break;
        }
    }
    let uncovered: Vec<_> = legal.difference(&seen).collect();
    assert!(uncovered.is_empty(), "no run showed {uncovered:?}");
    let illegal: Vec<_> = seen.difference(&legal).collect();
    assert!(illegal.is_empty(), "runs showed {illegal:?}");
}

/// Too rare to wait for: a branch whose input cannot be made once it is claimed, with a route into its join.
fn fails_at_its_claim() -> History {
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

/// Too rare as well: the callback of an async action brings a failure that a person is to look at.
fn is_called_back_with_a_failure() -> History {
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
