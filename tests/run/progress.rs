//! Progress of attempts: it is on the token while the attempt is executing, it is published, it costs no row in the direct lane
//! and few in the queue lane, and the records of timeouts have the output so far.

use curfew::protocol::task::{Artifact, StepProgress};
use curfew::run::{Event, RunEventKind};
use serde_json::{Value, json};

use super::driver::{Driver, parse_attempt, timed_out};
use super::graphs::{three, with};
use super::queue::{one_node, start};

pub fn artifact(name: &str, complete: bool, text: &str) -> Artifact {
    Artifact {
        name: name.into(),
        complete,
        bytes: text.len() as u64,
        text: text.into(),
    }
}

/// In the second of three steps, whose peer has streamed `text`.
pub fn progress(attempt: u64, text: &str) -> StepProgress {
    StepProgress {
        step_ref: "ask".into(),
        step_index: 1,
        steps_total: 3,
        attempt: attempt as u32,
        keep: 0,
        partial: vec![artifact("plan", true, "a plan"), artifact("ask", false, text)],
    }
}

impl Driver {
    pub fn progress(&mut self, attempt: &str, progress: StepProgress) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        self.feed(Event::Heartbeat {
            token: token.to_string(),
            epoch,
            progress: Some(Box::new(progress)),
        })
    }

    /// The last text that a live token shows, and when it came.
    fn shown(&self, token: &str) -> Option<(u64, String)> {
        let (id, _) = parse_attempt(&format!("{token}@1"));
        let progress = self.run.live_token(id)?.progress.as_ref()?;
        Some((progress.at, progress.partial.last()?.text.clone()))
    }

    /// The artifacts of the only record: token, name, text.
    #[track_caller]
    fn recorded(&self) -> Vec<(Option<String>, String, String)> {
        let [record] = &self.records()[..] else {
            panic!("{:?}", self.records());
        };
        let artifacts = record.partial_artifacts.iter();
        artifacts
            .map(|it| (it.token_id.clone(), it.name.clone(), it.text.clone()))
            .collect()
    }
}

fn direct() -> Driver {
    let node = json!({"id": "a", "action_id": "work", "timeout_ms": 100_000});
    Driver::start(json!({"nodes": [node, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]}))
}

fn shown(at: u64, text: &str) -> Option<(u64, String)> {
    Some((at, text.to_string()))
}

#[test]
fn a_direct_attempt_publishes_its_progress_and_writes_no_row() {
    let mut run = direct();
    run.at(2_000)
        .progress("t1@1", progress(1, "Hel"))
        .check("progress t1@1");
    assert_eq!(run.shown("t1"), shown(2_000, "Hel"));
    run.at(3_000)
        .progress("t1@1", progress(1, "Hello"))
        .check("progress t1@1");
    assert_eq!(run.shown("t1"), shown(3_000, "Hello"));
    // Nothing new.
    run.at(4_000).progress("t1@1", progress(1, "Hello")).check("");
    run.heartbeat("t1@1").check("");
    assert_eq!(run.shown("t1"), shown(3_000, "Hello"));
    let (_, row) = &run.store.tokens[&1];
    assert!(!row.contains("progress"), "{row}");
    run.at(5_000).succeed("t1@1", json!("Hello!"));
    assert_eq!(run.shown("t1"), None);
    assert!(run.run.live_tokens().all(|token| token.progress.is_none()));
}

/// A pause writes the token's row; the progress of its call stays out of it.
#[test]
fn the_row_of_a_direct_attempt_never_has_progress() {
    let mut run = direct();
    run.at(2_000).progress("t1@1", progress(1, "Hel"));
    run.at(3_000).pause().at(9_000).resume();
    assert_eq!(
        run.lines_of("token"),
        ["token t1 a executing@1 until 107000 watch 37000"]
    );
    assert!(!run.store.tokens[&1].1.contains("progress"));
    assert_eq!(run.shown("t1"), shown(2_000, "Hel"));
    // The call was lost with the memory of the object.
    run.reload().at(10_000).load();
    assert_eq!(run.shown("t1"), None);
}

#[test]
fn progress_of_another_attempt_changes_nothing() {
    let mut run = direct();
    for wrong in ["t1@0", "t1@2", "t2@1", "t9@1"] {
        run.at(2_000)
            .progress(wrong, progress(1, "Hel"))
            .check(&format!("rejected stale_attempt {wrong}"));
    }
    assert_eq!(run.shown("t1"), None);
    run.at(3_000).progress("t1@1", progress(1, "first"));
    run.at(3_100).lose("t1@1");
    assert_eq!(run.shown("t1"), None, "the next attempt begins without it");
    run.progress("t1@1", progress(1, "first, late"))
        .check("rejected stale_attempt t1@1");
    run.at(4_000).progress("t1@2", progress(1, "second"));
    assert_eq!(run.shown("t1"), shown(4_000, "second"));
    run.at(5_000).succeed("t1@2", json!(1));
    run.progress("t1@2", progress(1, "after the end"))
        .check("rejected stale_attempt t1@2");
}

#[test]
fn a_change_is_added_to_what_came_before() {
    let mut run = direct();
    run.at(2_000).progress("t1@1", progress(1, "Hel"));
    let change = StepProgress {
        keep: 1,
        partial: vec![artifact("ask", false, "Hello")],
        ..progress(1, "")
    };
    run.at(3_000).progress("t1@1", change);
    let (id, _) = parse_attempt("t1@1");
    let token = run.run.live_token(id).expect("it is live");
    let partial = &token.progress.as_ref().expect("it has progress").partial;
    assert_eq!(
        *partial,
        [artifact("plan", true, "a plan"), artifact("ask", false, "Hello")]
    );
    // More than there is.
    let change = StepProgress {
        keep: 9,
        partial: Vec::new(),
        ..progress(2, "")
    };
    run.at(4_000).progress("t1@1", change).check("progress t1@1");
}

#[test]
fn what_an_executor_sends_is_cut() {
    let mut run = direct();
    let mut large = progress(1, "");
    large.step_ref = "x".repeat(10_000);
    large.partial = (0..500)
        .map(|_| artifact(&"n".repeat(10_000), true, &"ü".repeat(1_000)))
        .collect();
    run.at(2_000).progress("t1@1", large).check("progress t1@1");
    let (id, _) = parse_attempt("t1@1");
    let kept = run.run.live_token(id).and_then(|token| token.progress.as_ref());
    let bytes = json!(kept.expect("it has progress")).to_string().len();
    assert!(bytes < 100_000, "{bytes}");
}

#[test]
fn progress_of_a_queued_attempt_is_saved_with_a_heartbeat_every_30_s() {
    let mut run = start(one_node(json!({"timeout_ms": 200_000})));
    run.at(2_000).claim_as("t1@1", "m1");
    run.at(3_000)
        .progress("t1@1", progress(1, "a"))
        .check("progress t1@1");
    // It works on its order, so another claim is rejected, although no row was written.
    run.claim_as("t1@1", "m1").check("rejected stale_attempt t1@1");
    // The alarm that was set for the claim.
    run.at(11_000).wake("").check("alarm 162000");
    run.at(31_900)
        .progress("t1@1", progress(1, "ab"))
        .check("progress t1@1");
    run.at(32_000).progress("t1@1", progress(1, "abc")).check(
        "
        token t1 a executing@1 until 202000 watch 332000
        progress t1@1
    ",
    );
    run.at(33_000)
        .progress("t1@1", progress(1, "abcd"))
        .check("progress t1@1");
    // Without new progress the last one is saved all the same, once.
    run.at(62_000).heartbeat("t1@1").check(
        "
        token t1 a executing@1 until 202000 watch 362000
    ",
    );
    run.at(92_000).heartbeat("t1@1").check("");
    run.reload().at(93_000).load();
    assert_eq!(run.shown("t1"), shown(33_000, "abcd"));
    run.at(94_000).progress("t1@1", progress(2, "ab")).check(
        "
        token t1 a executing@1 until 202000 watch 394000
        progress t1@1
    ",
    );
    run.at(95_000)
        .progress("t1@1", progress(2, "abc"))
        .check("progress t1@1");
    run.at(96_000).succeed("t1@1", json!("done"));
    assert!(!run.store.tokens[&1].1.contains("progress"));
}

/// The row of a token may be nearly full already.
#[test]
fn progress_that_does_not_fit_in_the_row_has_no_texts() {
    let item = "x".repeat(490_000);
    let document = json!({
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}],
        "transitions": [{"id": "each", "from_node_id": "s", "to_node_id": "a", "foreach": {"collection": "[input.item]", "item_var": "item"}}],
        "timeout_ms": 800_000,
    });
    let settings = curfew::run::Settings {
        queue: true,
        ..super::driver::SETTINGS
    };
    let mut run = Driver::start_with(settings, document, json!({"item": item}));
    run.at(2_000).claim("t2@1");
    let control = "\u{1}".repeat(16 << 10);
    let mut large = progress(1, &control);
    large.partial = (0..4).map(|_| artifact("s", true, &control)).collect();
    run.at(40_000).progress("t2@1", large.clone());
    let whole = run.shown("t2").expect("there is progress").1;
    assert_eq!(whole.len(), 16 << 10, "it fits: 490 KB and 390 KB");
    // The limits of artifacts alone do not make a row too large.
    let row = &run.store.tokens[&2].1;
    assert!(row.len() < 1 << 20 && row.contains("progress"), "{}", row.len());
}

#[test]
fn a_join_that_times_out_records_what_late_branches_had_streamed() {
    for (policy, action) in [("proceed_with_available", "proceed"), ("fail", "fail")] {
        let mut run = Driver::start(three(json!({"timeout_ms": 5_000, "on_timeout": policy})));
        run.at(2_000).progress("t2@1", progress(1, "it completes"));
        run.succeed("t2@1", json!(1));
        run.at(3_000).progress("t3@1", progress(1, "half a"));
        run.at(7_000).wake("t3@1 t4@1");
        let of = |token: &str, name: &str, text: &str| {
            (Some(token.to_string()), name.to_string(), text.to_string())
        };
        assert_eq!(
            run.recorded(),
            [of("t3", "plan", "a plan"), of("t3", "ask", "half a")],
            "{policy}"
        );
        let record = &run.records()[0];
        assert_eq!(json!(record.final_action), json!(action));
        assert!(!record.artifacts_cut);
        let at_work = &record.last_known_state.progress["at_work"];
        assert_eq!(
            at_work[0],
            json!({"token_id": "t3", "node_id": "b", "status": "executing", "branch": 1,
                "step_ref": "ask", "step_index": 1, "steps_total": 3, "attempt": 1})
        );
        assert_eq!(
            at_work[1],
            json!({"token_id": "t4", "node_id": "b", "status": "executing", "branch": 2})
        );
        assert_eq!(record.partial_artifacts[0].node_id.as_deref(), Some("b"));
    }
}

#[test]
fn a_record_says_that_it_was_cut() {
    let document = with(
        json!({
            "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}, {"id": "z"}],
            "transitions": [
                {"id": "each", "from_node_id": "s", "to_node_id": "a", "spawn_count": 40},
                {"from_node_id": "a", "to_node_id": "z", "synchronization": {"strategy": "all", "sibling_group": "each", "timeout_ms": 5_000}},
            ],
        }),
        json!({}),
    );
    let mut run = Driver::start(document);
    run.at(1_500).succeed("t2@1", json!(1));
    let text = "\u{1}".repeat(16 << 10);
    for token in 3..=41 {
        run.at(2_000).progress(&format!("t{token}@1"), progress(1, &text));
    }
    run.at(6_500).wake("");
    let record = &run.records()[0];
    assert!(record.artifacts_cut);
    let bytes = json!(record).to_string().len();
    assert!(bytes < 300_000, "{bytes}");
    let texts = record.partial_artifacts.iter().filter(|it| it.name == "ask");
    let lengths: Vec<usize> = texts.map(|it| it.text.len()).collect();
    assert_eq!(lengths.len(), 39);
    assert!(lengths.iter().all(|length| *length > 900), "{lengths:?}");
}

#[test]
fn the_end_of_the_run_records_what_was_streamed() {
    for (policy, action) in [
        ("cancel_all", "cancel"),
        ("fail", "fail"),
        ("human_gate", "escalate"),
    ] {
        let document =
            json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout_ms": 4_000, "on_timeout": policy});
        let mut run = Driver::start(document);
        run.at(2_000).progress("t1@1", progress(1, "so far"));
        run.at(5_000).wake("t1@1");
        let recorded = run.recorded();
        assert_eq!(recorded.last().map(|it| &*it.2), Some("so far"), "{policy}");
        assert_eq!(recorded[0].0.as_deref(), Some("t1"));
        assert_eq!(json!(run.records()[0].final_action), json!(action));
    }
}

#[test]
fn an_executor_that_is_gone_leaves_what_it_had_streamed() {
    let mut run = direct();
    run.at(2_000).progress("t1@1", progress(2, "so far"));
    run.at(101_500).wake("t1@1");
    let records = run.records();
    let state = &records[0].last_known_state;
    assert_eq!(
        json!(state),
        json!({"node_id": "a", "token_id": "t1", "step_ref": "ask", "phase": "executing",
            "progress": {"steps_completed": 1, "steps_total": 1, "step_index": 1, "attempt": 2, "at": 2_000}})
    );
    assert_eq!(
        json!(records[0].partial_artifacts),
        json!([{"name": "plan", "complete": true, "bytes": 6, "text": "a plan"},
            {"name": "ask", "complete": false, "bytes": 6, "text": "so far"}])
    );
}

/// The report has everything that arrived until the deadline.
#[test]
fn a_report_counts_more_than_the_progress_before_it() {
    let mut run = direct();
    run.at(2_000).progress("t1@1", progress(1, "so"));
    let mut report = timed_out("t1@1");
    report.partial = vec![artifact("ask", false, "so far")];
    run.at(101_000).report(report);
    assert_eq!(run.recorded(), [(None, "ask".to_string(), "so far".to_string())]);
}

#[test]
fn a_reaped_attempt_has_a_record_with_what_it_had_streamed() {
    for (node, action) in [
        (json!({}), "fail"),
        (json!({"on_timeout": "retry", "max_retries": 1}), "retry"),
    ] {
        let mut run = start(one_node(node));
        run.at(2_000).claim("t1@1");
        run.at(40_000).progress("t1@1", progress(1, "so far"));
        run.reload().at(340_000).wake("");
        let records = run.records();
        assert_eq!(json!(records[0].final_action), json!(action));
        assert_eq!(records[0].timeout_event.timeout_ms, Some(300_000));
        assert_eq!(json!(records[0].error), json!({"code": "attempt_reaped"}));
        assert_eq!(records[0].last_known_state.step_ref.as_deref(), Some("ask"));
        let text = records[0].partial_artifacts.last().map(|it| &*it.text);
        assert_eq!(text, Some("so far"));
        let reaped: Vec<Value> = run
            .events()
            .into_iter()
            .filter(|event| event.kind == RunEventKind::AttemptReaped)
            .map(|event| json!(event.fields))
            .collect();
        assert_eq!(reaped, [json!({"token_id": "t1", "epoch": 1})]);
    }
}

/// A model's text shall be sent while it arrives, so its attempt goes by a connection.
#[test]
fn a_short_last_attempt_that_streams_needs_a_connection() {
    let llm = json!({"id": "llm", "kind": "llm_call", "implementation":
        {"provider": "openai", "base_url": "https://llm.example/v1", "model": "m", "prompt": "hello"}});
    let work = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}});
    for (action, is_single) in [("work", true), ("llm", false)] {
        let run = Driver::start(json!({"actions": [llm, work],
            "nodes": [{"id": "a", "action_id": action, "timeout_ms": 5_000}]}));
        assert_eq!(run.order().is_short_and_last, is_single, "{action}");
    }
}
