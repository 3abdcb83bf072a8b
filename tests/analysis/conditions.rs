//! Conditions that cover everything, and those that exclude each other: what is warned of, and how wide runs are.

use serde_json::{Value, json};

use super::{analysis_of, codes};

#[test]
fn conditions_that_cover_everything_or_exclude_each_other_are_understood() {
    let nodes = json!([{"id": "s", "output_mapping": {"state.items": "${input.items}"}}, {"id": "x"}, {"id": "y"}, {"id": "z"}]);
    let routed = |conditions: &[&str]| {
        let targets = ["x", "y", "z"].into_iter().zip(conditions);
        let transitions: Vec<Value> = targets
            .map(|(to, condition)| json!({"from_node_id": "s", "to_node_id": to, "condition": condition}))
            .collect();
        let mut document = json!({"id": "w", "nodes": nodes, "transitions": transitions});
        document["nodes"]
            .as_array_mut()
            .expect("a list")
            .truncate(1 + conditions.len());
        let analysis = analysis_of(&document);
        let facts = analysis.facts.as_ref().expect("it has no errors");
        let codes: Vec<&str> = codes(&analysis).into_iter().map(|(code, _)| code).collect();
        (codes.join(" "), facts.tokens_alive_max)
    };
    for conditions in [
        &["size(state.items) > 0", "size(state.items) == 0"][..],
        &["state.items.size() > 3", "size(state.items) <= 3"],
        &["input.vip || input.n > 3", "!input.vip && input.n <= 3"],
        &["input.n < 30", "input.n >= 30 && input.n < 70", "input.n >= 70"],
    ] {
        assert_eq!(routed(conditions), (String::new(), 1), "{conditions:?}");
    }
    for conditions in [
        &["size(state.items) > 1", "size(state.items) == 0"][..],
        &["input.vip || input.n > 3", "!input.vip && input.n < 3"],
    ] {
        assert_eq!(routed(conditions).0, "may_not_match", "{conditions:?}");
    }
    // Both may hold.
    assert_eq!(routed(&["input.n < 30", "input.n >= 20"]), (String::new(), 2));
}
