//! Called workflows: simulated where their documents are known, mocked where a mock names the node.

use serde_json::{Value, json};

use super::{chain, path_of, refused, simulated};

fn parent() -> Value {
    chain(
        json!([{"id": "call", "workflow_id": "child"}]),
        json!({"output_mapping": "${state.call}"}),
    )
}

fn child() -> Value {
    let mut child = chain(
        json!([{"id": "c", "action_id": "work"}]),
        json!({"output_mapping": {"from": "${state.c}"}}),
    );
    child["id"] = json!("child");
    child
}

#[test]
fn a_known_child_is_simulated() {
    let answer = simulated(
        json!({"workflow": parent(), "documents": {"workflows": [child()]},
        "mocks": [{"node": "c", "after": "1m", "result": "child"}]}),
    );
    assert_eq!(answer["run"]["output"], json!({"from": "child"}), "{answer:#}");
    let child = &answer["children"][0];
    assert_eq!(path_of(child), "c completed");
    assert_eq!(child["run"]["parent"]["run_id"], answer["run"]["id"]);
    assert_eq!(answer["calls"][0]["run_id"], child["run"]["id"]);
}

#[test]
fn a_mock_of_the_node_stands_for_the_child() {
    let mocks = json!([{"node": "call", "after": "2h", "result": {"mocked": true}}]);
    for documents in [json!({}), json!({"workflows": [child()]})] {
        let answer = simulated(json!({"workflow": parent(), "documents": documents, "mocks": mocks}));
        assert_eq!(answer["run"]["output"], json!({"mocked": true}), "{answer:#}");
        assert_eq!(answer["virtual_ms"], 7_200_000);
        assert_eq!(answer["calls"][0]["kind"], "workflow");
        assert_eq!(answer.get("children"), None);
    }
    let failed = simulated(json!({"workflow": parent(), "mocks": [{"node": "call", "fail": "permanent"}]}));
    assert_eq!(failed["run"]["status"], "failed");
}

#[test]
fn an_unknown_child_without_a_mock_is_an_error() {
    let (status, code, message) = refused(json!({"workflow": parent()}));
    assert_eq!((status, code), (422, "no_mock"));
    assert!(message.contains(r#"{"node":"call","result":{}}"#), "{message}");
    let (_, code, _) =
        refused(json!({"workflow": parent(), "mocks": [{"node": "call", "times": 0, "result": 1}]}));
    assert_eq!(code, "no_mock");
}

#[test]
fn a_mocked_child_that_hangs_is_ended_with_its_parent() {
    let mut workflow = parent();
    workflow["timeout"] = json!("1h");
    workflow["on_timeout"] = json!("cancel_all");
    let answer = simulated(json!({"workflow": workflow, "mocks": [{"node": "call", "hang": true}]}));
    assert_eq!(answer["run"]["status"], "timed_out", "{answer:#}");
    assert_eq!(answer["virtual_ms"], 3_600_000);
}

#[test]
fn branches_join_and_completed_work_is_undone() {
    let workflow = json!({
        "id": "flow",
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        "nodes": [{"id": "book", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "each", "action_id": "work"}, {"id": "pay", "action_id": "work"}],
        "transitions": [
            {"id": "items", "from_node_id": "book", "to_node_id": "each", "foreach": {"collection": "input.items", "item_var": "item"}},
            {"from_node_id": "each", "to_node_id": "pay", "synchronization": {"sibling_group": "items", "merge": {"target": "state.all"}}}],
        "on_end": [{"on": ["failed"], "action_id": "work"}],
    });
    let answer = simulated(
        json!({"workflow": workflow, "input": {"items": [1, 2, 3]}, "mocks": [
        {"node": "pay", "after": "1s", "fail": "permanent"}, {"action": "work", "after": "1s", "result": {"ok": true}}]}),
    );
    assert_eq!(answer["run"]["status"], "failed", "{answer:#}");
    assert_eq!(answer["run"]["compensation"]["status"], "completed");
    assert_eq!(answer["run"]["on_end"][0]["status"], "completed");
    assert_eq!(
        answer["calls"].as_array().map(Vec::len),
        Some(7),
        "{:#}",
        answer["calls"]
    );
}
