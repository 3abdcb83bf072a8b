//! The tokens that a fan-out creates: how many, with which items, in which instance, within which limits.

use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, render};
use super::graphs::{and, fan, joining, three, with};

fn started(document: Value, input: Value) -> Driver {
    Driver::start_with(SETTINGS, document, input)
}

/// Mapped inputs of the orders in the last decision.
fn orders(run: &Driver) -> Vec<String> {
    run.lines_of("dispatch")
}

/// Branches pass `item` and their index to the executor.
fn each(mut document: Value) -> Value {
    document["nodes"][1]["input_mapping"] = json!("${[item, _branch.index, _branch.total, _branch.item]}");
    document
}

#[test]
fn spawn_count_creates_siblings_of_one_instance() {
    Driver::start(fan(json!({"spawn_count": 2}), json!({}))).check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 a completed@0 null
        token t2 b executing@1 [1.0] watch 31000
        token t3 b executing@1 [1.1] watch 31000
        instance 1 out of 2
        alarm 31000
        dispatch t2@1 {"x":1}
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
}

#[test]
fn a_spawn_count_of_one_is_a_group_of_one() {
    let mut run = Driver::start(fan(
        json!({"spawn_count": 1}),
        json!({"merge": {"target": "state.all"}}),
    ));
    run.succeed("t2@1", json!("only"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["only"]}));
}

#[test]
fn foreach_creates_a_branch_per_item() {
    let spawn = json!({"foreach": {"collection": "input.items"}});
    let run = started(each(fan(spawn, json!({}))), json!({"items": ["p", 7, null]}));
    assert_eq!(
        orders(&run),
        [
            "dispatch t2@1 [\"p\",0,3,\"p\"]",
            "dispatch t3@1 [7,1,3,7]",
            "dispatch t4@1 [null,2,3,null]"
        ]
    );
}

#[test]
fn an_item_has_the_name_set_by_its_transition() {
    let spawn = json!({"foreach": {"collection": "input.items", "item_var": "city"}});
    let mut document = fan(spawn, json!({}));
    document["nodes"][1]["input_mapping"] = json!("go to ${city}");
    let run = started(document, json!({"items": ["Oslo", "Rome"]}));
    assert_eq!(
        orders(&run),
        ["dispatch t2@1 \"go to Oslo\"", "dispatch t3@1 \"go to Rome\""]
    );
}

#[test]
fn an_empty_list_spawns_nothing_and_the_path_ends() {
    let spawn = json!({"foreach": {"collection": "input.items"}});
    let run = started(fan(spawn, json!({})), json!({"items": []}));
    assert_eq!(run.status_line(), "completed {}");
    assert_eq!(run.lines_of("instance"), [""; 0]);
}

#[test]
fn a_non_list_is_a_validation_failure_that_names_the_field() {
    let spawn = json!({"foreach": {"collection": "input.items"}});
    for items in [json!({}), json!(3), json!("abc"), json!(null)] {
        let run = started(fan(spawn.clone(), json!({})), json!({"items": items}));
        assert_eq!(
            run.status_line(),
            "failed not_a_list/validation: foreach of transition out: \"input.items\" is not a list"
        );
    }
    let run = started(fan(spawn, json!({})), json!({}));
    assert!(
        run.status_line()
            .starts_with("failed expression_failed/validation: foreach of transition out"),
        "{}",
        run.status_line()
    );
}

#[test]
fn an_invalid_list_takes_the_failure_transition() {
    let mut document = and(
        fan(json!({"foreach": {"collection": "input.items"}}), json!({})),
        json!({"from_node_id": "a", "to_node_id": "z", "on": "failure"}),
    );
    document["nodes"][2]["input_mapping"] = json!("${error.code}");
    let mut run = started(document, json!({"items": 1}));
    assert_eq!(orders(&run), ["dispatch t2@1 \"not_a_list\""]);
    run.assert_status("running z:executing");
}

#[test]
fn a_list_has_at_most_a_thousand_items() {
    let spawn = json!({"foreach": {"collection": "input.items"}});
    let items = |count: usize| json!({"items": vec![0; count]});
    let run = started(fan(spawn.clone(), json!({})), items(1_000));
    assert_eq!(run.status_line(), "running 1000xb:executing");
    let run = started(fan(spawn, json!({})), items(1_001));
    assert_eq!(
        run.status_line(),
        "failed limit_exceeded/validation: foreach of transition out: 1001 items; the limit is 1000"
    );
}

#[test]
fn transitions_of_one_sibling_group_fire_into_one_instance() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "sibling_group": "judges"},
            {"from_node_id": "a", "to_node_id": "c", "sibling_group": "judges", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": joining("judges", json!({"merge": {"target": "state.all"}}))},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("judges", json!({"merge": {"target": "state.all"}}))},
        ],
    });
    let mut run = Driver::start(document);
    assert_eq!(run.lines_of("instance"), ["instance 1 judges of 3"]);
    run.succeed("t4@1", json!("c2"))
        .succeed("t2@1", json!("b"))
        .assert_status("running b:waiting_for_siblings c:executing c:waiting_for_siblings");
    run.succeed("t3@1", json!("c1"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["b", "c1", "c2"]}));
}

#[test]
fn conditions_see_the_branch() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "even", "action_id": "work"},
                  {"id": "odd", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "spawn_count": 3},
            {"from_node_id": "b", "to_node_id": "even", "condition": "_branch.index % 2 == 0 && _branch.output.ok"},
            {"from_node_id": "b", "to_node_id": "odd", "condition": "_branch.index == _branch.total - 2"},
        ],
    });
    let mut run = Driver::start(document);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!({"ok": true}));
    }
    run.assert_status("running 2xeven:executing odd:executing");
}

#[test]
fn a_branch_of_several_nodes_keeps_its_output() {
    let document = json!({
        "nodes": [
            {"id": "a"},
            {"id": "b", "action_id": "work", "output_mapping": {"_branch.output.first": "${result}"}},
            {"id": "c", "action_id": "work", "input_mapping": "${_branch.output}",
             "output_mapping": {"_branch.output.second": "${result}"}},
            {"id": "d"},
            {"id": "z", "action_id": "work"},
        ],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "c"},
            {"from_node_id": "c", "to_node_id": "d"},
            {"from_node_id": "d", "to_node_id": "z", "synchronization": joining("out", json!({"merge": {"target": "state.all"}}))},
        ],
    });
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1));
    assert_eq!(orders(&run), ["dispatch t4@1 {\"first\":1}"]);
    run.succeed("t3@1", json!(2)).succeed("t5@1", json!(20)).reload();
    run.succeed("t4@1", json!(10))
        .assert_status("running z:executing");
    assert_eq!(
        run.state(),
        &json!({"all": [{"first": 1, "second": 10}, {"first": 2, "second": 20}]})
    );
}

#[test]
fn the_last_result_is_the_branch_output_unless_it_is_dropped() {
    for (mapping, expected) in [
        (json!(null), json!(["second"])),
        (json!({}), json!(["first"])),
        (json!({"state.kept": "${result}"}), json!(["second"])),
        (json!({"_branch.output": "${result + \"!\"}"}), json!(["second!"])),
    ] {
        let document = json!({
            "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"},
                      with(json!({"id": "c", "action_id": "work"}), match mapping {
                          Value::Null => json!({}),
                          mapping => json!({"output_mapping": mapping}),
                      }),
                      {"id": "z"}],
            "transitions": [
                {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 1},
                {"from_node_id": "b", "to_node_id": "c"},
                {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", json!({"merge": {"target": "output.all"}}))},
            ],
        });
        let mut run = Driver::start(document);
        run.succeed("t2@1", json!("first"))
            .succeed("t3@1", json!("second"));
        assert_eq!(run.run.header.output, Some(json!({"all": expected})));
    }
}

#[test]
fn state_written_from_branches_is_shared_and_the_last_commit_wins() {
    let mut document = fan(
        json!({"spawn_count": 2}),
        json!({"merge": {"target": "state.all"}}),
    );
    document["nodes"][1]["output_mapping"] =
        json!({"state.shared": "${result}", "state.own": "${_branch.index}"});
    let mut run = Driver::start(document);
    run.succeed("t3@1", json!("two")).succeed("t2@1", json!("one"));
    assert_eq!(
        run.state(),
        &json!({"shared": "one", "own": 0, "all": ["one", "two"]})
    );
}

#[test]
fn a_branch_target_outside_any_branch_fails_the_token() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": {"_branch.output": "${result}"}}],
    }));
    run.succeed("t1@1", json!(1)).assert_status(
        "failed invalid_target/validation: output_mapping of node a: this token is in no branch",
    );
}

#[test]
fn each_firing_in_a_loop_is_its_own_instance() {
    let mut document = and(
        three(json!({})),
        json!({"id": "again", "from_node_id": "z", "to_node_id": "a", "loop_config": {"max_iterations": 1}}),
    );
    document["on_no_match"] = json!("end");
    let mut run = Driver::start(document);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(1));
    }
    run.succeed("t5@1", json!("z"));
    assert_eq!(run.lines_of("instance"), ["instance 2 out of 3"]);
    // Reports of the first iteration belong to the first instance.
    run.succeed("t2@1", json!(9)).check(
        "
        rejected stale_attempt t2@1
        event late_result_discarded t2",
    );
    run.assert_status("running 3xb:executing");
    for attempt in ["t7@1", "t8@1", "t9@1"] {
        run.succeed(attempt, json!(2));
    }
    run.assert_status("running z:executing")
        .succeed("t10@1", json!("z"));
    run.assert_status("completed {}");
    assert_eq!(run.state()["all"], json!([1, 1, 1, 2, 2, 2]));
}

#[test]
fn outer_items_stay_visible_and_inner_items_shadow_them() {
    let document = |inner: &str| {
        json!({
            "nodes": [{"id": "a"}, {"id": "b"},
                      {"id": "c", "action_id": "work", "input_mapping": "${[row, item]}"}],
            "transitions": [
                {"from_node_id": "a", "to_node_id": "b", "foreach": {"collection": "input.rows", "item_var": "row"}},
                {"from_node_id": "b", "to_node_id": "c", "foreach": {"collection": "row", "item_var": inner}},
                // Never taken: it only declares the name `item`.
                {"from_node_id": "c", "to_node_id": "c", "foreach": {"collection": "[]"}, "loop_config": {"max_iterations": 1}},
            ],
        })
    };
    let run = started(document("item"), json!({"rows": [["p"], ["q"]]}));
    assert_eq!(
        orders(&run),
        ["dispatch t4@1 [[\"p\"],\"p\"]", "dispatch t5@1 [[\"q\"],\"q\"]"]
    );
    let mut hiding = document("row");
    hiding["nodes"][2]["input_mapping"] = json!("${row}");
    let run = started(hiding, json!({"rows": [["p"], ["q"]]}));
    assert_eq!(orders(&run), ["dispatch t4@1 \"p\"", "dispatch t5@1 \"q\""]);
}

#[test]
fn an_exponential_fan_out_exceeds_tokens_active() {
    let mut nodes = vec![json!({"id": "n0"})];
    let mut transitions = Vec::new();
    for level in 1..=4 {
        nodes.push(json!({"id": format!("n{level}")}));
        transitions.push(json!({"from_node_id": format!("n{}", level - 1), "to_node_id": format!("n{level}"), "spawn_count": 10}));
    }
    let mut run = Driver::start(json!({"nodes": nodes, "transitions": transitions}));
    run.assert_status("failed limit_exceeded/permanent: limit tokens_active exceeded: the run may have 1000");
    assert_eq!(run.lines_of("dispatch"), [""; 0]);
}

#[test]
fn a_fan_out_over_tokens_total_dispatches_nothing() {
    let mut document = fan(json!({"spawn_count": 20}), json!({}));
    document["limits"] = json!({"tokens_total": 10});
    let mut run = Driver::start(document);
    run.assert_status("failed limit_exceeded/permanent: limit tokens_total exceeded: the run may have 10");
    assert_eq!(run.lines_of("dispatch"), [""; 0]);
    assert_eq!(run.run.counts().values().sum::<u64>(), 10);
}

#[test]
fn without_a_join_the_run_ends_with_its_last_branch_and_fails_with_a_failed_one() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b", "spawn_count": 2}],
    });
    let mut run = Driver::start(document.clone());
    run.succeed("t2@1", json!(1)).assert_status("running b:executing");
    run.reload()
        .succeed("t3@1", json!(2))
        .assert_status("completed {}");
    let mut run = Driver::start(document);
    run.fail("t2@1")
        .assert_status("failed peer_failed/server_error: status 500");
    assert_eq!(run.lines_of("abort"), ["abort t3@1"]);
}

/// One instance, one merge, and cost linear in the number of branches.
#[test]
fn the_cost_of_a_thousand_branches_is_linear() {
    let began = std::time::Instant::now();
    let merge = json!({"merge": {"target": "state.all"}});
    let mut run = Driver::start(fan(json!({"spawn_count": 1_000}), merge));
    assert_eq!(run.lines_of("instance").len(), 1);
    assert_eq!(run.lines_of("dispatch").len(), 1_000);
    let mut saved = 0;
    for token in 2..=1_001 {
        run.succeed(&format!("t{token}@1"), json!(token));
        let lines = render(&run.decision, &run.run).len();
        // The first arrival starts the wait and the last one fires the join; every other writes one row.
        let most = match token {
            2 => 3,
            1_001 => 1_010,
            _between => 1,
        };
        assert!(lines <= most, "t{token} cost {lines} effects");
        saved += lines;
    }
    run.assert_status("running z:executing");
    assert_eq!(run.state()["all"].as_array().map(Vec::len), Some(1_000));
    assert!(saved < 2_100, "{saved} effects");
    run.succeed("t1002@1", json!(1)).assert_status("completed {}");
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 2.0, "took {seconds} s");
}
