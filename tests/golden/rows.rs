//! The rows of a run and the SQL that creates its tables, byte for byte. Rows of older builds stay readable: a run in
//! progress is restored and runs to its end.

use crate::run::plans::Plans;
use std::rc::Rc;

use curfew::base::failure::{Failure, FailureClass};
use curfew::protocol::task::{StepReport, StepStatus};
use curfew::run::{
    Back, CallbackSecret, Event, Header, Lane, Patch, Step, Token, TokenDeadline, TokenId, TokenStatus,
    TokenUndo, Write, WrittenAt,
};
use curfew::storage::commit::{Commit, EncodedBatch};
use curfew::storage::row_ids::RowIds;
use curfew::storage::rows::{HeaderRow, TokenRow, parse_status, past_token, patches_of};
use curfew::storage::schema;
use serde_json::{Value, json};

use super::{check, check_json, read};
use crate::run::driver::{Driver, ROOM, SETTINGS, render, succeeded};
use curfew::simulate::Store;

/// A workflow with a failed node and nodes that are still to run.
pub fn document() -> Value {
    json!({
        "id": "parcel",
        "tags": ["golden"],
        "timeout": "1h",
        "nodes": [
            {"id": "pack", "task_id": "pack"},
            {"id": "send", "action_id": "post", "timeout_ms": 60_000, "input_mapping": {"to": "${input.to}"}},
            {"id": "mend", "action_id": "post", "input_mapping": {"why": "${error.message}"}},
        ],
        "transitions": [
            {"from_node_id": "pack", "to_node_id": "send"},
            {"from_node_id": "send", "to_node_id": "mend", "on": "failure"},
            {"id": "again", "from_node_id": "mend", "to_node_id": "send", "loop_config": {"max_iterations": 2}},
        ],
        "tasks": [{"id": "pack", "dispatch": "direct", "steps": [
            {"ref": "wrap", "action": {"kind": "update_context", "implementation": {"set": {"boxes": "${input.n}"}}}},
        ]}],
        "actions": [{"id": "post", "kind": "http_request", "implementation": {"url": "https://post.example/${input.to}"}}],
        "output_mapping": {"boxes": "${state.pack.boxes}", "sent": "${state.send}"},
    })
}

pub fn failure() -> Failure {
    Failure {
        retry_after_ms: None,
        code: "http_status".into(),
        class: FailureClass::ServerError,
        message: "status 503".into(),
        node_id: Some("send".into()),
        token_id: Some("t2".into()),
        step_ref: Some("post".into()),
    }
}

/// The run at node `mend`, and its tables.
pub fn midway() -> (Driver, Store) {
    let mut store = Store::default();
    let mut run = Driver::start_with(SETTINGS, document(), json!({"to": "Ada", "n": 2}));
    let keep = |run: &Driver, store: &mut Store| {
        let commit = Commit::of(run.decision.writes(), &run.run).expect("rows are JSON");
        store.apply(&commit).expect("no commit breaks a rule");
        store.alarm_at = run.run.alarm_at();
    };
    keep(&run, &mut store);
    let mut report = succeeded("t1@1", json!({"boxes": 2}));
    report.steps = vec![step_report()];
    run.at(1_250).report(report);
    keep(&run, &mut store);
    run.at(2_000).fail("t2@1");
    keep(&run, &mut store);
    (run, store)
}

fn step_report() -> StepReport {
    StepReport {
        reference: "wrap".into(),
        status: StepStatus::Completed,
        attempts: 1,
        duration_ms: 3,
        retries: Vec::new(),
        started_at: None,
        span_id: None,
        gen_ai: None,
    }
}

/// The first token that the run saved. Tests set the fields they need on it, so that new fields do not break them.
pub fn saved_token(run: &Driver) -> Token {
    let saved = run.decision.writes().iter().find_map(|write| match write {
        Write::SaveToken(token) => Some((**token).clone()),
        _other => None,
    });
    saved.expect("the last event saved a token")
}

pub fn full_header(run: &Driver) -> Header {
    let mut header = run.run.header.clone();
    header.ended_at = Some(9_000);
    header.output = Some(json!({"boxes": 2}));
    header.error = Some(failure());
    header.reason = Some("not needed".into());
    header.request.version = Some(3);
    header.request.timeout_ms = Some(3_600_000);
    header.started_by = Some("ada".into());
    header
}

pub fn full_token(run: &Driver) -> Token {
    let mut token = saved_token(run);
    token.parent = Some(TokenId(1));
    token.retry_count = 1;
    token.lost_count = 2;
    token.lane = Some(Lane::Direct);
    token.dispatched_at = Some(1_500);
    token.started_at = Some(1_500);
    token.ended_at = Some(1_900);
    token.deadline.at = Some(61_500);
    token.deadline.timeout_ms = Some(60_000);
    token.watch_at = Some(31_500);
    token.reason = Some("attempt_lost".into());
    token.error = Some(failure());
    token.cause = Some(failure());
    token.output = Some(json!({"status": 200}));
    token.steps = vec![step_report()];
    token.loops = [("again".to_string(), 1)].into();
    token
}

#[test]
fn header_rows_are_stable() {
    let (run, _) = midway();
    let mut minimal = run.run.header.clone();
    minimal.timeout_at = None;
    minimal.timeout_ms = None;
    minimal.tags = Vec::new();
    check_json("header_minimal.json", &json!(HeaderRow::of(&minimal)));
    check_json("header_full.json", &json!(HeaderRow::of(&full_header(&run))));
    let secret = || "29b1f3e2ad72e5e0d80e13f4fea3ce2e".to_string();
    for (name, secret) in [
        (
            "header_with_derived_secret.json",
            CallbackSecret::Derived(secret()),
        ),
        ("header_with_random_secret.json", CallbackSecret::Random(secret())),
    ] {
        minimal.callback_secret = Some(secret);
        check_json(name, &json!(HeaderRow::of(&minimal)));
    }
    for name in [
        "header_minimal.json",
        "header_full.json",
        "header_with_derived_secret.json",
        "header_with_random_secret.json",
    ] {
        let row: HeaderRow = serde_json::from_str(&read(name)).expect("a stored header can be read");
        let again = HeaderRow::of(&row.into_header());
        check_json(name, &json!(again));
    }
}

fn patch(path: &[&str], back: Back) -> Patch {
    Patch {
        name: "state.x".into(),
        path: path.iter().map(|key| Step::Key((*key).to_string())).collect(),
        left: Some(7),
        back,
    }
}

/// Older builds stored whole previous values.
#[test]
fn undo_patches_of_an_older_row_can_be_read() {
    let (run, _) = midway();
    let text = r#"{"node_id":"send","epoch":1,"created_at":1,"undo":[["state.a",[]],["state.b",[null]]],
        "merge_undo":[["output.c",[[1,2]]]]}"#;
    let row: TokenRow = serde_json::from_str(text).expect("a stored token can be read");
    let token = row
        .into_token(1, TokenStatus::Completed, run.run.snapshot())
        .expect("its node is there");
    let undo = vec![
        Patch::whole("state.a".into(), None),
        Patch::whole("state.b".into(), Some(Value::Null)),
    ];
    let merge_undo = vec![Patch::whole("output.c".into(), Some(json!([1, 2])))];
    assert_eq!((&token.undo.writes, &token.undo.creation), (&undo, &merge_undo));
    assert_eq!(patches_of(text, WrittenAt::Exit).expect("readable"), Some(undo));
    assert_eq!(
        patches_of(text, WrittenAt::Birth).expect("readable"),
        Some(merge_undo)
    );
    let past = past_token(1, "completed", text, &mut Rc::<str>::from).expect("readable");
    assert!(past.wrote && past.wrote_at_creation && !past.has_error);
}

#[test]
fn token_rows_are_stable() {
    let (run, _) = midway();
    let snapshot = run.run.snapshot();
    let mut minimal = full_token(&run);
    minimal = Token {
        epoch: 0,
        retry_count: 0,
        lost_count: 0,
        lane: None,
        parent: None,
        dispatched_at: None,
        started_at: None,
        ended_at: None,
        deadline: TokenDeadline::default(),
        watch_at: None,
        reason: None,
        error: None,
        cause: None,
        output: None,
        steps: Vec::new(),
        loops: Default::default(),
        branch: None,
        join: None,
        reminded: 0,
        created_order: 0,
        exit_order: None,
        undo: Default::default(),
        ..minimal
    };
    check_json("token_minimal.json", &json!(TokenRow::of(&minimal, &run.run)));
    check_json(
        "token_full.json",
        &json!(TokenRow::of(&full_token(&run), &run.run)),
    );
    // A name whose value is the token's output, and one with another value.
    let keeping = Token {
        context_on_token: vec![
            ("state.pack".into(), None),
            ("output.note".into(), Some(Value::Null)),
        ],
        ..minimal.clone()
    };
    check_json("token_keeping.json", &json!(TokenRow::of(&keeping, &run.run)));
    // Undo patches, one of each kind, and those of a token that a restart created.
    let undoing = Token {
        undo: TokenUndo {
            writes: vec![
                patch(&[], Back::Remove(())),
                patch(&[], Back::Put(Value::Null)),
                patch(&["a", "b"], Back::Put(json!({"c": 1}))),
                Patch {
                    path: vec![Step::Key("list".into()), Step::Index(3)],
                    ..patch(&[], Back::Text(4, 1, "é".into()))
                },
            ],
            creation: vec![patch(&["list"], Back::Items(400, 1, Vec::new()))],
            reset_to: Some(TokenId(7)),
            ..TokenUndo::default()
        },
        ..minimal.clone()
    };
    check_json("token_undoing.json", &json!(TokenRow::of(&undoing, &run.run)));
    for (name, token) in [
        ("token_minimal.json", minimal),
        ("token_keeping.json", keeping),
        ("token_undoing.json", undoing),
        ("token_full.json", full_token(&run)),
    ] {
        let row: TokenRow = serde_json::from_str(&read(name)).expect("a stored token can be read");
        let again = row
            .into_token(token.id.0, token.status, snapshot)
            .expect("its node is there");
        assert_eq!(again, token, "{name} loses nothing");
    }
}

#[test]
fn all_rows_of_a_run_in_progress() {
    let (_, store) = midway();
    check_json("run_midway.json", &tables(&store));
}

fn tables(store: &Store) -> Value {
    let parse = |text: &String| serde_json::from_str::<Value>(text).expect("rows are JSON");
    let run: serde_json::Map<String, Value> = store
        .run
        .iter()
        .map(|(key, value)| (key.clone(), parse(value)))
        .collect();
    let tokens: Vec<Value> = store
        .tokens
        .iter()
        .map(|(id, (status, row))| json!([id, status, parse(row)]))
        .collect();
    json!({"run": run, "tokens": tokens, "alarm_at": store.alarm_at})
}

/// `run_midway_first.json` was written by the first build, `run_midway_second.json` by one with a row for each name of the
/// context, `run_midway_fourth.json` by the last one without events on rows. They are never rewritten.
#[test]
fn a_run_restored_from_older_rows_runs_to_its_end() {
    for name in [
        "run_midway.json",
        "run_midway_first.json",
        "run_midway_second.json",
        "run_midway_third.json",
        "run_midway_fourth.json",
    ] {
        runs_to_its_end(name);
    }
}

/// Rows with whole previous values are undone to these values.
#[test]
fn a_run_of_an_older_build_can_be_restarted_from_a_node() {
    let run = store_of("run_midway_third.json");
    let restarted = |node: &str| {
        let point = run.restart_point(&run.recall(SETTINGS).expect("readable"), node);
        point.expect("a restart point").context.state().clone()
    };
    assert_eq!(restarted("send"), json!({"pack": {"boxes": 2}}));
    assert_eq!(restarted("pack"), json!({}));
}

fn store_of(name: &str) -> Store {
    let golden: Value = serde_json::from_str(&read(name)).expect("golden files are JSON");
    let run = golden["run"].as_object().expect("table run").iter();
    let run = run.map(|(key, value)| (key.clone(), value.to_string()));
    let tokens = golden["tokens"].as_array().expect("table tokens").iter();
    let tokens = tokens.map(|row| {
        let status = row[1].as_str().expect("a status").to_string();
        (row[0].as_u64().expect("an id"), (status, row[2].to_string()))
    });
    Store::of_rows(run.collect(), tokens.collect(), golden["alarm_at"].as_u64())
}

fn runs_to_its_end(name: &str) {
    let mut run = store_of(name).recall(SETTINGS).expect("the rows can be read");
    let mut story = Vec::new();
    for (now, event) in [
        (3_000, Event::Loaded),
        (
            3_100,
            Event::TaskReported(Box::new(succeeded("t3@2", json!("mended")))),
        ),
        (
            3_200,
            Event::TaskReported(Box::new(succeeded("t4@1", json!("sent")))),
        ),
    ] {
        let (answer, decision) = run.handle(now, ROOM, event);
        assert_eq!(answer, Ok(()));
        story.extend(render(&decision, &run));
    }
    check("run_midway_goes_on.txt", &(story.join("\n") + "\n"));
    assert_eq!(run.header.output, Some(json!({"boxes": 2, "sent": "sent"})));
}

#[test]
fn newer_missing_and_corrupt_rows_are_rejected() {
    let (_, store) = midway();
    for (key, text, wrong) in [
        ("header", None, "row header is missing"),
        ("snapshot", None, "row snapshot is missing"),
        ("input", None, "row input is missing"),
        ("header", Some("{"), "row header: "),
        ("context/state.pack", Some("{"), "EOF"),
        ("context/nonsense", Some("1"), "is no name in the context"),
    ] {
        let mut store = store.clone();
        match text {
            None => store.run.remove(key),
            Some(text) => store.run.insert(key.into(), text.into()),
        };
        let error = store.recall(SETTINGS).expect_err("such rows are no run");
        assert!(error.contains(wrong), "{error}");
    }
    let mut newer = store.clone();
    let mut header: Value = serde_json::from_str(&newer.run["header"]).expect("the header is JSON");
    header["schema"] = json!(schema::VERSION + 1);
    newer.run.insert("header".into(), header.to_string());
    let error = newer
        .recall(SETTINGS)
        .expect_err("a newer run is not for this build");
    assert!(error.contains("this build knows"), "{error}");
    let mut stray = store;
    let row = stray.tokens[&3].1.replace("\"mend\"", "\"gone\"");
    stray.tokens.insert(3, ("executing".into(), row));
    let error = stray.recall(SETTINGS).expect_err("a token has a node");
    assert!(error.contains("unknown node gone"), "{error}");
}

#[test]
fn sql_statements_are_stable() {
    let mut text = String::new();
    for version in 0..schema::VERSION {
        for statement in schema::migrate_from(version) {
            text += &format!("{statement};\n");
        }
    }
    for statement in [
        schema::TABLES,
        schema::CREATE,
        schema::SAVE,
        schema::DELETE,
        schema::LOAD,
        schema::LOAD_SUMMARY,
        schema::LOAD_LATE,
        schema::LIST_EVENTS,
        schema::LIST_TIMEOUTS,
        schema::LOAD_LATENESS,
        schema::LIST_INSTANCES,
        schema::LIST_TOKENS,
        schema::LOAD_VALUES,
    ] {
        text += &format!("{statement};\n");
    }
    check("schema.sql", &text);
}

/// The parts of the batch, split by UTF-16 code units as `save.mjs` does it.
fn parts_of(batch: &EncodedBatch) -> Vec<String> {
    let units: Vec<u16> = batch.text.encode_utf16().collect();
    let mut from = 0;
    let parts = batch.ends.iter().map(|end| {
        let part = &units[from..*end as usize];
        from = *end as usize;
        String::from_utf16(part).expect("whole characters")
    });
    parts.collect()
}

#[test]
fn an_encoded_commit_can_be_split_again() {
    let commit = Commit {
        run: vec![("context/state.größe".into(), "\"𝔸 and ü\"".into())],
        tokens: vec![(7, "completed", "{}".into())],
        deleted: vec!["outbox/1".into(), "outbox/2".into()],
    };
    let mut row_ids = RowIds::after(40);
    row_ids.insert("outbox/2", 39);
    let batch = commit.encode(&mut row_ids);
    assert_eq!(batch.rows, 2);
    assert_eq!(
        parts_of(&batch),
        [
            "41",
            "context/state.größe",
            "\"𝔸 and ü\"",
            "", // a row of the context
            "42",
            "token/000000000007",
            "{}",
            "completed", // a token
            "39",        // the first message does not exist
        ]
    );
}

#[test]
fn a_row_keeps_its_id_and_new_rows_follow_all_others() {
    let mut row_ids = RowIds::default();
    let mut written = |run: &[&str], tokens: &[(u64, &'static str)]| -> String {
        let commit = Commit {
            run: run.iter().map(|key| (key.to_string(), String::new())).collect(),
            tokens: tokens
                .iter()
                .map(|(id, status)| (*id, *status, String::new()))
                .collect(),
            deleted: Vec::new(),
        };
        let parts = parts_of(&commit.encode(&mut row_ids));
        parts
            .chunks(4)
            .map(|row| format!("{}={} ", row[0], row[1]))
            .collect()
    };
    assert_eq!(
        written(&["header"], &[(1, "pending")]),
        "1=header 2=token/000000000001 "
    );
    assert_eq!(
        written(&["context/state.a"], &[(1, "completed"), (2, "pending")]),
        "3=context/state.a 2=token/000000000001 4=token/000000000002 "
    );
    assert_eq!(
        written(&["header", "event/000000000001"], &[(2, "failed")]),
        "1=header 5=event/000000000001 4=token/000000000002 "
    );
}

/// A live token that is not loaded would be lost, so the query excludes finished tokens instead of selecting live ones.
#[test]
fn exactly_the_live_tokens_are_loaded() {
    for status in TokenStatus::ALL {
        let left_out = schema::LOAD.contains(&format!("'{}'", status.name()));
        assert_eq!(left_out, status.is_terminal(), "{status:?}");
        assert_eq!(parse_status(status.name()), Ok(status));
        assert_eq!(json!(status), json!(status.name()), "one name everywhere");
    }
}

/// Large undo patches have a row of their own, which the token's row refers to.
#[test]
fn large_undo_patches_have_their_own_row() {
    let (run, _) = midway();
    let mut token = run.run.live_tokens().next().expect("one is live").clone();
    token.output = Some(json!("x".repeat(300 << 10)));
    token.undo.writes = vec![patch(&[], Back::Put(json!("y".repeat(70 << 10))))];
    token.undo.creation = vec![patch(&["z"], Back::Remove(()))];
    let writes = [Write::SaveToken(Box::new(token.clone()))];
    let commit = Commit::of(&writes, &run.run).expect("rows are JSON");
    let (_, _, row) = &commit.tokens[0];
    let mut shown: Value = serde_json::from_str(row).expect("a row is JSON");
    shown["output"] = json!("300 KiB of text");
    check_json("token_undo_apart.json", &shown);
    let [(key, text)] = &commit.run[..] else {
        panic!("{:?}", commit.run.iter().map(|(key, _)| key).collect::<Vec<_>>());
    };
    assert_eq!(*key, format!("undo/{:012}/exit", token.id.0));
    let patches: Vec<Patch> = serde_json::from_str(text).expect("undo patches can be read");
    assert_eq!(patches, token.undo.writes);
    assert_eq!(patches_of(row, WrittenAt::Exit).expect("readable"), None);
    assert_eq!(
        patches_of(row, WrittenAt::Birth).expect("readable"),
        Some(token.undo.creation)
    );
    let past = past_token(token.id.0, "executing", row, &mut Rc::<str>::from).expect("readable");
    assert!(past.wrote && past.wrote_at_creation);
}
