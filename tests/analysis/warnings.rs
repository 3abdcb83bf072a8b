//! What the documents of the page do not show: warnings that depend on details, and documents that deserve none.

use curfew::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};
use serde_json::{Value, json};

use super::{analysis_in, codes};

fn library() -> Library {
    let children = [
        json!({"id": "long", "timeout": "2h", "nodes": [{"id": "a"}]}),
        json!({"id": "endless", "timeout": null, "nodes": [{"id": "a"}]}),
        json!({"id": "usual", "nodes": [{"id": "a"}]}),
    ];
    let entries = children.into_iter().map(|content| {
        let reference = Reference {
            kind: DocumentKind::Workflows,
            id: content["id"].as_str().expect("an id").to_string(),
            version: None,
        };
        (reference, Some(CatalogueDocument { version: 1, content }))
    });
    entries.collect()
}

fn found(document: Value) -> Vec<String> {
    let mut document = document;
    document["id"] = json!("w");
    let mut actions = vec![
        json!({"id": "set", "kind": "update_context", "implementation": {"set": {"x": 1}}}),
        json!({"id": "get", "kind": "http_request", "implementation": {"url": "https://example.com"},
            "execution": {"timeout": "20s", "retry_policy": {"max_attempts": 3, "backoff": "none"}}}),
    ];
    actions.extend(document["actions"].as_array().cloned().unwrap_or_default());
    document["actions"] = json!(actions);
    let analysis = analysis_in(&document, &library());
    assert!(analysis.errors.is_empty(), "{:?}", analysis.errors);
    codes(&analysis)
        .into_iter()
        .map(|(code, pointer)| format!("{code} {pointer}"))
        .collect()
}

fn chain(nodes: Value) -> Value {
    let listed = nodes.as_array().expect("nodes");
    let edges: Vec<Value> = (1..listed.len())
        .map(|to| json!({"from_node_id": listed[to - 1]["id"], "to_node_id": listed[to]["id"]}))
        .collect();
    json!({"nodes": nodes, "transitions": edges})
}

fn check(document: Value, expected: &[&str]) {
    assert_eq!(found(document.clone()), expected, "{document}");
}

#[test]
fn data_is_followed_along_every_way() {
    let read = |expression: &str| json!({"id": "c", "output_mapping": {"output.y": expression}});
    let nodes = |expression: &str| json!([{"id": "a", "action_id": "set"}, {"id": "b", "action_id": "set"}, read(expression)]);
    let at = "unwritten_path /nodes/2/output_mapping/output.y";
    check(chain(nodes("${state.a.x + state.b.x}")), &[]);
    check(chain(nodes("${state.d.x}")), &[at]);
    // A way around `b`: its failure leads on, too.
    let mut around = chain(nodes("${state.b.x}"));
    let failed = json!({"from_node_id": "a", "to_node_id": "c", "on": "failure"});
    around["transitions"].as_array_mut().expect("a list").push(failed);
    check(around.clone(), &[at]);
    around["nodes"][2] = read("${has(state.b) ? state.b.x : 0}");
    check(around.clone(), &[]);
    around["nodes"][2] = read("${state.?b.x.orValue(0)}");
    check(around, &[]);
}

#[test]
fn branches_keep_their_results_to_themselves() {
    let fan = |node: Value, after: Value| {
        json!({"nodes": [{"id": "a"}, node, after], "transitions": [
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "foreach": {"collection": "input.list", "item_var": "it"}},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each", "merge": {"target": "state.all"}}}]})
    };
    let work =
        json!({"id": "b", "action_id": "set", "input_mapping": {"a": "${it.x}", "n": "${_branch.index}"}});
    let after = |expression: &str| json!({"id": "c", "output_mapping": {"output.y": expression}});
    check(fan(work.clone(), after("${state.all}")), &[]);
    let at = ["unwritten_path /nodes/2/output_mapping/output.y"];
    // In a branch the result of `b` is not in `state.b`; the item and the branch end with the join.
    check(fan(work.clone(), after("${state.b}")), &at);
    check(fan(work.clone(), after("${it}")), &at);
    check(fan(work.clone(), after("${_branch.output}")), &at);
    let wrong = json!({"id": "b", "action_id": "set", "input_mapping": {"a": "${_branch.number}"}});
    check(
        fan(wrong, after("${state.all}")),
        &["unwritten_path /nodes/1/input_mapping/a"],
    );
}

#[test]
fn the_schema_of_the_input_knows_its_members() {
    let schema =
        json!({"type": "object", "properties": {"order": {"type": "object", "properties": {"id": {}}}}});
    let reading = |expression: &str| {
        let mut document =
            chain(json!([{"id": "a", "action_id": "set", "input_mapping": {"x": expression}}]));
        document["input_schema"] = schema.clone();
        document
    };
    check(reading("${input.order.id}"), &[]);
    check(
        reading("${input.order.idd}"),
        &["unwritten_path /nodes/0/input_mapping/x"],
    );
    check(
        reading("${input.oder.id}"),
        &["unwritten_path /nodes/0/input_mapping/x"],
    );
}

#[test]
fn tasks_have_a_state_of_their_own() {
    let steps = |condition: &str| {
        let task = json!({"id": "t", "steps": [
            {"ref": "one", "action_id": "set", "output_mapping": {"state.found": "${result}"}},
            {"ref": "two", "action_id": "set", "condition": condition}]});
        json!({"nodes": [{"id": "a", "task_id": "t"}], "tasks": [task]})
    };
    check(steps("state.found.x == 1"), &[]);
    check(steps("has(state._errors)"), &[]);
    check(
        steps("state.fond.x == 1"),
        &["unwritten_path /tasks/0/steps/1/condition"],
    );
}

#[test]
fn limits_are_compared_with_those_around_them() {
    let under = |timeout: &str, node: Value| {
        let mut document = chain(json!([node]));
        document["timeout"] = json!(timeout);
        document
    };
    // Three calls of 20 s in an attempt of 30 s, and an attempt that is longer than its run.
    check(
        under("1h", json!({"id": "a", "action_id": "get", "timeout": "30s"})),
        &["deadline_cannot_fit /nodes/0/timeout"],
    );
    check(
        under("1h", json!({"id": "a", "action_id": "get", "timeout": "1m"})),
        &[],
    );
    check(
        under("10s", json!({"id": "a", "action_id": "get"})),
        &["deadline_cannot_fit /nodes/0"],
    );
    check(
        under("1h", json!({"id": "a", "wait": {"sleep": "2h"}})),
        &["deadline_cannot_fit /nodes/0/wait/sleep"],
    );
    check(
        under(
            "1h",
            json!({"id": "a", "wait": {"signal": "go", "timeout": "2h"}}),
        ),
        &["deadline_cannot_fit /nodes/0/wait/timeout"],
    );
    check(
        under("1h", json!({"id": "a", "workflow_id": "long"})),
        &["deadline_cannot_fit /nodes/0/workflow_id"],
    );
    check(
        under("1h", json!({"id": "a", "workflow_id": "long", "timeout": "10m"})),
        &[],
    );
    check(
        under("1h", json!({"id": "a", "workflow_id": "endless"})),
        &["no_timeout /nodes/0/workflow_id"],
    );
    check(under("1h", json!({"id": "a", "workflow_id": "usual"})), &[]);
}

#[test]
fn routes_that_are_meant_are_left_alone() {
    let gate = |choices: Value, conditions: &[&str]| {
        let edges: Vec<Value> = conditions
            .iter()
            .map(|condition| json!({"from_node_id": "ask", "to_node_id": "b", "condition": condition}))
            .collect();
        json!({"nodes": [{"id": "ask", "gate": {"choices": choices, "timeout": "1h"}}, {"id": "b"}], "transitions": edges})
    };
    let (yes, no) = ("state.ask.choice == 'yes'", "state.ask.choice == 'no'");
    check(gate(json!(["yes", "no"]), &[yes, no]), &[]);
    check(
        gate(json!(["yes", "no", "later"]), &[yes, no]),
        &["may_not_match /nodes/0"],
    );
    // A failure that is handled, and a path that may end.
    let mut handled = gate(json!(["yes", "no"]), &[yes]);
    handled["nodes"][0]["on_no_match"] = json!("end");
    check(handled, &[]);
    // Ways that never meet run side by side.
    let apart = json!({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"}]});
    check(apart, &[]);
}

#[test]
fn secrets_are_looked_for_in_every_kind_of_work() {
    let call = json!({"id": "tell", "kind": "http_request", "execution": {"timeout": "5s"},
        "implementation": {"url": "https://example.com", "headers": {"a": "${secret.OTHER}"}}});
    let document =
        |node: Value, on_end: Value| json!({"nodes": [node], "on_end": on_end, "actions": [call.clone()]});
    let quiet = json!({"id": "a", "action_id": "set"});
    check(
        document(quiet.clone(), json!([{"action_id": "tell"}])),
        &["unknown_secret /on_end/0"],
    );
    let undone = json!({"id": "a", "action_id": "set", "compensate": {"action_id": "tell"}});
    check(
        document(undone, json!([])),
        &["unknown_secret /nodes/0/compensate"],
    );
    check(document(quiet, json!([])), &[]);
}

/// Without a mapping of its node a task reads the run's input.
#[test]
fn what_work_reads_of_the_runs_input_is_looked_up_in_its_schema() {
    let schema = json!({"type": "object", "properties": {"base_url": {"type": "string"}}});
    let action = |implementation: Value| json!([{"id": "call", "kind": "http_request", "implementation": implementation, "execution": {"timeout": "5s"}}]);
    let with = |node: Value, actions: Value| json!({"input_schema": schema, "timeout": "1h", "nodes": [node], "actions": actions});
    let wrong = action(json!({"url": "${input.base_ulr}/x", "headers": {"x": "${input.base_url}"}}));
    let plain = json!({"id": "a", "action_id": "call"});
    check(
        with(plain.clone(), wrong.clone()),
        &["unwritten_path /actions/2/implementation/url"],
    );
    check(
        with(plain.clone(), action(json!({"url": "${input.base_url}"}))),
        &[],
    );
    // The input is what the mapping makes of it.
    let mapped = json!({"id": "a", "action_id": "call", "input_mapping": {"base_ulr": "${input.base_url}"}});
    check(with(mapped, wrong.clone()), &[]);
    // Nothing is known of the input.
    let mut open = with(plain, wrong.clone());
    open["input_schema"] = Value::Null;
    check(open, &[]);
    let steps = json!([
        {"action_id": "call"},
        {"ref": "mapped", "action_id": "call", "input_mapping": {"base_ulr": "${input.bas_url}"}},
        {"ref": "checked", "condition": "input.bse_url != ''",
            "action": {"kind": "assert", "implementation": {"condition": "input.base == ''"}}},
        {"ref": "asked", "action": {"kind": "assert", "implementation": {"condition": "!has(input.other)"}}},
        {"ref": "emitted", "action": {"kind": "emit_event", "implementation": {"name": "x", "payload": "${input.url}"}}},
    ]);
    let mut document = with(json!({"id": "a", "task_id": "t", "timeout": "10m"}), wrong);
    document["tasks"] = json!([{"id": "t", "steps": steps}]);
    check(
        document,
        &[
            "unwritten_path /actions/2/implementation/url",
            "unwritten_path /tasks/0/steps/1/input_mapping/base_ulr",
            "unwritten_path /tasks/0/steps/2/action/implementation/condition",
            "unwritten_path /tasks/0/steps/2/condition",
            "unwritten_path /tasks/0/steps/4/action/implementation/payload",
        ],
    );
}

/// A document of the catalogue is not shown in the workflow, so the place is the reference.
#[test]
fn a_wrong_path_in_the_catalogue_is_reported_where_it_is_named() {
    let reference = |kind, id: &str| Reference {
        kind,
        id: id.into(),
        version: None,
    };
    let stored = |content: Value| Some(CatalogueDocument { version: 1, content });
    let mut library = library();
    let action = json!({"id": "call", "kind": "service_call", "implementation": {"binding": "PEER", "path": "/${input.idd}"},
        "execution": {"timeout": "5s"}});
    let task = json!({"id": "t", "timeout": "1m", "steps": [{"action_id": "call"}]});
    library.insert(reference(DocumentKind::Actions, "call"), stored(action));
    library.insert(reference(DocumentKind::Tasks, "t"), stored(task));
    let document = json!({"id": "w", "input_schema": {"properties": {"id": {}}}, "timeout": "1h",
        "nodes": [{"id": "a", "action_id": "call"}, {"id": "b", "task_id": "t"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]});
    let analysis = analysis_in(&document, &library);
    assert_eq!(
        codes(&analysis),
        [
            ("unwritten_path", "/nodes/0/action_id"),
            ("unwritten_path", "/nodes/1/task_id")
        ]
    );
    let message = &analysis.warnings[0].message;
    assert_eq!(
        message,
        "input_schema does not know \"idd\" of \"input.idd\"; did you mean \"id\"?; without an \"input_mapping\" the node \"a\" \
         gives its work the run's input"
    );
}

#[test]
fn what_can_never_fit_is_said() {
    let at = ["deadline_cannot_fit /timeout"];
    let under = |document: Value| {
        let mut document = document;
        document["timeout"] = json!("1h");
        document
    };
    let sleep = |id: &str, length: &str| json!({"id": id, "wait": {"sleep": length}});
    check(under(chain(json!([sleep("a", "40m"), sleep("b", "40m")]))), &at);
    check(under(chain(json!([sleep("a", "20m"), sleep("b", "20m")]))), &[]);
    // One of several ways is quick, or a failure is.
    let mut around = chain(json!([sleep("a", "40m"), sleep("b", "40m"), {"id": "c"}]));
    around["transitions"][0]["condition"] = json!("input.x");
    let other = json!({"from_node_id": "a", "to_node_id": "c", "priority": 1});
    around["transitions"].as_array_mut().expect("a list").push(other);
    check(under(around), &[]);
    let mut failing =
        chain(json!([{"id": "a", "action_id": "set"}, sleep("b", "40m"), sleep("c", "40m"), {"id": "d"}]));
    check(under(failing.clone()), &at);
    let failed = json!({"from_node_id": "a", "to_node_id": "d", "on": "failure"});
    failing["transitions"]
        .as_array_mut()
        .expect("a list")
        .push(failed);
    check(under(failing), &[]);
    let looping = |rounds: u64, condition: Value| {
        json!({"nodes": [sleep("a", "10m"), {"id": "b"}, {"id": "e"}], "transitions": [{"from_node_id": "a", "to_node_id": "b"},
            {"from_node_id": "b", "to_node_id": "a", "loop_config": {"max_iterations": rounds}, "condition": condition},
            {"from_node_id": "b", "to_node_id": "e", "priority": 1}]})
    };
    check(under(looping(10, Value::Null)), &at);
    check(under(looping(4, Value::Null)), &[]);
    check(under(looping(10, json!("input.again"))), &[]);
}

#[test]
fn the_calls_of_all_steps_are_compared_with_the_limit() {
    let single = |execution: Value| json!({"id": "single", "kind": "http_request", "implementation": {"url": "https://example.com"}, "execution": execution});
    let once = || single(json!({"timeout": "30s", "retry_policy": {"max_attempts": 1}}));
    let steps = |timeout: &str| {
        let steps = json!([{"ref": "x", "action_id": "single"}, {"ref": "y", "action_id": "single"}]);
        json!({"nodes": [{"id": "a", "task_id": "t"}], "actions": [once()], "tasks": [{"id": "t", "timeout": timeout, "steps": steps}]})
    };
    check(steps("40s"), &["deadline_cannot_fit /nodes/0"]);
    check(steps("1m"), &[]);
    let total = |total: &str, attempts: u64| {
        let policy = json!({"total_timeout": total, "max_attempts": attempts});
        let action = single(json!({"timeout": "5s", "retry_policy": policy}));
        json!({"nodes": [{"id": "a", "action_id": "single", "timeout": "10s"}], "actions": [action]})
    };
    check(total("30s", 1), &["deadline_cannot_fit /nodes/0/timeout"]);
    // Fifty calls are cut short by it.
    check(total("10s", 50), &[]);
}

#[test]
fn conditions_that_leave_nothing_open_are_left_alone() {
    let routed = |conditions: &[&str], schema: Value| {
        let edges: Vec<Value> = conditions
            .iter()
            .map(|condition| json!({"from_node_id": "a", "to_node_id": "b", "condition": condition}))
            .collect();
        json!({"nodes": [{"id": "a"}, {"id": "b"}], "transitions": edges, "input_schema": schema})
    };
    let schema = |member: Value| json!({"type": "object", "required": ["x"], "properties": {"x": member}});
    let open = ["may_not_match /nodes/0"];
    let kinds = || schema(json!({"enum": ["card", "bank", "cash"]}));
    let kind = |name: &str| format!("input.x == '{name}'");
    let (card, bank, cash) = (kind("card"), kind("bank"), kind("cash"));
    check(routed(&[&card, &bank, &cash], kinds()), &[]);
    check(routed(&[&card, "input.x in ['bank', 'cash']"], kinds()), &[]);
    check(routed(&[&card, &bank], kinds()), &open);
    check(
        routed(&[&card, &bank, &cash], schema(json!({"type": "string"}))),
        &open,
    );
    let vip = ["input.x == true", "input.x == false"];
    check(routed(&vip, schema(json!({"type": "boolean"}))), &[]);
    check(routed(&vip, json!({})), &open);
    let bands = ["input.s < 30", "input.s >= 30 && input.s < 70", "input.s >= 70"];
    check(routed(&bands, json!({})), &[]);
    check(routed(&[bands[0], bands[2]], json!({})), &open);
    check(routed(&["input.n < 10", "10 <= input.n"], json!({})), &[]);
    check(
        routed(&["input.n < input.m", "input.m <= input.n"], json!({})),
        &[],
    );
}

#[test]
fn transitions_that_never_fire_reach_nothing() {
    let document = |node: Value, route: Value| {
        let mut route = route;
        route["from_node_id"] = json!("a");
        route["to_node_id"] = json!("c");
        json!({"nodes": [node, {"id": "b"}, {"id": "c"}], "transitions": [{"from_node_id": "a", "to_node_id": "b"}, route]})
    };
    let at = ["unreachable_node /nodes/2"];
    let pass = || json!({"id": "a"});
    let sleep = || json!({"id": "a", "wait": {"sleep": "1s"}});
    check(document(pass(), json!({"priority": 1})), &at);
    check(document(pass(), json!({"on": "timeout"})), &at);
    check(document(sleep(), json!({"on": "timeout"})), &at);
    check(document(sleep(), json!({"on": "failure"})), &at);
    check(document(pass(), json!({"condition": "false"})), &at);
    let signal = json!({"id": "a", "wait": {"signal": "go", "timeout": "1m"}});
    check(document(signal, json!({"on": "timeout"})), &[]);
    check(
        document(json!({"id": "a", "action_id": "set"}), json!({"on": "failure"})),
        &[],
    );
    // A condition may fail, and so may what is written.
    let writing = json!({"id": "a", "output_mapping": {"state.x": "${input.x}"}});
    check(document(writing, json!({"on": "failure"})), &[]);
    let mut choosing = document(pass(), json!({"on": "failure"}));
    choosing["transitions"][0]["condition"] = json!("input.x");
    choosing["on_no_match"] = json!("end");
    check(choosing, &[]);
}

#[test]
fn groups_that_nothing_joins_run_on_together() {
    let document = |group: Value| {
        json!({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}], "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "sibling_group": group}, {"from_node_id": "a", "to_node_id": "c", "sibling_group": group},
            {"from_node_id": "b", "to_node_id": "d"}, {"from_node_id": "c", "to_node_id": "d"}]})
    };
    check(document(json!("g")), &["runs_twice /transitions/1"]);
    let mut joined = document(json!("g"));
    for index in [2, 3] {
        joined["transitions"][index]["synchronization"] = json!({"sibling_group": "g"});
    }
    check(joined, &[]);
    // A number of branches was asked for.
    let several = json!({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "transitions": [
        {"from_node_id": "a", "to_node_id": "b", "spawn_count": 3}, {"from_node_id": "b", "to_node_id": "c"}]});
    check(several, &[]);
}

#[test]
fn branches_that_write_around_each_other_are_told_apart() {
    let branches = |writes: [(&str, Value); 2]| {
        let [(one, some), (other, more)] = writes;
        let join = json!({"sibling_group": "g", "merge": {"target": "state.all"}});
        json!({"nodes": [{"id": "a"}, {"id": "b", "output_mapping": {one: some}}, {"id": "c", "output_mapping": {other: more}}, {"id": "d"}],
            "transitions": [{"from_node_id": "a", "to_node_id": "b", "sibling_group": "g"}, {"from_node_id": "a", "to_node_id": "c", "sibling_group": "g"},
                {"from_node_id": "b", "to_node_id": "d", "synchronization": join}, {"from_node_id": "c", "to_node_id": "d", "synchronization": join}]})
    };
    check(
        branches([("state.x", json!(1)), ("state.x.y", json!(2))]),
        &["shared_write /nodes/2/output_mapping/state.x.y"],
    );
    check(
        branches([("state.x", json!(1)), ("state.x", json!(2))]),
        &["shared_write /nodes/1/output_mapping/state.x"],
    );
    check(branches([("state.x", json!(1)), ("state.x", json!(1))]), &[]);
    check(branches([("state.x.y", json!(1)), ("state.x.z", json!(2))]), &[]);
    // One branch writes both, one after the other.
    let join = json!({"sibling_group": "g", "merge": {"target": "state.all"}});
    let same = json!({"nodes": [{"id": "a"}, {"id": "b", "output_mapping": {"state.x": "${input.x}"}},
            {"id": "b2", "output_mapping": {"state.x": "${input.y}", "state.x.y": 1}}, {"id": "c"}, {"id": "d"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b", "sibling_group": "g"}, {"from_node_id": "a", "to_node_id": "c", "sibling_group": "g"},
            {"from_node_id": "b", "to_node_id": "b2"}, {"from_node_id": "b2", "to_node_id": "d", "synchronization": join},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": join}]});
    check(same, &[]);
}

#[test]
fn quorums_are_compared_with_the_lists_of_a_foreach() {
    let document = |collection: &str, needed: u64| {
        json!({"input_schema": {"type": "object", "properties": {"l": {"type": "array", "maxItems": 2}}},
            "nodes": [{"id": "a"}, {"id": "b", "wait": {"sleep": "1s"}}, {"id": "c"}], "transitions": [
                {"id": "each", "from_node_id": "a", "to_node_id": "b", "foreach": {"collection": collection}},
                {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each", "strategy": {"m_of_n": needed}}}]})
    };
    let at = ["quorum_too_large /transitions/1/synchronization/strategy/m_of_n"];
    check(document("input.l", 3), &at);
    check(document("input.l", 2), &[]);
    check(document("[1, 2]", 3), &at);
    check(
        document("state.l", 3),
        &["unwritten_path /transitions/0/foreach/collection"],
    );
}
