//! The table of moves a token may make: every pair is listed once, the engine agrees with it, and each legal move is
//! one that really happens.

use std::collections::BTreeSet;

use curfew::engine::TokenStatus::{self, *};

use super::dice::Dice;
use super::history::History;

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
    let mut seen = BTreeSet::new();
    // Some moves are rare; most seeds after they were all seen would show nothing new.
    for seed in 0..12_000 {
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
