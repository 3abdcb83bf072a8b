//! Minimal documents shared by several tests: a fan-out and its join.

use serde_json::{Value, json};

/// `base` with the fields of `more`.
pub fn with(mut base: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut base, more) {
        fields.extend(more);
    }
    base
}

/// `a` fans out by transition `out` to `b`, whose branches join at `z`. Only `b` and `z` have work.
pub fn fan(spawn: Value, join: Value) -> Value {
    json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "z", "action_id": "work"}],
        "transitions": [
            with(json!({"id": "out", "from_node_id": "a", "to_node_id": "b"}), spawn),
            {"id": "in", "from_node_id": "b", "to_node_id": "z", "synchronization": joining("out", join)},
        ],
    })
}

/// `document` with one more transition.
pub fn and(mut document: Value, transition: Value) -> Value {
    if let Some(transitions) = document["transitions"].as_array_mut() {
        transitions.push(transition);
    }
    document
}

pub fn joining(group: &str, join: Value) -> Value {
    with(json!({"sibling_group": group}), join)
}

/// As `fan` with three branches, every result appended to `state.all`.
pub fn three(join: Value) -> Value {
    let merge = json!({"merge": {"target": "state.all"}});
    fan(json!({"spawn_count": 3}), with(merge, join))
}

/// `outer` creates two branches at `b`; each fans out by `inner` to two at `c`; `c` joins at `d` into its branch, `d`
/// joins at `z` into `state.all`.
pub fn nested(inner_join: Value, outer_join: Value) -> Value {
    let into_branch = json!({"merge": {"target": "_branch.output"}});
    let into_state = json!({"merge": {"target": "state.all"}});
    json!({
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}, {"id": "d"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": joining("inner", with(into_branch, inner_join))},
            {"from_node_id": "d", "to_node_id": "z", "synchronization": joining("outer", with(into_state, outer_join))},
        ],
    })
}
