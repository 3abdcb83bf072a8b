//! What an escalated token wrote to the context: it is taken back while a person decides, so retries do not add up, and it is
//! there again when the token ends with its result.

use serde_json::{Value, json};

use super::controls::{point, restart};
use super::driver::Driver;

const KIB: usize = 1 << 10;

/// `a` has a result and no transition that matches it; `b` follows a small one. Its failures escalate.
fn dead_end() -> Value {
    json!({
        "nodes": [
            {"id": "before", "action_id": "work", "output_mapping": {"state.doc": "${result}"}},
            {"id": "a", "action_id": "work", "escalate_on": ["validation"], "output_mapping": {"state.doc": "${result}"}},
            {"id": "b", "action_id": "work"},
            {"id": "repair", "action_id": "work"},
        ],
        "transitions": [
            {"from_node_id": "before", "to_node_id": "a"},
            {"from_node_id": "a", "to_node_id": "b", "condition": "size(state.doc) < 10"},
            {"from_node_id": "a", "to_node_id": "repair", "on": "failure"},
        ],
    })
}

/// Compares without printing: the values are large.
#[track_caller]
fn assert_same(found: &Value, expected: &Value) {
    assert!(found == expected, "{} bytes were found", found.to_string().len());
}

/// 300 KiB that have nothing in common with those of another round.
fn large(round: u64) -> Value {
    let text = (0..300 * KIB / 16).map(|at| format!("{:016x}", (at as u64 + 1) * (round + 7919)));
    json!(text.collect::<String>())
}

/// A run at the gate of its dead end, with `doc` as it was before in the context.
fn at_dead_end() -> Driver {
    let mut run = Driver::start(dead_end());
    run.succeed("t1@1", json!("as it was")).succeed("t2@1", large(1));
    run.assert_status("waiting a:awaiting_human");
    run
}

#[test]
fn results_retried_at_a_dead_end_do_not_add_up() {
    for reloads in [false, true] {
        let mut run = at_dead_end();
        for round in 1..=10 {
            if reloads {
                run.reload().load();
            }
            // The driver refuses a commit with a row over the limit.
            run.decide(&format!("g2.{round}"), "retry");
            if reloads {
                run.reload();
            }
            run.succeed(&format!("t2@{}", round + 1), large(round + 1));
            run.assert_status("waiting a:awaiting_human");
            let rows: usize = run.store.run.values().map(String::len).sum();
            assert!(
                rows < 64 * KIB,
                "{rows} bytes beside the tokens after {round} retries"
            );
            assert_same(&run.state()["doc"], &json!("as it was"));
        }
        run.decide("g2.11", "retry").succeed("t2@12", json!("short"));
        run.assert_status("running b:executing");
        assert_same(&run.reload().state()["doc"], &json!("short"));
        let back = point(&run, "a");
        restart(&mut run, Some(back));
        assert_eq!(
            run.state()["doc"],
            json!("as it was"),
            "a restart undoes the one write that counts"
        );
    }
}

#[test]
fn the_result_is_on_the_token_while_a_person_decides() {
    let run = at_dead_end();
    assert_same(&run.row("t2").output.unwrap_or_default(), &large(1));
    assert_same(&run.state()["doc"], &json!("as it was"));
}

#[test]
fn skip_ends_the_path_with_its_result() {
    for reloads in [false, true] {
        let mut run = at_dead_end();
        if reloads {
            run.reload().load();
        }
        run.decide("g2.1", "skip");
        assert_eq!(run.run.header.status.name(), "completed");
        assert_same(&run.state()["doc"], &large(1));
        let token = run.row("t2");
        assert_eq!(token.status.name(), "completed");
        assert_same(&token.output.unwrap_or_default(), &large(1));
    }
}

#[test]
fn fail_takes_the_failure_routes_with_what_it_wrote() {
    let mut run = at_dead_end();
    run.reload().load();
    run.decide("g2.1", "fail")
        .assert_status("running repair:executing");
    assert_same(&run.state()["doc"], &large(1));
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    assert_same(&run.state()["doc"], &json!("as it was"));
}

#[test]
fn a_gate_that_no_person_decides_fails_with_what_it_wrote() {
    let mut run = at_dead_end();
    let due_at = run.run.gates().next().and_then(|gate| gate.timeout_at);
    run.at(due_at.expect("an escalation has a deadline"))
        .fire_alarm("");
    run.assert_status("running repair:executing");
    assert_same(&run.state()["doc"], &large(1));
}

/// A skipped node has no result. Where that leads into a dead end of its own, the second skip ends the path.
#[test]
fn a_skip_that_leads_into_a_dead_end_can_be_skipped() {
    let mut document = dead_end();
    document["nodes"][1]["escalate_on"] = json!(["validation", "server_error"]);
    document["nodes"][1]["output_mapping"] = json!({"state.result": "${result}"});
    document["transitions"][1]["condition"] = json!("state.result == 1");
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!("as it was")).fail("t2@1");
    run.decide("g2.1", "skip")
        .assert_status("waiting a:awaiting_human");
    run.decide("g2.2", "skip");
    assert_eq!(run.run.header.status.name(), "completed");
    assert_eq!(run.state()["result"], Value::Null);
}

/// In a branch the output of the branch is taken back, too.
#[test]
fn a_branch_at_a_dead_end_is_retried_from_its_old_output() {
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "s"},
            {"id": "first", "action_id": "work"},
            {"id": "a", "action_id": "work", "escalate_on": ["validation"]},
            {"id": "end"},
        ],
        "transitions": [
            {"id": "fan", "from_node_id": "s", "to_node_id": "first", "spawn_count": 1},
            {"from_node_id": "first", "to_node_id": "a"},
            {"from_node_id": "a", "to_node_id": "end", "condition": "size(_branch.output) < 10", "synchronization":
                {"strategy": "all", "sibling_group": "fan", "merge": {"target": "state.all", "strategy": "append"}}},
        ],
    }));
    run.succeed("t2@1", json!("first")).succeed("t3@1", large(1));
    run.assert_status("waiting a:awaiting_human");
    let output = |run: &Driver| run.row("t3").branch.expect("it is in a branch").output;
    assert_same(&output(&run), &json!("first"));
    run.reload().load().decide("g3.1", "skip");
    assert_same(&output(&run), &large(1));
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
}
