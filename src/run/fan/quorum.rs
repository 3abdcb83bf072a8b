//! The rule of a join: how many branches it needs, and whether they can still arrive.

use crate::definition::fan::{BranchFailurePolicy, Strategy, Synchronization};

/// The branches of an instance, as one of its joins sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct BranchCounts {
    /// Arrived by a success route.
    pub completed: u32,
    /// Still under way: they may arrive.
    pub pending: u32,
    pub total: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Quorum {
    Reached,
    Open,
    /// Too few branches are left.
    Unreachable,
}

pub(in crate::run) fn quorum(join: &Synchronization, branches: BranchCounts) -> Quorum {
    decide(join.strategy, join.on_branch_failure, branches)
}

/// Whether a join with these branches fires now or may fire later.
pub(in crate::run) fn may_fire(join: &Synchronization, branches: BranchCounts) -> bool {
    match quorum(join, branches) {
        Quorum::Reached | Quorum::Open => true,
        Quorum::Unreachable => false,
    }
}

/// How many branches of `total` must complete.
pub(in crate::run) fn needed(join: &Synchronization, total: u32) -> u32 {
    needed_of(join.strategy, join.on_branch_failure, total)
}

fn needed_of(strategy: Strategy, on_branch_failure: BranchFailurePolicy, total: u32) -> u32 {
    match (strategy, on_branch_failure) {
        (Strategy::Any, _) => 1,
        (Strategy::MOfN(count), _) => count,
        (Strategy::All, BranchFailurePolicy::Fail) => total,
        // The join waits for every pending branch; then one arrival is enough.
        (Strategy::All, BranchFailurePolicy::ProceedWithAvailable) => 1,
    }
}

fn decide(strategy: Strategy, on_branch_failure: BranchFailurePolicy, branches: BranchCounts) -> Quorum {
    let BranchCounts {
        completed,
        pending,
        total,
    } = branches;
    let waits_for_all =
        strategy == Strategy::All && on_branch_failure == BranchFailurePolicy::ProceedWithAvailable;
    if waits_for_all && pending > 0 {
        return Quorum::Open;
    }
    let needed = needed_of(strategy, on_branch_failure, total);
    if completed >= needed {
        Quorum::Reached
    } else if completed + pending < needed {
        Quorum::Unreachable
    } else {
        Quorum::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_with_every_mix_of_branches() {
        use BranchFailurePolicy::{Fail, ProceedWithAvailable};
        use Quorum::{Open, Reached, Unreachable};
        use Strategy::{All, Any, MOfN};
        // Strategy, policy, (completed, pending, total).
        let table = [
            (All, Fail, (0, 3, 3), Open),
            (All, Fail, (2, 1, 3), Open),
            (All, Fail, (3, 0, 3), Reached),
            // A branch ended, or arrived by a failure route.
            (All, Fail, (0, 2, 3), Unreachable),
            (All, Fail, (2, 0, 3), Unreachable),
            (All, ProceedWithAvailable, (0, 3, 3), Open),
            (All, ProceedWithAvailable, (2, 1, 3), Open),
            (All, ProceedWithAvailable, (1, 1, 3), Open),
            (All, ProceedWithAvailable, (3, 0, 3), Reached),
            (All, ProceedWithAvailable, (1, 0, 3), Reached),
            (All, ProceedWithAvailable, (0, 0, 3), Unreachable),
            (Any, Fail, (0, 3, 3), Open),
            (Any, Fail, (0, 1, 3), Open),
            (Any, Fail, (1, 2, 3), Reached),
            (Any, Fail, (1, 0, 3), Reached),
            (Any, Fail, (0, 0, 3), Unreachable),
            (Any, ProceedWithAvailable, (0, 0, 3), Unreachable),
            (MOfN(2), Fail, (0, 3, 3), Open),
            (MOfN(2), Fail, (1, 1, 3), Open),
            (MOfN(2), Fail, (2, 1, 3), Reached),
            (MOfN(2), Fail, (1, 0, 3), Unreachable),
            (MOfN(2), Fail, (0, 1, 3), Unreachable),
            // More than there are branches.
            (MOfN(4), Fail, (0, 3, 3), Unreachable),
            (MOfN(4), ProceedWithAvailable, (3, 0, 3), Unreachable),
        ];
        for (strategy, policy, (completed, pending, total), expected) in table {
            let branches = BranchCounts {
                completed,
                pending,
                total,
            };
            assert_eq!(
                decide(strategy, policy, branches),
                expected,
                "{strategy:?} {policy:?} {branches:?}"
            );
        }
    }

    /// A branch that arrives or ends never reopens a quorum that was decided.
    #[test]
    fn a_decided_quorum_stays_decided() {
        let policies = [
            BranchFailurePolicy::Fail,
            BranchFailurePolicy::ProceedWithAvailable,
        ];
        let strategies = [Strategy::All, Strategy::Any, Strategy::MOfN(2)];
        let pairs = strategies
            .into_iter()
            .flat_map(|strategy| policies.map(|policy| (strategy, policy)));
        for (strategy, policy) in pairs {
            for (completed, pending) in (0..=4).flat_map(|c| (1..=4 - c).map(move |p| (c, p))) {
                let at = |completed, pending| {
                    let branches = BranchCounts {
                        completed,
                        pending,
                        total: 4,
                    };
                    decide(strategy, policy, branches)
                };
                let before = at(completed, pending);
                if before != Quorum::Open {
                    let what = format!("{strategy:?} {policy:?} {completed} {pending}");
                    assert_eq!(at(completed, pending - 1), before, "a branch ended: {what}");
                    let arrived = at(completed + 1, pending - 1);
                    assert_eq!(arrived, before, "a branch arrived: {what}");
                }
            }
        }
    }
}
