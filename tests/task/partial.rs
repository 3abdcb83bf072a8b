//! The artifacts of a task that did not complete, their sizes, and its checkpoint.

use curfew::task::partial::{ARTIFACT_BYTES, ARTIFACTS_BYTES, text_of};
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Endless, Failure, Result};
use super::fake_runtime::{call, check, order, set, with};

#[test]
fn at_its_deadline_a_task_reports_finished_steps_and_the_text_so_far() {
    let steps = json!([call("object"), call("text"), call("slow"), call("never")]);
    let answers = [
        ("object", After(10, json!({"a": 1}))),
        ("text", After(10, json!("two"))),
        ("slow", Endless("half an ans".into())),
    ];
    let run = order(json!({"steps": steps}), json!({"deadline_at": 1_300}), &answers);
    check(
        &run.trace(),
        r#"
            call object {"n":1} by 1300
            call text {"n":1} by 1300
            call slow {"n":1} by 1300
            step object completed x1 10 ms
            step text completed x1 10 ms
            step slow timed_out x1 280 ms
            timed_out tool_timeout/timeout at slow: step slow timed out: context deadline exceeded
        "#,
    );
    check(
        &run.left(),
        r#"
            complete object 7 bytes: {"a":1}
            complete text 3 bytes: two
            partial slow 11 bytes: half an ans
            after object,text go on with slow: state {"object":{"a":1},"text":"two"} output {} written false last "two"
        "#,
    );
}

#[test]
fn a_call_without_a_response_leaves_no_artifact() {
    let steps = json!([set("a", json!({"x": 1})), call("b")]);
    for answer in [After(900, json!(1)), Endless(String::new())] {
        let run = order(
            json!({"steps": steps}),
            json!({"deadline_at": 1_300}),
            &[("b", answer)],
        );
        check(
            &run.left(),
            r#"
                complete a 7 bytes: {"x":1}
                after a go on with b: state {} output {"x":1} written true last {"x":1}
            "#,
        );
    }
}

#[test]
fn a_failed_task_reports_the_same() {
    let failing = with(call("b"), json!({"condition": "state.a == 7"}));
    let steps = json!([call("a"), with(call("s"), json!({"condition": "false"})), failing]);
    let answers = [("a", Result(json!(7))), ("b", Failure("status 500"))];
    let run = order(json!({"steps": steps}), json!({}), &answers);
    check(
        &run.left(),
        r#"
            complete a 1 bytes: 7
            after a,s go on with b: state {"a":7} output {} written false last 7
        "#,
    );
}

#[test]
fn the_artifact_of_a_failed_step_that_continues_keeps_its_position() {
    let passed_over = with(
        call("b"),
        json!({"timeout_override_ms": 100, "on_failure": "continue"}),
    );
    let steps = json!([call("a"), passed_over, call("c"), call("d")]);
    let answers = [
        ("a", Result(json!("one"))),
        ("b", Endless("tw".into())),
        ("c", Result(json!("three"))),
        ("d", Failure("status 500")),
    ];
    let run = order(json!({"steps": steps}), json!({}), &answers);
    check(
        &run.left(),
        r#"
            complete a 3 bytes: one
            partial b 2 bytes: tw
            complete c 5 bytes: three
            after a,b,c go on with d: state {"_errors":[{"class":"timeout","code":"tool_timeout","message":"step b timed out: context deadline exceeded","ref":"b"}],"a":"one","c":"three"} output {} written false last "three"
        "#,
    );
}

#[test]
fn without_a_finished_step_there_is_no_checkpoint() {
    let skipped = with(call("a"), json!({"condition": "false"}));
    let passed_over = with(call("b"), json!({"on_failure": "continue"}));
    let steps = json!([skipped, passed_over, call("c")]);
    let answers = [("b", Failure("status 500")), ("c", Endless("some".into()))];
    let run = order(json!({"steps": steps}), json!({"deadline_at": 1_300}), &answers);
    check(&run.left(), "partial c 4 bytes: some");
}

#[test]
fn a_completed_task_has_no_artifacts() {
    let passed_over = with(
        call("b"),
        json!({"timeout_override_ms": 100, "on_failure": "continue"}),
    );
    let steps = json!([call("a"), passed_over, call("c")]);
    let answers = [
        ("a", Result(json!("one"))),
        ("b", Endless("tw".into())),
        ("c", Result(json!("three"))),
    ];
    let run = order(json!({"steps": steps}), json!({}), &answers);
    assert_eq!(run.result.output, Some(json!("three")));
    check(&run.left(), "");
}

#[test]
fn a_failure_of_no_step_has_no_checkpoint() {
    let task = json!({"output_schema": {"type": "string"}, "steps": [call("a"), call("b")]});
    let answers = [("a", Result(json!(1))), ("b", Result(json!(2)))];
    check(
        &order(task, json!({}), &answers).left(),
        "
            complete a 1 bytes: 1
            complete b 1 bytes: 2
        ",
    );
    let task = json!({"input_schema": {"type": "string"}, "steps": [call("a")]});
    check(&order(task, json!({}), &[]).left(), "");
}

#[test]
fn only_the_last_pass_counts() {
    let steps = json!([call("a"), with(call("b"), json!({"on_failure": "retry"}))]);
    let task = json!({"retry": {"max_attempts": 2}, "steps": steps});
    let answers = [
        ("a", Result(json!("first"))),
        ("b", Failure("status 500")),
        ("a", Result(json!("second"))),
        ("b", Endless("sec".into())),
    ];
    check(
        &order(task, json!({"deadline_at": 1_300}), &answers).left(),
        r#"
            complete a 6 bytes: second
            partial b 3 bytes: sec
            after a go on with b: state {"a":"second"} output {} written false last "second"
        "#,
    );
}

/// An update writes before its result is checked. If it fails it must not write twice when it runs again.
#[test]
fn a_step_that_failed_wrote_nothing() {
    let count = |more: Value| {
        let implementation = json!({"set": {"n": "${has(output.n) ? output.n + 1 : 1}", "state.m": 1}});
        let action = with(
            json!({"kind": "update_context", "implementation": implementation}),
            more,
        );
        json!({"ref": "count", "action": action})
    };
    for failing in [
        count(json!({"output_schema": {"type": "string"}})),
        with(
            count(json!({})),
            json!({"output_mapping": {"x": "${result.nothing}"}}),
        ),
    ] {
        let steps = json!([call("a"), failing]);
        check(
            &order(json!({"steps": steps}), json!({}), &[("a", Result(json!(1)))]).left(),
            r#"
                complete a 1 bytes: 1
                after a go on with count: state {"a":1} output {} written false last 1
            "#,
        );
    }
}

/// One finished step with this result, then one that fails.
fn artifact_of(result: Value) -> (bool, u64, String) {
    let steps = json!([call("a"), call("b")]);
    let answers = [("a", Result(result)), ("b", Failure("status 500"))];
    let mut run = order(json!({"steps": steps}), json!({}), &answers);
    let artifact = run.result.partial.remove(0);
    (artifact.complete, artifact.bytes, artifact.text)
}

#[test]
fn the_text_of_an_artifact_is_cut_at_its_limit_between_characters() {
    let limit = ARTIFACT_BYTES;
    let whole = "x".repeat(limit);
    assert_eq!(artifact_of(json!(whole)), (true, limit as u64, whole.clone()));
    let longer = format!("{whole}y");
    assert_eq!(artifact_of(json!(longer)), (false, limit as u64 + 1, whole));
    // The euro sign has three bytes. One, then two of them are before the limit.
    for before in [limit - 1, limit - 2] {
        let start = "x".repeat(before);
        let text = format!("{start}€€");
        assert_eq!(artifact_of(json!(text)), (false, before as u64 + 6, start));
    }
    // JSON adds two brackets, and a quote on each side of a string.
    let text = "x".repeat(limit - 4);
    let list = json!([text]);
    assert_eq!(artifact_of(list.clone()), (true, limit as u64, list.to_string()));
    let list = json!([format!("{text}€")]);
    let (complete, bytes, cut) = artifact_of(list);
    assert_eq!(
        (complete, bytes, cut),
        (false, limit as u64 + 3, format!("[\"{text}"))
    );
}

#[test]
fn text_that_arrived_is_cut_too() {
    let text = format!("{}€", "x".repeat(ARTIFACT_BYTES - 1));
    let run = order(
        json!({"steps": [call("a")]}),
        json!({"deadline_at": 1_300}),
        &[("a", Endless(text))],
    );
    let [artifact] = &run.result.partial[..] else {
        panic!("{:?}", run.result.partial);
    };
    assert_eq!(
        (artifact.complete, artifact.bytes),
        (false, ARTIFACT_BYTES as u64 + 2)
    );
    assert_eq!(artifact.text, "x".repeat(ARTIFACT_BYTES - 1));
}

#[test]
fn all_artifacts_share_a_limit_and_the_latest_are_cut_last() {
    let names = ["a", "b", "c", "d", "e"];
    let steps: Vec<Value> = names
        .iter()
        .map(|name| call(name))
        .chain([call("slow")])
        .collect();
    // The limit of the second step is inside a euro sign.
    let result = json!("€".repeat(ARTIFACT_BYTES / 3));
    let mut answers: Vec<_> = names.map(|name| (name, Result(result.clone()))).into();
    answers.push(("slow", Endless("12345".into())));
    let run = order(json!({"steps": steps}), json!({"deadline_at": 1_300}), &answers);
    let sizes: Vec<_> = run
        .result
        .partial
        .iter()
        .map(|artifact| {
            let kept = artifact.text.len();
            (&*artifact.name, artifact.complete, artifact.bytes, kept)
        })
        .collect();
    let whole = ARTIFACT_BYTES / 3 * 3;
    let left = (ARTIFACTS_BYTES - 5 - 3 * whole) / 3 * 3;
    assert!(left < whole, "the second step does not fit whole");
    let rest = ARTIFACTS_BYTES - 5 - 3 * whole - left;
    assert_eq!(
        sizes,
        [
            ("a", false, whole as u64, rest / 3 * 3),
            ("b", false, whole as u64, left),
            ("c", true, whole as u64, whole),
            ("d", true, whole as u64, whole),
            ("e", true, whole as u64, whole),
            ("slow", false, 5, 5),
        ]
    );
}

#[test]
fn a_checkpoint_over_the_limit_of_results_is_not_made() {
    let left_of = |length: usize| {
        let steps = json!([
            with(call("a"), json!({"output_mapping": {"state.x": 1}})),
            call("b")
        ]);
        let answers = [
            ("a", Result(json!("x".repeat(length)))),
            ("b", Failure("status 500")),
        ];
        order(json!({"steps": steps}), json!({}), &answers)
    };
    let limit = 512 << 10;
    let frame = left_of(0).checkpoint().to_string().len();
    assert_eq!(left_of(limit - frame).checkpoint().to_string().len(), limit);
    let over = left_of(limit - frame + 1);
    assert!(over.result.checkpoint.is_none(), "one byte over the limit");
    assert_eq!(
        over.result.partial.len(),
        1,
        "what there is to show is shown all the same"
    );
}

/// The coordinator's parser has a limit of depth and would refuse the report.
#[test]
fn a_checkpoint_nested_too_deep_is_not_made() {
    let nested = |depth: usize| (0..depth).fold(json!(1), |value, _| json!([value]));
    let left_of = |depth| {
        let steps = json!([
            with(call("a"), json!({"output_mapping": {"state.x": 1}})),
            call("b")
        ]);
        let answers = [("a", Result(nested(depth))), ("b", Failure("status 500"))];
        order(json!({"steps": steps}), json!({}), &answers)
            .result
            .checkpoint
    };
    assert!(left_of(100).is_some());
    assert!(left_of(101).is_none());
}

#[test]
fn text_ends_at_the_first_invalid_byte() {
    for (bytes, text) in [
        (&b""[..], ""),
        (b"abc", "abc"),
        ("a€".as_bytes(), "a€"),
        (&"a€".as_bytes()[..2], "a"),
        (&"a€".as_bytes()[..3], "a"),
        (b"ab\xffcd", "ab"),
        (b"\x89PNG", ""),
    ] {
        assert_eq!(text_of(bytes.to_vec()), text, "{bytes:?}");
    }
}
