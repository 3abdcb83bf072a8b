//! Going on with another version of the workflow: what is kept, what counts from the new document, and what does not fit.

use crate::run::plans::Plans;
use std::rc::Rc;

use curfew::definition::snapshot::Snapshot;
use curfew::run::{CallbackSecret, Event, NewVersion, RetryMode, RunStatus};
use curfew::storage::rows::HeaderRow;
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, callback_key, complete_document, store_document};
use super::graphs::{and, fan, three, with};
use super::resume_joins::limited;

/// Version `number` of a document.
pub fn version(number: u64, document: Value) -> NewVersion {
    let mut stored = store_document(&complete_document(document));
    stored.version = number;
    NewVersion {
        snapshot: Rc::new(Snapshot::read(stored).expect("what was resolved can be read")),
        callback_secret: Some(CallbackSecret::Derived(callback_key().secret_of("run-1"))),
    }
}

impl Driver {
    pub fn retry_on(&mut self, mode: RetryMode, number: u64, document: Value) -> &mut Driver {
        let version = Some(version(number, document));
        let caller = self.caller.as_deref();
        let retry = self.store.retry_on(&self.run, caller, mode, None, version);
        self.feed(retry)
    }

    fn restart_on(&mut self, node: Option<&str>, number: u64, document: Value) -> &mut Driver {
        let version = version(number, document);
        let from = node.map(|node| {
            let point = self.store.restart_point_on(&self.run, &version.snapshot, node);
            point.expect("the run has been there")
        });
        let past = Box::new(self.past());
        self.feed(Event::RestartRequested {
            from,
            by: self.caller.clone(),
            version: Some((version, past)),
        })
    }

    /// The rejection in the words of the driver.
    #[track_caller]
    fn rejected(&self) -> String {
        let rejection = self.answer.as_ref().expect_err("it was rejected");
        assert!(self.decision.writes().is_empty(), "nothing is changed");
        super::render::render_rejection(rejection)
    }
}

/// `a`, then `b` with the mapping of its input.
fn chain(mapping: &str) -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "a", "action_id": "work"},
                  {"id": "b", "action_id": "work", "input_mapping": {"n": mapping}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

#[test]
fn a_run_that_failed_in_a_mapping_goes_on_with_a_fixed_one() {
    let mut run = Driver::start(chain("${state.a.missing.deep}"));
    run.named("ada").succeed("t1@1", json!({"n": 7}));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.reload().at(9_000).retry(RetryMode::RetryStep);
    assert_eq!(
        run.run.header.status,
        RunStatus::Failed,
        "the same document fails again"
    );
    let advice = &run.resume_view()["version"];
    assert_eq!(
        (&advice["recommended"], &advice["current"]),
        (&json!(true), &json!(1))
    );
    let fixed = with(
        chain("${state.a.n}"),
        json!({"timeout_ms": 30_000, "tags": ["fixed"]}),
    );
    run.reload()
        .at(10_000)
        .retry_on(RetryMode::RetryStep, 2, fixed)
        .check(
            r#"
        snapshot
        run running until 40000
        token t4 b executing@1 watch 40000 (resumed)
        event run_retried retry_step from_version 1 version 2 by ada
        dispatch t4@1 {"n":7}
        announce
    "#,
        );
    assert_eq!(
        (run.run.header.version, &run.run.header.tags[..]),
        (2, &["fixed".to_string()][..])
    );
    let row = json!(HeaderRow::of(&run.run.header));
    assert_eq!((&row["version"], &row["timeout_ms"]), (&json!(2), &json!(30_000)));
    run.reload()
        .succeed("t4@1", json!(1))
        .assert_status("completed {}");
    assert_eq!(
        run.run.snapshot().version,
        2,
        "the row of the snapshot was replaced"
    );
}

#[test]
fn a_run_without_a_matching_transition_goes_on_with_a_fixed_condition() {
    let document = |condition: &str| {
        json!({"nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
            "transitions": [{"from_node_id": "a", "to_node_id": "b", "condition": condition}]})
    };
    let mut run = Driver::start(document("state.a > 5"));
    run.succeed("t1@1", json!(3));
    let why = run.resume_view()["version"]["why"].clone();
    assert_eq!(
        why,
        json!("no transition of the document matched, and none would match again")
    );
    run.reload()
        .retry_on(RetryMode::RetryStep, 2, document("state.a > 1"));
    run.assert_status("running a:executing");
    run.reload()
        .succeed("t2@1", json!(3))
        .assert_status("running b:executing");
    run.succeed("t3@1", json!(4)).assert_status("completed {}");
}

#[test]
fn a_node_that_the_version_lacks_is_named_and_nothing_changes() {
    let mut run = Driver::start(chain("${state.a}"));
    run.succeed("t1@1", json!(1)).fail("t2@1");
    let without = json!({"nodes": [{"id": "a", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "c"}]});
    run.reload().retry_on(RetryMode::RetryStep, 2, without.clone());
    assert_eq!(
        run.rejected(),
        "version_does_not_fit 2; b t2: the version has no such node"
    );
    assert_eq!((run.run.header.version, run.run.snapshot().version), (1, 1));
    // From the start, or from a node that is still there, it fits.
    run.reload()
        .restart_on(Some("a"), 2, without)
        .assert_status("running a:executing");
    assert_eq!((run.run.header.version, run.run.header.attempt), (2, 2));
    run.reload()
        .succeed("t3@1", json!(1))
        .assert_status("running c:executing");
}

/// History is readable although its nodes are gone, and the next retry on the same version works.
#[test]
fn the_history_of_removed_nodes_is_still_there() {
    let mut run = Driver::start(chain("${state.a}"));
    run.succeed("t1@1", json!(1)).fail("t2@1");
    let only_b = json!({"timeout_ms": 60_000, "nodes": [{"id": "b", "action_id": "work"}]});
    run.reload().retry_on(RetryMode::RetryStep, 2, only_b.clone());
    run.assert_status("running b:executing");
    run.reload().fail("t3@1");
    let nodes: Vec<String> = run
        .past()
        .tokens
        .iter()
        .map(|it| it.node_id.to_string())
        .collect();
    assert_eq!(nodes, ["a", "b", "b"]);
    let view = run.resume_view();
    assert_eq!(view["last_successful_checkpoint"]["node_id"], "a");
    assert_eq!(view["failed_tokens"][0]["node_id"], "b");
    assert_eq!(run.deliverable(0)["completed_nodes"], json!(["a"]));
    run.reload().retry(RetryMode::DiscardAndRetry);
    run.assert_status("running b:executing");
    // A third version, and the node that the second one lacked is back.
    run.fail("t4@1")
        .reload()
        .retry_on(RetryMode::RetryStep, 3, chain("${state.a}"));
    run.reload()
        .succeed("t5@1", json!(2))
        .assert_status("completed {}");
    let point = run
        .store
        .restart_point(&run.run, "a")
        .expect("the run has been at a");
    assert_eq!(point.context.state(), &json!({}));
}

#[test]
fn kinds_of_nodes_must_stay() {
    let document = |node: Value| json!({"timeout_ms": 60_000, "nodes": [with(json!({"id": "n"}), node)]});
    let work = json!({"action_id": "work"});
    let signal = json!({"wait": {"signal": "go"}});
    let sleep = json!({"wait": {"sleep_ms": 100_000}});
    for (before, after, reason) in [
        (json!({"gate": {}}), &work, "made a task of a gate"),
        (
            signal.clone(),
            &sleep,
            "made a wait for a time of a wait for a signal",
        ),
        (
            sleep.clone(),
            &signal,
            "made a wait for a signal of a wait for a time",
        ),
        (
            json!({"workflow_id": "child"}),
            &work,
            "made a task of a call of a workflow",
        ),
        (work.clone(), &json!({"gate": {}}), "made a gate of a task"),
    ] {
        let mut run = Driver::start(document(with(before.clone(), json!({}))));
        run.at(900_000).wake("t1@1");
        if run.run.header.status == RunStatus::Waiting {
            // The clock stands still at gates.
            run.feed(Event::Abandoned);
        }
        assert!(run.run.header.status.is_terminal(), "{before}");
        run.reload()
            .retry_on(RetryMode::RetryStep, 2, document(after.clone()));
        assert!(run.rejected().contains(reason), "{}", run.rejected());
        let same = with(document(before), json!({"timeout_ms": 70_000}));
        run.reload().retry_on(RetryMode::RetryStep, 2, same);
        assert_eq!(run.answer, Ok(()));
        assert_eq!(run.run.live_tokens().count(), 1);
    }
}

#[test]
fn a_gate_opens_again_as_the_new_version_has_it() {
    let document = |choices: Value| json!({"nodes": [{"id": "ask", "gate": {"choices": choices, "timeout_ms": 5_000, "on_timeout": "fail"}}]});
    let mut run = Driver::start(document(json!(["yes", "no"])));
    run.at(6_000).wake("");
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.reload()
        .at(7_000)
        .retry_on(RetryMode::RetryStep, 2, document(json!(["yes", "no", "later"])));
    let gate = run.run.gates().last().expect("a gate").clone();
    assert_eq!(gate.choices, ["yes", "no", "later"]);
    let gate = gate.id;
    run.reload().decide(&gate, "later").assert_status("completed {}");
}

#[test]
fn the_branches_of_a_join_go_on_with_its_new_rule() {
    let mut run = Driver::start(limited(three(json!({"timeout_ms": 20_000}))));
    run.succeed("t4@1", json!("c")).at(2_000).fail("t2@1");
    assert_eq!(run.run.header.status, RunStatus::Failed);
    // Two of three are enough now, and the join has another limit. Another transition before
    // the join gives it another number.
    let mut relaxed = limited(three(json!({"strategy": {"m_of_n": 2}, "timeout_ms": 50_000})));
    relaxed["transitions"][1]
        .as_object_mut()
        .expect("fields")
        .remove("id");
    let first = json!({"id": "never", "from_node_id": "a", "to_node_id": "z", "condition": "false"});
    relaxed["transitions"]
        .as_array_mut()
        .expect("a list")
        .insert(0, first);
    run.reload()
        .at(9_000)
        .retry_on(RetryMode::RetryStep, 2, relaxed)
        .check(
            r#"
        snapshot
        run running until 69000
        token t5 b executing@1 [1.0] watch 39000 (resumed)
        token t6 b executing@1 [1.1] watch 39000 (resumed)
        token t7 b waiting_for_siblings@1 [1.2] (resumed) "c"
        instance 1 out of 3 join z from 1000 until 59000
        event run_retried retry_step from_version 1 version 2
        dispatch t5@1 {"x":1}
        dispatch t6@1 {"x":1}
        announce
    "#,
        );
    run.reload()
        .succeed("t6@1", json!("b"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!(["b", "c"]));
    run.succeed("t5@1", json!("late"))
        .succeed("t8@1", json!(0))
        .assert_status("completed {}");
}

#[test]
fn joins_and_groups_that_the_version_lacks_are_misfits() {
    let mut run = Driver::start(limited(three(json!({}))));
    run.succeed("t4@1", json!("c")).fail("t2@1");
    // The branches meet at another node.
    let mut elsewhere = limited(three(json!({})));
    elsewhere["nodes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"id": "y", "action_id": "work"}));
    elsewhere["transitions"][1]["to_node_id"] = json!("y");
    run.reload().retry_on(RetryMode::RetryStep, 2, elsewhere);
    assert_eq!(
        run.rejected(),
        "version_does_not_fit 2; z: the version does not join group \"out\" at this node"
    );
    // The join's node is gone, and the group.
    let gone = json!({"nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]});
    run.retry_on(RetryMode::RetryStep, 3, gone);
    let rejected = run.rejected();
    assert!(
        rejected.contains("z t4: a branch waits at its join"),
        "{rejected}"
    );
    assert!(
        rejected.contains("z: the version does not join group"),
        "{rejected}"
    );
    // The group is fanned out by another node.
    let mut moved = fan(
        json!({"spawn_count": 3}),
        json!({"merge": {"target": "state.all"}}),
    );
    moved["nodes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"id": "k"}));
    moved["transitions"][0]["from_node_id"] = json!("k");
    let moved = and(moved, json!({"id": "on", "from_node_id": "a", "to_node_id": "k"}));
    run.retry_on(RetryMode::RetryStep, 4, limited(moved));
    assert_eq!(
        run.rejected(),
        "version_does_not_fit 4; a: branches of group \"out\" are to go on, and the version does not fan out that group here"
    );
    // Nothing was changed: its own version still goes on.
    run.reload().retry(RetryMode::RetryStep);
    run.assert_status("running 2xb:executing b:waiting_for_siblings");
}

#[test]
fn loops_are_counted_on_under_their_new_numbers() {
    let looping = |most: u64, first: Option<Value>| {
        let mut transitions = vec![
            json!({"from_node_id": "a", "to_node_id": "a", "condition": "state.a < 9", "loop_config": {"max_iterations": most}}),
        ];
        if let Some(first) = first {
            transitions.insert(0, first);
        }
        json!({"nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}], "transitions": transitions,
            "on_no_match": "end"})
    };
    let mut run = Driver::start(looping(3, None));
    run.succeed("t1@1", json!(1))
        .succeed("t2@1", json!(2))
        .fail("t3@1");
    let row = run.row("t3");
    assert_eq!(row.loops.get("t1"), Some(&2));
    let other = json!({"from_node_id": "a", "to_node_id": "b", "condition": "state.a > 100"});
    run.reload()
        .retry_on(RetryMode::RetryStep, 2, looping(3, Some(other)));
    assert_eq!(run.row("t4").loops, [("t2".to_string(), 2)].into());
    run.reload()
        .succeed("t4@1", json!(3))
        .assert_status("running a:executing");
    run.succeed("t5@1", json!(4));
    assert_eq!(
        run.run.live_tokens().count(),
        0,
        "three rounds in all: {}",
        run.status_line()
    );
}

#[test]
fn a_restart_begins_at_the_start_of_the_new_version() {
    let mut run = Driver::start(chain("${state.a}"));
    // The run still runs: tokens of the first version end in the commit of the second.
    run.succeed("t1@1", json!(1)).assert_status("running b:executing");
    let other = json!({"timeout_ms": 20_000, "nodes": [{"id": "new", "action_id": "work"}]});
    run.at(5_000).restart_on(None, 2, other).check(
        r#"
        snapshot
        run running until 25000
        context state.a gone
        token t2 b cancelled@1 (run_restarted)
        token t3 new executing@1 watch 35000
        event run_restarted from_version 1 version 2
        alarm 21000
        abort t2@1
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
    let nodes: Vec<String> = run
        .past()
        .tokens
        .iter()
        .map(|it| it.node_id.to_string())
        .collect();
    assert_eq!(nodes, ["a", "b", "new"]);
    run.reload()
        .succeed("t3@1", json!(1))
        .assert_status("completed {}");
    // Back to a version with the nodes of before, from a node of before.
    run.reload().restart_on(
        Some("new"),
        3,
        json!({"nodes": [{"id": "new", "action_id": "work"}]}),
    );
    run.assert_status("running new:executing");
}

#[test]
fn a_fan_out_that_still_runs_is_saved_with_the_nodes_it_had() {
    let mut run = Driver::start(limited(three(json!({}))));
    run.succeed("t2@1", json!("a"))
        .assert_status("running 2xb:executing b:waiting_for_siblings");
    run.restart_on(None, 2, json!({"nodes": [{"id": "new", "action_id": "work"}]}));
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 3 join z from 1000 until 1801000 closed"]
    );
    run.reload().assert_status("running new:executing");
    assert!(run.past().instances[0].status != curfew::run::InstanceStatus::Open);
    run.fail("t5@1").reload().retry(RetryMode::RetryStep);
    run.assert_status("running new:executing");
}

#[test]
fn the_input_must_fit_the_version_that_a_run_begins_with() {
    let strict = |property: &str| {
        with(
            chain("${input.x}"),
            json!({"input_schema": {"required": [property]}}),
        )
    };
    let mut run = Driver::start(chain("${input.x}"));
    run.succeed("t1@1", json!(1)).fail("t2@1");
    run.reload().restart_on(None, 2, strict("y"));
    let rejected = run.rejected();
    assert!(
        rejected.starts_with("version_does_not_fit 2; -: the run's input does not fit input_schema"),
        "{rejected}"
    );
    run.restart_on(None, 3, strict("x"))
        .assert_status("running a:executing");
}

#[test]
fn work_that_may_have_to_be_undone_keeps_its_node() {
    let order = |nodes: Value, transitions: Value| json!({"nodes": nodes, "transitions": transitions, "compensation": {"on": ["cancelled"]}});
    let pay = json!({"id": "pay", "action_id": "work", "compensate": {"action_id": "work"}});
    let ship = json!({"id": "ship", "action_id": "work"});
    let mut run = Driver::start(order(
        json!([pay, ship]),
        json!([{"from_node_id": "pay", "to_node_id": "ship"}]),
    ));
    run.succeed("t1@1", json!({"id": "p-1"})).fail("t2@1");
    assert_eq!(run.run.header.status, RunStatus::Failed);
    let without = order(json!([ship]), json!([]));
    let misfit = "version_does_not_fit 2; pay t1: its work is done and may have to be undone by its compensate, and the \
                  version has no such node";
    run.reload().retry_on(RetryMode::RetryStep, 2, without.clone());
    assert_eq!(run.rejected(), misfit);
    run.restart_on(None, 2, without);
    assert_eq!(run.rejected(), misfit);
    // The new version undoes it in another way.
    let refund = json!({"id": "pay", "action_id": "work",
        "compensate": {"action_id": "work", "input_mapping": {"refund": "${result.id}"}}});
    let fixed = order(json!([ship, refund]), json!([]));
    run.retry_on(RetryMode::RetryStep, 3, fixed)
        .assert_status("running ship:executing");
    run.reload().cancel(None).provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t4@1 {"refund":"p-1"}"#]);
    run.succeed("t4@1", json!(1)).provide();
    assert_eq!(run.run.header.status, RunStatus::Cancelled);
}

#[test]
fn finished_steps_count_only_if_they_are_written_alike() {
    let task = |first: &str, last: &str| {
        let step = |name: &str, action: &str| {
            json!({"ref": name, "action": {"kind": "service_call",
            "id": action, "implementation": {"binding": "PEER"}}})
        };
        json!({"nodes": [{"id": "a", "task_id": "two"}], "tasks": [{"id": "two",
            "steps": [step("one", first), step("two", last)]}]})
    };
    for (changed, keeps) in [(task("x", "z"), true), (task("q", "y"), false)] {
        let mut run = Driver::start(task("x", "y"));
        let mut report = super::driver::failed("t1@1");
        report.checkpoint = serde_json::from_value(
            json!({"next": "two", "state": {}, "output": null, "wrote_output": false,
            "last_result": 1, "steps": []}),
        )
        .expect("a checkpoint");
        run.report(report);
        assert!(run.row("t1").checkpoint.is_some());
        run.reload().retry_on(RetryMode::RetryStep, 2, changed);
        run.assert_status("running a:executing");
        assert_eq!(run.row("t2").checkpoint.is_some(), keeps);
        assert_eq!(
            run.row("t2").work_of,
            Some(run.row("t1").id),
            "the same work towards peers"
        );
    }
}

#[test]
fn a_version_with_callbacks_gives_the_run_a_secret() {
    let mut run = Driver::start(json!({"nodes": [{"id": "c", "action_id": "work"}]}));
    run.fail("t1@1");
    assert_eq!(run.run.header.callback_secret, None);
    let deferring = json!({"nodes": [{"id": "c", "action_id": "hand-out"}], "actions": [{"id": "hand-out",
        "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": {"mode": "async"}}]});
    run.reload().retry_on(RetryMode::RetryStep, 2, deferring);
    let expected = CallbackSecret::Derived(callback_key().secret_of("run-1"));
    assert_eq!(run.run.header.callback_secret, Some(expected));
}

#[test]
fn limits_that_the_version_leaves_keep_their_extension() {
    for (timeout_ms, until) in [(60_000, 180_000), (30_000, 130_000)] {
        let mut run = Driver::start(chain("${state.a}"));
        run.extend(20_000).fail("t1@1");
        run.reload().at(100_000).retry_on(
            RetryMode::RetryStep,
            2,
            with(chain("${state.a}"), json!({"timeout_ms": timeout_ms})),
        );
        assert_eq!(run.run.header.timeout_at, Some(until));
    }
}

#[test]
fn a_run_of_another_workflow_and_a_run_that_has_not_ended_are_refused() {
    let mut run = Driver::start_with(SETTINGS, chain("${state.a}"), json!({}));
    run.retry_on(RetryMode::RetryStep, 2, chain("${state.a}"));
    assert_eq!(run.rejected(), "not_ended");
    run.fail("t1@1").reload();
    run.retry_on(
        RetryMode::RetryStep,
        2,
        with(chain("${state.a}"), json!({"id": "another"})),
    );
    assert_eq!(
        run.rejected(),
        "version_does_not_fit 2; -: the run is one of workflow \"flow\""
    );
}

/// What the first end undid is not counted again by the second.
#[test]
fn each_end_shows_what_it_undid_itself() {
    let document = json!({"nodes": [{"id": "pay", "action_id": "work", "compensate": {"action_id": "work"}},
        {"id": "ship", "action_id": "work"}], "transitions": [{"from_node_id": "pay", "to_node_id": "ship"}]});
    let mut run = Driver::start(document.clone());
    run.succeed("t1@1", json!(1))
        .fail("t2@1")
        .provide()
        .succeed("t3@1", json!(1))
        .provide();
    run.reload().restart_on(None, 2, json!({"nodes": [{"id": "fly", "action_id": "work", "compensate": {"action_id": "work"}},
        {"id": "ship", "action_id": "work"}], "transitions": [{"from_node_id": "fly", "to_node_id": "ship"}]}));
    run.assert_status("running fly:executing");
    run.succeed("t4@1", json!(1))
        .fail("t5@1")
        .provide()
        .reload()
        .provide();
    run.succeed("t6@1", json!(1)).provide();
    let done = json!(run.run.header.compensation)["done"].clone();
    assert_eq!(done, json!([{"node_id": "fly", "token_id": "t4"}]));
}
