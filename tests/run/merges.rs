//! Merging the results of branches: the five strategies, existing values at the target, and values that cannot be merged.

use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};
use super::graphs::{fan, joining};

/// Three branches merge `parts` into `state.m`, finishing in the order 2, 0, 1. The target holds `held` unless that is null.
fn merged(merge: Value, held: Value, parts: [Value; 3]) -> Result<Value, String> {
    let mut document = fan(json!({"spawn_count": 3}), json!({"merge": merge}));
    if !held.is_null() {
        document["nodes"][0]["output_mapping"] = json!({"state.m": "${input.held}"});
    }
    let mut run = Driver::start_with(SETTINGS, document, json!({"held": held}));
    for index in [2usize, 0, 1] {
        run.succeed(&format!("t{}@1", index + 2), parts[index].clone());
    }
    match run.run.header.error.as_ref() {
        None => Ok(run.state()["m"].clone()),
        Some(error) => Err(format!("{}: {}", error.code, error.message)),
    }
}

fn by(strategy: &str) -> Value {
    json!({"target": "state.m", "strategy": strategy})
}

fn numbers() -> [Value; 3] {
    [json!(10), json!(11), json!(12)]
}

#[test]
fn append_adds_one_element_per_branch_in_branch_order_after_existing_ones() {
    assert_eq!(
        merged(by("append"), json!(null), numbers()),
        Ok(json!([10, 11, 12]))
    );
    assert_eq!(
        merged(by("append"), json!(["old"]), numbers()),
        Ok(json!(["old", 10, 11, 12]))
    );
    let lists = [json!([1]), json!([]), json!(null)];
    assert_eq!(merged(by("append"), json!([]), lists), Ok(json!([[1], [], null])));
    assert_eq!(
        merged(json!({"target": "state.m"}), json!(null), numbers()),
        Ok(json!([10, 11, 12])),
        "append is what an absent strategy means"
    );
}

#[test]
fn concat_flattens_one_level() {
    let lists = [json!([1, [2]]), json!([]), json!("three")];
    assert_eq!(
        merged(by("concat"), json!([0]), lists),
        Ok(json!([0, 1, [2], "three"]))
    );
}

#[test]
fn merge_object_is_shallow_and_later_branches_win() {
    let objects = [
        json!({"a": 1, "deep": {"x": 1}}),
        json!({"a": 2}),
        json!({"deep": {"y": 1}}),
    ];
    assert_eq!(
        merged(by("merge_object"), json!({"old": 0, "a": 0}), objects),
        Ok(json!({"old": 0, "a": 2, "deep": {"y": 1}}))
    );
}

#[test]
fn keyed_by_branch_uses_the_branch_index_as_key() {
    assert_eq!(
        merged(
            by("keyed_by_branch"),
            json!({"kept": true, "1": "old"}),
            numbers()
        ),
        Ok(json!({"kept": true, "0": 10, "1": 11, "2": 12}))
    );
}

#[test]
fn last_wins_takes_the_branch_that_finished_last() {
    assert_eq!(
        merged(by("last_wins"), json!({"any": "thing"}), numbers()),
        Ok(json!(11))
    );
}

#[test]
fn incompatible_values_fail_the_join_and_name_the_target() {
    for (strategy, held, parts, message) in [
        (
            "append",
            json!({}),
            numbers(),
            "expected an array at the target, found an object",
        ),
        (
            "concat",
            json!("text"),
            numbers(),
            "expected an array at the target, found a string",
        ),
        (
            "merge_object",
            json!([1]),
            numbers(),
            "expected an object at the target, found an array",
        ),
        (
            "keyed_by_branch",
            json!(7),
            numbers(),
            "expected an object at the target, found a number",
        ),
        (
            "merge_object",
            json!(null),
            [json!({}), json!(1), json!({})],
            "expected an object from branch 1, found a number",
        ),
    ] {
        assert_eq!(
            merged(by(strategy), held, parts),
            Err(format!("merge_failed: merge of transition in: {message}")),
            "{strategy}"
        );
    }
}

#[test]
fn a_source_selects_a_part_of_the_branch_output() {
    let parts = [
        json!({"score": 3, "text": "p"}),
        json!({"score": 1}),
        json!({"score": 2}),
    ];
    let merge = json!({"target": "state.m", "source": "[_branch.index, _branch.output.score]"});
    assert_eq!(
        merged(merge, json!(null), parts.clone()),
        Ok(json!([[0, 3], [1, 1], [2, 2]]))
    );
    let broken = json!({"target": "state.m", "source": "_branch.output.text"});
    let error = merged(broken, json!(null), parts).expect_err("two branches have no text");
    assert!(
        error.starts_with("expression_failed: merge of transition in"),
        "{error}"
    );
}

#[test]
fn without_a_merge_the_join_only_waits() {
    let mut run = Driver::start(fan(json!({"spawn_count": 2}), json!({})));
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(1))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({}));
}

#[test]
fn deep_targets_and_the_output_can_be_merged_into() {
    for target in ["output.deep.list", "state.deep.list"] {
        let mut run = Driver::start(fan(
            json!({"spawn_count": 2}),
            json!({"merge": {"target": target}}),
        ));
        run.succeed("t2@1", json!(1))
            .succeed("t3@1", json!(2))
            .assert_status("running z:executing");
        let context = run.run.context();
        let root = if target.starts_with("state") {
            context.state()
        } else {
            context.output()
        };
        assert_eq!(root["deep"]["list"], json!([1, 2]));
    }
}

#[test]
fn a_merge_over_the_context_limit_fails_the_join_and_changes_nothing() {
    let mut run = Driver::start(fan(
        json!({"spawn_count": 3}),
        json!({"merge": {"target": "state.m"}}),
    ));
    let large = json!("x".repeat(400_000));
    for token in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(token, large.clone());
    }
    assert!(
        run.status_line()
            .starts_with("failed limit_exceeded/validation: the context would hold")
    );
    assert_eq!(run.state(), &json!({}));
    assert_eq!(run.run.live_tokens().count(), 0);
}

/// Validation rejects targets outside `state`, `output` and `_branch.output` before a run starts.
#[test]
fn a_merge_into_the_branch_needs_an_enclosing_branch() {
    let mut run = Driver::start(fan(
        json!({"spawn_count": 1}),
        json!({"merge": {"target": "_branch.output"}}),
    ));
    run.succeed("t2@1", json!(1)).assert_status(
        "failed invalid_target/validation: merge of transition in: there is no branch around this join to merge into",
    );
}

#[test]
fn a_late_branch_is_merged_under_its_own_index() {
    let join = json!({"strategy": "any", "on_early_complete": "allow_late_merge",
        "merge": {"target": "state.m", "strategy": "keyed_by_branch"}});
    let mut run = Driver::start(fan(json!({"spawn_count": 3}), join));
    run.succeed("t4@1", json!("c"))
        .succeed("t2@1", json!("a"))
        .succeed("t3@1", json!("b"));
    assert_eq!(run.state()["m"], json!({"0": "a", "1": "b", "2": "c"}));
}

/// The arriving token is in a branch nested inside the joined one.
#[test]
fn a_late_branch_from_a_nested_branch_is_merged_under_the_joined_index() {
    let join = json!({"strategy": "any", "on_early_complete": "allow_late_merge",
        "merge": {"target": "state.m", "strategy": "keyed_by_branch"}});
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}, {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", join)},
        ],
    }));
    // t4, t5 belong to branch 0; t6, t7 to branch 1.
    run.succeed("t5@1", json!("first"))
        .succeed("t6@1", json!("second"));
    assert_eq!(run.state()["m"], json!({"0": "first", "1": "second"}));
}
