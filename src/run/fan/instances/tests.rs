//! `Instances` alone: members, arrivals, deadlines, and what is saved.

use super::*;

const NODE: usize = 7;

fn id(number: u64) -> InstanceId {
    InstanceId(number)
}

fn branch(instance: u64, index: u32) -> Branch {
    Branch {
        instance: id(instance),
        index,
        item: None,
        output: Value::Null,
    }
}

fn token(number: u64, instance: u64, index: u32) -> Token {
    Token {
        branch: Some(branch(instance, index)),
        ..Token::new(TokenId(number), 0, 0)
    }
}

fn instance(number: u64, total: u32, parent: Option<Branch>) -> Instance {
    Instance::new(id(number), "g".into(), total, parent, None)
}

fn fan_in(fired_at: Option<Millis>) -> FanIn {
    FanIn {
        transition: 1,
        started_at: 0,
        timeout_at: Some(1_000),
        timeout_ms: Some(1_000),
        warned: false,
        state: FanInState::restored(fired_at),
    }
}

/// Instance 1 with two branches and a token in each.
fn two_branches() -> Instances {
    let mut fans = Instances::default();
    let first = fans.next_id();
    fans.open(instance(first.0, 2, None));
    fans.enter(&token(1, 1, 0));
    fans.enter(&token(2, 1, 1));
    fans
}

fn saved(fans: &mut Instances) -> Vec<(u64, InstanceStatus)> {
    let changes = fans.take_changes();
    changes.into_iter().map(|it| (it.id.0, it.status)).collect()
}

#[test]
fn a_branch_ends_when_its_last_token_leaves_and_none_follows() {
    let mut fans = two_branches();
    fans.leave(&token(1, 1, 0));
    fans.enter(&token(3, 1, 0));
    assert_eq!(fans.take_ended_branch(), None, "the branch goes on with token 3");
    fans.leave(&token(3, 1, 0));
    assert_eq!(fans.take_ended_branch(), Some(id(1)));
    assert_eq!(fans.take_ended_branch(), None, "each branch ends once");
    assert_eq!(fans.get(id(1)).map(Instance::pending), Some(1));
}

#[test]
fn an_inner_instance_keeps_its_branch_alive() {
    let mut fans = two_branches();
    let inner = fans.next_id();
    fans.open(instance(inner.0, 1, Some(branch(1, 0))));
    fans.enter(&token(3, 2, 0));
    fans.leave(&token(1, 1, 0));
    assert_eq!(fans.take_ended_branch(), None);
    fans.leave(&token(3, 2, 0));
    assert_eq!(fans.take_ended_branch(), Some(inner));
    fans.close(inner);
    assert_eq!(fans.take_ended_branch(), Some(id(1)), "the branch around it");
    assert_eq!(
        saved(&mut fans),
        [(1, InstanceStatus::Open), (2, InstanceStatus::Closed)]
    );
}

#[test]
fn a_branch_of_a_closed_instance_needs_no_check() {
    let mut fans = two_branches();
    fans.leave(&token(1, 1, 0));
    fans.leave(&token(2, 1, 1));
    fans.close(id(1));
    assert_eq!(fans.take_ended_branch(), None);
}

#[test]
fn the_kinds_of_arrival() {
    // The state of the join, and whether the branch has arrived.
    let cases = [
        (None, false, ArrivalKind::Waits),
        (Some(None), false, ArrivalKind::Waits),
        (Some(None), true, ArrivalKind::Repeated),
        (Some(Some(5)), false, ArrivalKind::Late { is_first: true }),
        (Some(Some(5)), true, ArrivalKind::Late { is_first: false }),
    ];
    for (began, has_arrived, expected) in cases {
        let mut fans = two_branches();
        if let Some(fired_at) = began {
            fans.begin_fan_in(id(1), NODE, fan_in(fired_at));
        }
        if has_arrived {
            fans.arrive_late(id(1), 0);
        }
        let kind = fans.arrival_kind(id(1), 0, NODE);
        assert_eq!(kind, expected, "{began:?} {has_arrived}");
    }
}

#[test]
fn a_late_arrival_can_be_undone() {
    let mut fans = two_branches();
    fans.begin_fan_in(id(1), NODE, fan_in(Some(5)));
    fans.arrive_late(id(1), 0);
    assert_eq!(fans.open[&id(1)].late_arrivals(), [0]);
    fans.undo_late_arrival(id(1), 0);
    assert_eq!(fans.open[&id(1)].late_arrivals(), [] as [u32; 0]);
    assert_eq!(fans.open[&id(1)].pending(), 2);
}

#[test]
fn arrivals_are_numbered_and_kept_until_the_join_fires() {
    let mut fans = two_branches();
    fans.begin_fan_in(id(1), NODE, fan_in(None));
    assert_eq!(fans.arrive((id(1), 1), NODE, TokenId(2), true), 1);
    assert_eq!(fans.arrive((id(1), 0), NODE, TokenId(1), false), 2);
    let arrivals = fans.fan_in(id(1), NODE).arrivals().expect("not fired yet");
    let waiting: Vec<_> = arrivals
        .iter()
        .map(|(index, it)| (index, it.token.0, it.order))
        .collect();
    assert_eq!(waiting, [(0, 1, 2), (1, 2, 1)], "by branch");
    assert_eq!(arrivals.completed(), 1);
    fans.fire(id(1), NODE, 9);
    assert_eq!(fans.fan_in(id(1), NODE).fired_at(), Some(9));
    assert_eq!(fans.open[&id(1)].completed_at(NODE), 0);
}

#[test]
fn numbers_continue_from_the_saved_ones_after_a_restore() {
    let mut stored = instance(4, 2, None);
    stored.fan_ins.insert(NODE, fan_in(None));
    let mut closed = instance(6, 2, None);
    closed.status = InstanceStatus::Closed;
    let mut fans = Instances::default();
    fans.restore(stored).expect("consistent rows");
    fans.restore(closed).expect("consistent rows");
    let waiting = token(1, 4, 0);
    fans.enter(&waiting);
    fans.enter(&token(2, 4, 1));
    fans.restore_arrival(
        &waiting,
        JoinWait {
            node: NODE,
            arrival: 12,
        },
    )
    .expect("consistent rows");
    assert!(fans.take_changes().is_empty(), "restored as it was saved");
    assert_eq!(fans.iter().map(|it| it.id.0).collect::<Vec<_>>(), [4]);
    assert_eq!(fans.open[&id(4)].completed_at(NODE), 1);
    assert_eq!(fans.open[&id(4)].pending(), 1);
    assert_eq!(fans.next_id(), id(7));
    assert_eq!(fans.arrive((id(4), 1), NODE, TokenId(2), true), 13);
}

#[test]
fn a_token_in_an_inner_branch_is_restored_at_the_outer_join() {
    let mut outer = instance(1, 1, None);
    outer.fan_ins.insert(NODE, fan_in(None));
    let mut inner = instance(2, 1, Some(branch(1, 0)));
    inner.fan_ins.insert(NODE, fan_in(Some(5)));
    let mut fans = Instances::default();
    fans.restore(outer).expect("consistent rows");
    fans.restore(inner).expect("consistent rows");
    let waiting = token(3, 2, 0);
    fans.enter(&waiting);
    fans.restore_arrival(
        &waiting,
        JoinWait {
            node: NODE,
            arrival: 1,
        },
    )
    .expect("consistent rows");
    assert_eq!(fans.open[&id(1)].completed_at(NODE), 1);
    assert!(fans.open[&id(1)].has_arrived(0));
    assert!(!fans.open[&id(2)].has_arrived(0));
}

#[test]
fn rows_that_contradict_each_other_are_an_error() {
    let mut fans = Instances::default();
    assert!(
        fans.restore(instance(2, 1, Some(branch(1, 0)))).is_err(),
        "inside no open instance"
    );
    assert!(
        fans.restore_token(&token(1, 2, 0)).is_err(),
        "live in no open instance"
    );
    fans.restore(instance(3, 1, None)).expect("consistent rows");
    let waiting = token(1, 3, 0);
    fans.restore_token(&waiting).expect("consistent rows");
    assert!(
        fans.restore_arrival(
            &waiting,
            JoinWait {
                node: NODE,
                arrival: 1
            }
        )
        .is_err(),
        "the join has not begun"
    );
}

#[test]
fn branches_are_listed_innermost_first() {
    let mut fans = two_branches();
    fans.open(instance(2, 3, Some(branch(1, 1))));
    let innermost = branch(2, 2);
    let around: Vec<_> = fans
        .enclosing(Some(&innermost))
        .map(|(branch, instance)| (instance.id.0, branch.index, instance.total))
        .collect();
    assert_eq!(around, [(2, 2, 3), (1, 1, 2)]);
    assert_eq!(fans.enclosing(None).count(), 0);
    let value = fans.branch_value(&innermost);
    assert_eq!(
        value,
        json!({"index": 2, "total": 3, "item": null, "output": null})
    );
}

#[test]
fn waiting_tokens_hold_bytes_until_they_end() {
    let mut fans = two_branches();
    fans.hold(TokenId(1), 10);
    fans.hold(TokenId(2), 5);
    assert_eq!(fans.joined_bytes(), 15);
    fans.leave(&token(1, 1, 0));
    assert_eq!(fans.joined_bytes(), 5);
}

#[test]
fn a_pause_moves_the_timers_of_waiting_joins() {
    let mut fans = two_branches();
    fans.begin_fan_in(id(1), NODE, fan_in(None));
    fans.begin_fan_in(id(1), NODE + 1, fan_in(Some(5)));
    fans.take_changes();
    let moved = MovedTimer {
        instance: id(1),
        node: NODE,
        from: 1_000,
        to: Some(1_300),
    };
    assert_eq!(fans.shift_deadlines(300, 0.8), [moved], "not the one that fired");
    assert_eq!(saved(&mut fans), [(1, InstanceStatus::Open)]);
    assert_eq!(fans.shift_deadlines(1, 0.8).len(), 1, "each pause counts");
}

/// Outer instance 1 with 2 inside it, and 3 beside them: which of them does the end of the run close?
#[test]
fn the_end_of_a_run_closes_what_no_join_had_decided() {
    use InstanceStatus::{Closed, ClosedByRunEnd};
    let cases: [(&[u64], [InstanceStatus; 3]); 4] = [
        (&[], [ClosedByRunEnd(2); 3]),
        (&[3], [ClosedByRunEnd(2), ClosedByRunEnd(2), Closed]),
        (&[2], [ClosedByRunEnd(2), Closed, ClosedByRunEnd(2)]),
        // Instances inside it as well.
        (&[1], [Closed, Closed, ClosedByRunEnd(2)]),
    ];
    for (decided, expected) in cases {
        let mut fans = Instances::default();
        fans.open(instance(1, 1, None));
        fans.open(instance(2, 1, Some(branch(1, 0))));
        fans.open(instance(3, 1, None));
        for number in decided {
            fans.mark_decided(id(*number));
        }
        for number in [3, 1, 2] {
            fans.close(id(number));
        }
        let stay_closed = fans.mark_closed_by_run_end(2);
        let closed = saved(&mut fans);
        assert_eq!(
            closed.iter().map(|it| it.1).collect::<Vec<_>>(),
            expected,
            "{decided:?}"
        );
        let is_marked = |it: &&(u64, InstanceStatus)| it.1 == Closed;
        let unmarked: Vec<_> = closed.iter().filter(is_marked).map(|it| id(it.0)).collect();
        assert_eq!(Vec::from_iter(stay_closed), unmarked, "{decided:?}");
    }
}

#[test]
fn what_changed_is_saved_once() {
    let mut fans = two_branches();
    assert_eq!(saved(&mut fans), [(1, InstanceStatus::Open)]);
    assert_eq!(saved(&mut fans), []);
    fans.begin_fan_in(id(1), NODE, fan_in(None));
    assert_eq!(saved(&mut fans), [(1, InstanceStatus::Open)]);
    fans.arrive((id(1), 0), NODE, TokenId(1), true);
    assert_eq!(saved(&mut fans), [], "the row of the waiting token tells it");
    fans.mark_warned(id(1), NODE);
    fans.set_error(id(1), Failure::permanent("fan_in_failed", "too few branches"));
    assert_eq!(saved(&mut fans), [(1, InstanceStatus::Open)]);
    fans.fire(id(1), NODE, 9);
    fans.close(id(1));
    assert_eq!(saved(&mut fans), [(1, InstanceStatus::Closed)], "as it closed");
}
