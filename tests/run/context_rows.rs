//! A context name is stored on the token that first wrote it, and in its own row once it changes.

use curfew::storage::commit::CONTEXT;
use curfew::storage::rows::COMPLETED_WITH_CONTEXT;
use serde_json::{Value, json};

use super::controls::{point, restart};
use super::driver::Driver;

/// `poll` repeats while its condition holds, then `done`.
fn polling() -> Driver {
    Driver::start(json!({
        "nodes": [{"id": "poll", "action_id": "work"}, {"id": "done", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "poll", "to_node_id": "poll", "condition": "state.poll < 3", "priority": 1},
            {"from_node_id": "poll", "to_node_id": "done", "priority": 2},
        ],
    }))
}

fn rows_of_names(run: &Driver) -> Vec<(&str, &str)> {
    let rows = run.store.run.iter();
    rows.filter_map(|(key, value)| Some((key.strip_prefix(CONTEXT)?, value.as_str())))
        .collect()
}

#[test]
fn names_on_tokens_are_restored_after_a_reload() {
    let mut run = polling();
    run.succeed("t1@1", json!(3));
    assert_eq!(rows_of_names(&run), []);
    assert_eq!(run.store.tokens[&1].0, COMPLETED_WITH_CONTEXT);
    assert_eq!(run.reload().state(), &json!({"poll": 3}));
    run.succeed("t2@1", json!("end")).assert_status("completed {}");
    assert_eq!(run.reload().state(), &json!({"poll": 3, "done": "end"}));
    assert_eq!(rows_of_names(&run), []);
}

#[test]
fn a_name_that_is_written_again_gets_a_row_that_overrides_the_token() {
    let mut run = polling();
    run.succeed("t1@1", json!(1)).reload();
    run.succeed("t2@1", json!(2)).reload();
    assert_eq!(rows_of_names(&run), [("state.poll", "2")]);
    assert_eq!(run.state(), &json!({"poll": 2}));
    run.succeed("t3@1", json!(3)).reload();
    assert_eq!(rows_of_names(&run), [("state.poll", "3")]);
    assert_eq!(run.state(), &json!({"poll": 3}));
    let keeping = run
        .store
        .tokens
        .values()
        .filter(|(status, _)| status == COMPLETED_WITH_CONTEXT);
    assert_eq!(keeping.count(), 1, "the first one only");
}

#[test]
fn an_undone_name_stays_deleted_although_a_token_has_a_copy() {
    let mut run = polling();
    run.succeed("t1@1", json!(3)).reload();
    restart(&mut run, None);
    assert_eq!(rows_of_names(&run), [("state.poll", "")]);
    assert_eq!(run.reload().state(), &json!({}));
    // The row stays in use for later writes and deletions.
    run.succeed("t3@1", json!(7));
    assert_eq!(rows_of_names(&run), [("state.poll", "7")]);
    assert_eq!(run.reload().state(), &json!({"poll": 7}));
    restart(&mut run, None);
    assert_eq!(rows_of_names(&run), [("state.poll", "")]);
    assert_eq!(run.reload().state(), &json!({}));
}

#[test]
fn a_restart_from_a_node_undoes_later_writes() {
    let mut run = polling();
    run.succeed("t1@1", json!(3))
        .succeed("t2@1", json!("end"))
        .reload();
    let done = point(&run, "done");
    restart(&mut run, Some(done));
    assert_eq!(rows_of_names(&run), [("state.done", "")]);
    assert_eq!(run.reload().state(), &json!({"poll": 3}));
}

#[test]
fn results_of_any_size_and_small_values_are_stored_on_the_token() {
    let mapped = |mapping: Value| {
        let node = json!({"id": "a", "action_id": "work", "output_mapping": mapping});
        Driver::start(json!({"nodes": [node]}))
    };
    let text = |bytes: usize| json!("x".repeat(bytes));
    let mut run = mapped(json!({"state.whole": "${result}", "output.part": "${result.a}"}));
    run.succeed("t1@1", json!({"a": 1, "b": text(100_000)}));
    assert_eq!(rows_of_names(&run), []);
    run.reload();
    assert_eq!(run.state()["whole"]["b"], text(100_000));
    assert_eq!(run.run.context().output(), &json!({"part": 1}));
    // Two values that are too large together: the second gets its own row.
    let mut run = mapped(json!({"state.first": "${result.a}", "state.second": "${result.b}"}));
    run.succeed("t1@1", json!({"a": text(9_000), "b": text(9_000)}));
    let names: Vec<&str> = rows_of_names(&run).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["state.second"]);
    let state = json!({"first": text(9_000), "second": text(9_000)});
    assert_eq!(run.reload().state(), &state);
}

#[test]
fn a_failed_token_stores_no_names() {
    // Its mapping wrote to the context, then a condition failed to evaluate.
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "condition": "state.nothing.there == 1"},
            {"from_node_id": "a", "to_node_id": "c", "on": "failure"},
        ],
    }));
    run.succeed("t1@1", json!(1));
    assert_eq!(rows_of_names(&run), [("state.a", "1")]);
    assert_eq!(run.store.tokens[&1].0, "failed");
    assert_eq!(run.reload().state(), &json!({"a": 1}));
}
