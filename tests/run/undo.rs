//! Undo patches: they are as large as the write, and exact. Whatever was written and undone in between, a restart restores
//! the state as it was.

use crate::run::plans::Plans;
use std::rc::Rc;

use curfew::base::compute::Meter;
use curfew::definition::path::Path;
use curfew::run::{Context, Patch, RetryMode, RunStatus, TokenStatus, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::controls::{point, restart};
use super::driver::{Driver, SETTINGS};
use super::graphs::{fan, with};

/// A node `a` in a loop, with this output mapping.
fn looping(mapping: Value) -> Driver {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": mapping}, {"id": "z", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "a", "condition": "state.n < 400"},
            {"from_node_id": "a", "to_node_id": "z", "priority": 1},
        ],
    }))
}

fn list_and_count() -> Value {
    json!({
        "state.list": "${(has(state.list) ? state.list : []) + [result]}",
        "state.n": "${has(state.n) ? state.n + 1 : 1}",
    })
}

#[test]
fn the_undo_patch_of_an_append_does_not_grow_with_the_list() {
    let mut run = looping(list_and_count());
    for n in 1..=50 {
        run.succeed(&format!("t{n}@1"), json!("x".repeat(1_000)));
    }
    for n in 2..=50 {
        let bytes = run.row(&format!("t{n}")).undo_bytes();
        assert!(bytes < 200, "t{n} keeps {bytes} bytes");
        let (_, row) = &run.store.tokens[&n];
        assert!(row.len() < 1_600, "the row of t{n} has {} bytes", row.len());
    }
}

#[test]
fn a_restart_after_a_restart_undoes_nothing_twice() {
    let mut run = looping(list_and_count());
    run.succeed("t1@1", json!("a"));
    run.succeed("t2@1", json!("b"));
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({"list": ["a", "b"], "n": 2}));
    // The restart created t4 and cancelled t3.
    run.succeed("t4@1", json!("b")).succeed("t5@1", json!("d"));
    assert_eq!(run.state(), &json!({"list": ["a", "b", "b", "d"], "n": 4}));
    run.reload();
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    run.succeed("t7@1", json!("e")).reload();
    assert_eq!(run.state(), &json!({"list": ["a", "b", "b", "d", "e"], "n": 5}));
}

#[test]
fn a_restart_to_a_node_that_an_earlier_restart_undid_is_refused() {
    let mut run = looping(json!({"state.n": "${400}"}));
    run.succeed("t1@1", json!(1)).assert_status("running z:executing");
    restart(&mut run, None);
    let no = run.store.restart_point(&run.run, "z").expect_err("z was undone");
    assert!(format!("{no:?}").contains("since it was restarted"), "{no:?}");
    run.succeed("t3@1", json!(1)).assert_status("running z:executing");
    let back = point(&run, "z");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({"n": 400}));
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({}));
}

/// Branches write to one list. The write of the branch that fails is undone and the branch is retried; the other writes
/// stay, and a restart restores the state before all of them.
#[test]
fn a_discard_undoes_only_the_writes_of_the_failed_token() {
    let document = with(
        fan(json!({"spawn_count": 3}), json!({})),
        json!({"timeout_ms": 60_000}),
    );
    let mut document = document;
    document["nodes"][1]["output_mapping"] = json!({
        "state.list": "${(has(state.list) ? state.list : []) + [result]}",
        "state.last": "${result}",
    });
    // The condition of the second branch fails after its write.
    let transitions = document["transitions"].as_array_mut().expect("a list");
    for transition in transitions {
        if transition["from_node_id"] == json!("b") {
            transition["condition"] = json!("_branch.index != 1 || input.x.y");
        }
    }
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!("one")).succeed("t3@1", json!("two"));
    assert_eq!(run.row("t3").status, TokenStatus::Failed, "{}", run.status_line());
    if run.run.header.ended_at.is_none() {
        run.succeed("t4@1", json!("three"));
    }
    let before = run.state().clone();
    assert!(before["list"].as_array().expect("a list").contains(&json!("two")));
    run.reload().at(9_000).retry(RetryMode::DiscardAndRetry);
    assert_eq!(run.answer, Ok(()));
    let list = run.state()["list"].as_array().expect("a list").clone();
    assert!(
        !list.contains(&json!("two")) && list.contains(&json!("one")),
        "{list:?}"
    );
    let others = before["list"].as_array().expect("a list").len() - 1;
    assert_eq!(list.len(), others);
    run.reload();
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    assert_eq!(run.reload().state(), &json!({}));
}

/// One decision is bounded in bytes, not only in tasks.
#[test]
fn large_results_of_inline_tasks_are_several_commits() {
    let document = json!({
        "nodes": [{"id": "a", "task_id": "a", "output_mapping": {"state.n": "${has(state.n) ? state.n + 1 : 1}"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "a", "condition": "state.n < 30"}],
        "on_no_match": "end",
        "tasks": [{"id": "a", "steps": [
            {"action": {"kind": "update_context", "implementation": {"set": {"text": "${input.text}"}}}},
        ]}],
    });
    let mut run = Driver::start_with(SETTINGS, document, json!({"text": "x".repeat(400 << 10)}));
    let mut most = 0;
    for _ in 0..30 {
        let bytes = run.decision.writes().iter().map(|write| match write {
            Write::SaveToken(token) => token.output.as_ref().map_or(0, |output| output.to_string().len()),
            _other => 0,
        });
        most = most.max(bytes.sum::<usize>());
        if run.run.header.status == RunStatus::Completed {
            break;
        }
        run.wake("");
    }
    run.assert_status("completed {}");
    assert!(most > 4 << 20 && most < 5 << 20, "{most} bytes in one commit");
}

/// A value of the context.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(-2.5e300)].prop_map(Value::from),
        "[aé𝔸]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// How a write changes the old value.
#[derive(Clone, Debug)]
enum RandomWrite {
    Replace(Value),
    Append(Value),
    DropFirst,
    DropLast,
    Insert(usize, Value),
    Reverse,
    Edit(usize, Value),
    Concat(String),
    RemoveField(String),
}

fn write() -> impl Strategy<Value = RandomWrite> {
    prop_oneof![
        value().prop_map(RandomWrite::Replace),
        value().prop_map(RandomWrite::Append),
        value().prop_map(RandomWrite::Append),
        Just(RandomWrite::DropFirst),
        Just(RandomWrite::DropLast),
        (0..5usize, value()).prop_map(|(at, value)| RandomWrite::Insert(at, value)),
        Just(RandomWrite::Reverse),
        (0..5usize, value()).prop_map(|(at, value)| RandomWrite::Edit(at, value)),
        "[aé𝔸]{0,3}".prop_map(RandomWrite::Concat),
        "[abc]".prop_map(RandomWrite::RemoveField),
    ]
}

impl RandomWrite {
    fn of(&self, before: Option<&Value>) -> Value {
        let mut next = before.cloned().unwrap_or(Value::Null);
        match (self, &mut next) {
            (RandomWrite::Append(value), Value::Array(list)) => list.push(value.clone()),
            (RandomWrite::DropFirst, Value::Array(list)) if !list.is_empty() => drop(list.remove(0)),
            (RandomWrite::DropLast, Value::Array(list)) => drop(list.pop()),
            (RandomWrite::Insert(at, value), Value::Array(list)) => {
                list.insert((*at).min(list.len()), value.clone())
            }
            (RandomWrite::Reverse, Value::Array(list)) => list.reverse(),
            (RandomWrite::Edit(at, value), Value::Array(list)) if !list.is_empty() => {
                let at = at % list.len();
                list[at] = value.clone();
            }
            (RandomWrite::Concat(more), Value::String(text)) => text.push_str(more),
            (RandomWrite::RemoveField(key), Value::Object(fields)) => drop(fields.remove(key)),
            (
                RandomWrite::Replace(value)
                | RandomWrite::Append(value)
                | RandomWrite::Insert(_, value)
                | RandomWrite::Edit(_, value),
                next,
            ) => {
                *next = json!([value]);
            }
            (
                RandomWrite::DropFirst
                | RandomWrite::DropLast
                | RandomWrite::Reverse
                | RandomWrite::Concat(_)
                | RandomWrite::RemoveField(_),
                next,
            ) => *next = json!({"a": [1, 2, 3], "b": "text"}),
        }
        next
    }
}

fn path() -> impl Strategy<Value = Path> {
    let paths = [
        "state.a",
        "state.a",
        "state.b",
        "state.a.b",
        "state.a.b.c",
        "output.a",
        "output.a.a",
    ];
    prop::sample::select(paths.to_vec()).prop_map(|text| Path::parse(text).expect("a path"))
}

fn both(context: &Context) -> Value {
    json!([context.state(), context.output()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Every earlier state is restored, from the last to the first, also with patches that were saved and read.
    #[test]
    fn undoing_writes_newest_first_restores_every_state(
        writes in prop::collection::vec(prop::collection::vec((path(), write()), 1..3), 1..20),
    ) {
        let mut context = Context::new(Rc::new(Value::Null));
        let mut history: Vec<(Value, Vec<Patch>)> = Vec::new();
        for some in &writes {
            let before = both(&context);
            let values = some.iter().map(|(path, write)| {
                let root = match path.root {
                    curfew::definition::path::Root::Output => context.output(),
                    _state => context.state(),
                };
                (path, write.of(path.find(root)))
            });
            let values: Vec<(&Path, Value)> = values.collect();
            let patches = context.write(values, None, &Meter::default()).expect("small enough");
            let text = serde_json::to_string(&patches).expect("JSON");
            history.push((before, serde_json::from_str(&text).expect("read again")));
        }
        for (before, patches) in history.iter().rev() {
            context.undo(patches);
            prop_assert_eq!(&both(&context), before);
        }
    }

    /// Undoing one write in the middle never fails, and its inverse is exact.
    #[test]
    fn undoing_one_write_can_itself_be_undone(
        writes in prop::collection::vec((path(), write()), 1..12), which in any::<prop::sample::Index>(),
    ) {
        let mut context = Context::new(Rc::new(Value::Null));
        let mut patches: Vec<Vec<Patch>> = Vec::new();
        for (path, write) in &writes {
            let value = write.of(path.find(context.state()));
            patches.push(context.write(vec![(path, value)], None, &Meter::default()).expect("small enough"));
        }
        let before = both(&context);
        let inverse = context.undo_with_inverse([which.get(&patches).as_slice()]);
        context.undo(&inverse);
        prop_assert_eq!(both(&context), before);
    }
}
