//! The steps of a task: their order, conditions and failures, its context and output.

use curfew::base::failure::FailureClass::Network;
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Fails, Failure, Result};
use super::fake_runtime::{call, check, set, trace_of, with};

#[test]
fn steps_run_by_ordinal_else_by_position() {
    let steps = json!([
        with(call("last"), json!({"ordinal": 9})),
        with(call("second"), json!({"ordinal": 1})),
        with(call("first"), json!({"ordinal": 0})),
        call("third"),
    ]);
    let answers = ["first", "second", "third", "last"].map(|step| (step, Result(json!(step))));
    let trace = trace_of(json!({"steps": steps}), None, &answers);
    check(
        &trace,
        r#"
            call first {"n":1}
            call second {"n":1}
            call third {"n":1}
            call last {"n":1}
            step first completed x1 0 ms
            step second completed x1 0 ms
            step third completed x1 0 ms
            step last completed x1 0 ms
            completed "last"
        "#,
    );
}

#[test]
fn conditions_have_all_outcomes() {
    let outcome = |condition: Value| {
        let conditional = with(set("maybe", json!({"y": 1})), json!({"condition": condition}));
        let steps = json!([
            set("before", json!({"x": 1})),
            conditional,
            set("after", json!({"z": 1}))
        ]);
        let trace = trace_of(json!({"steps": steps}), None, &[]);
        trace.lines().last().unwrap_or_default().to_string()
    };
    let continued = r#"completed {"x":1,"y":1,"z":1}"#;
    let skipped = r#"completed {"x":1,"z":1}"#;
    let succeeded = r#"completed {"x":1}"#;
    let failed = "failed condition_failed/assertion at maybe: the condition of step maybe says fail";
    for (condition, end) in [
        (json!("input.n == 1"), continued),
        (json!("input.n == 2"), skipped),
        (json!({"if": "input.n == 1"}), continued),
        (json!({"if": "input.n == 2"}), skipped),
        (json!({"if": "input.n == 1", "then": "continue"}), continued),
        (json!({"if": "input.n == 1", "then": "skip"}), skipped),
        (json!({"if": "input.n == 1", "then": "succeed"}), succeeded),
        (json!({"if": "input.n == 1", "then": "fail"}), failed),
        (json!({"if": "input.n == 2", "else": "continue"}), continued),
        (json!({"if": "input.n == 2", "else": "skip"}), skipped),
        (json!({"if": "input.n == 2", "else": "succeed"}), succeeded),
        (json!({"if": "input.n == 2", "else": "fail"}), failed),
        (
            json!("state.nothing"),
            "failed expression_failed/validation at maybe: condition of step maybe: expression `state.nothing`: no such key: nothing",
        ),
    ] {
        assert_eq!(outcome(condition.clone()), end, "{condition}");
    }
}

#[test]
fn a_skipped_step_has_no_attempts() {
    let steps = json!([
        with(call("a"), json!({"condition": "false"})),
        set("b", json!({"x": 1}))
    ]);
    check(
        &trace_of(json!({"steps": steps}), None, &[]),
        r#"
            step a skipped x0 0 ms
            step b completed x1 0 ms
            completed {"x":1}
        "#,
    );
}

#[test]
fn abort_ends_the_task_with_the_error_of_its_step() {
    let steps = json!([call("a"), call("b")]);
    check(
        &trace_of(json!({"steps": steps}), None, &[("a", Failure("status 500"))]),
        r#"
            call a {"n":1}
            step a failed x1 0 ms
            failed peer_failed/bad_request at a: status 500
        "#,
    );
}

#[test]
fn continue_notes_each_error_and_goes_on() {
    let failing = |name| with(call(name), json!({"on_failure": "continue"}));
    let steps = json!([
        failing("a"),
        failing("b"),
        set("c", json!({"errors": "${state._errors}"}))
    ]);
    let answers = [("a", Failure("first")), ("b", Failure("second"))];
    check(
        &trace_of(json!({"steps": steps}), None, &answers),
        r#"
            call a {"n":1}
            call b {"n":1}
            step a failed x1 0 ms
            step b failed x1 0 ms
            step c completed x1 0 ms
            completed {"errors":[{"class":"bad_request","code":"peer_failed","message":"first","ref":"a"},{"class":"bad_request","code":"peer_failed","message":"second","ref":"b"}]}
        "#,
    );
}

#[test]
fn the_output_is_the_last_result_unless_something_was_written() {
    let answers = [("a", Result(json!({"body": 5})))];
    check(
        &trace_of(json!({"steps": [call("a")]}), None, &answers),
        r#"
            call a {"n":1}
            step a completed x1 0 ms
            completed {"body":5}
        "#,
    );
    // A failed step that continues has no result.
    let steps = json!([call("a"), with(call("b"), json!({"on_failure": "continue"}))]);
    let answers = [("a", Result(json!(5))), ("b", Failure("status 500"))];
    check(
        &trace_of(json!({"steps": steps}), None, &answers),
        r#"
            call a {"n":1}
            call b {"n":1}
            step a completed x1 0 ms
            step b failed x1 0 ms
            completed 5
        "#,
    );
    let mapped = with(
        call("a"),
        json!({"output_mapping": {"output.x": "${result.body}", "state.y": 1}}),
    );
    let answers = [("a", Result(json!({"body": 5})))];
    check(
        &trace_of(json!({"steps": [mapped]}), None, &answers),
        r#"
            call a {"n":1}
            step a completed x1 0 ms
            completed {"x":5}
        "#,
    );
}

#[test]
fn later_steps_can_read_a_result_without_a_mapping() {
    let body =
        json!({"kind": "service_call", "implementation": {"binding": "PEER", "body": "${state.a} ${input}"}});
    let steps = json!([call("a"), {"ref": "b", "action": body, "input_mapping": {"got": "${state.a}"}}]);
    let answers = [("a", Result(json!(7))), ("b", Result(json!(8)))];
    check(
        &trace_of(json!({"steps": steps}), None, &answers),
        r#"
            call a {"n":1}
            call b {"got":7} "7 {\"got\":7}"
            step a completed x1 0 ms
            step b completed x1 0 ms
            completed 8
        "#,
    );
}

#[test]
fn update_context_writes_paths_all_at_once() {
    let steps = json!([
        set(
            "a",
            json!({"state.x.y": 1, "output.z": 2, "bare": 3, "deep.er": 4})
        ),
        set(
            "b",
            json!({"state.swap": "${output.z}", "z": "${state.x.y}", "state.x.y": "${output.z}"})
        ),
        set("c", json!({"seen": "${state}"})),
    ]);
    check(
        &trace_of(json!({"steps": steps}), None, &[]),
        r#"
            step a completed x1 0 ms
            step b completed x1 0 ms
            step c completed x1 0 ms
            completed {"bare":3,"deep":{"er":4},"seen":{"swap":2,"x":{"y":2}},"z":1}
        "#,
    );
}

#[test]
fn an_update_whose_expression_fails_writes_nothing() {
    let failing = with(
        set("a", json!({"x": 1, "y": "${input.nothing}"})),
        json!({"on_failure": "continue"}),
    );
    let steps = json!([failing, set("b", json!({"seen": "${has(output.x)}"}))]);
    check(
        &trace_of(json!({"steps": steps}), None, &[]),
        r#"
            step a failed x1 0 ms
            step b completed x1 0 ms
            completed {"seen":false}
        "#,
    );
}

#[test]
fn an_assertion_names_its_condition() {
    let assert = |implementation: Value| {
        let step = json!({"ref": "a", "action": {"kind": "assert", "implementation": implementation}});
        trace_of(json!({"steps": [step]}), None, &[])
            .lines()
            .last()
            .unwrap_or_default()
            .to_string()
    };
    for (implementation, end) in [
        (json!({"condition": "input.n == 1"}), "completed true"),
        (
            json!({"condition": "input.n == 2"}),
            "failed assertion_failed/assertion at a: assertion failed: input.n == 2",
        ),
        (
            json!({"condition": "input.n == 2", "message": "n is ${input.n}"}),
            "failed assertion_failed/assertion at a: n is 1",
        ),
        (
            json!({"condition": "input.n == 2", "message": {"n": "${input.n}"}}),
            r#"failed assertion_failed/assertion at a: {"n":1}"#,
        ),
        (
            json!({"condition": "input.n == 2", "message": "${input.m}"}),
            "failed expression_failed/validation at a: message of step a: expression `input.m`: no such key: m",
        ),
        (
            json!({"condition": "input.n"}),
            "failed expression_failed/validation at a: condition of step a: expression `input.n`: result must be a bool, found int",
        ),
    ] {
        assert_eq!(assert(implementation.clone()), end, "{implementation}");
    }
}

#[test]
fn schemas_are_checked_and_named_in_errors() {
    let number = json!({"properties": {"n": {"type": "string"}}});
    let text = json!({"type": "string"});
    let action = |field: &str, schema: &Value| {
        let mut step = call("a");
        step["action"][field] = schema.clone();
        step
    };
    check(
        &trace_of(json!({"input_schema": number, "steps": [call("a")]}), None, &[]),
        r#"
            failed schema_mismatch/validation at -: input_schema of the task, at "/n": expected string, found number 1
        "#,
    );
    check(
        &trace_of(json!({"steps": [action("input_schema", &number)]}), None, &[]),
        r#"
            step a failed x1 0 ms
            failed schema_mismatch/validation at a: input_schema of step a, at "/n": expected string, found number 1
        "#,
    );
    let answers = [("a", Result(json!(5)))];
    check(
        &trace_of(json!({"steps": [action("output_schema", &text)]}), None, &answers),
        r#"
            call a {"n":1}
            step a failed x1 0 ms
            failed schema_mismatch/validation at a: output_schema of step a, at "": expected string, found number 5
        "#,
    );
    check(
        &trace_of(
            json!({"output_schema": text, "steps": [call("a")]}),
            None,
            &answers,
        ),
        r#"
            call a {"n":1}
            step a completed x1 0 ms
            failed schema_mismatch/validation at -: output_schema of the task, at "": expected string, found number 5
        "#,
    );
}

/// `now` is the moment at which a step began, also in what follows its call, and in every call of it.
#[test]
fn now_is_the_moment_at_which_the_step_began() {
    let mut asking = with(
        call("ask"),
        json!({"input_mapping": "${now}", "output_mapping": {"state.asked": "${[now, result]}"}}),
    );
    asking["action"]["implementation"]["body"] = json!({"at": "${now}"});
    let early = with(
        set("early", json!({"never": 1})),
        json!({"condition": "now < 1500"}),
    );
    let late = with(
        set("late", json!({"at": "${[now, state.asked]}"})),
        json!({"condition": "now > 1500"}),
    );
    let answers = [
        ("first", After(400, json!(1))),
        ("ask", Fails(Network, None)),
        ("ask", After(600, json!("done"))),
    ];
    check(
        &trace_of(
            json!({"steps": [call("first"), asking, early, late]}),
            None,
            &answers,
        ),
        r#"
            call first {"n":1}
            call ask 1400 {"at":1400}
            retry ask network peer_failed
            sleep 1000
            call ask 1400 {"at":1400}
            step first completed x1 400 ms
            step ask completed x2 1600 ms
            step early skipped x0 0 ms
            step late completed x1 0 ms
            completed {"at":[3000,[1400,"done"]]}
        "#,
    );
}

#[test]
fn an_input_mapping_that_fails_fails_its_step() {
    let steps = json!([with(
        call("a"),
        json!({"input_mapping": {"x": "${input.nothing}"}})
    )]);
    check(&trace_of(json!({"steps": steps}), None, &[]), "
            step a failed x1 0 ms
            failed expression_failed/validation at a: input_mapping of step a: expression `input.nothing`: no such key: nothing
        ");
}

#[test]
fn an_output_over_its_limit_fails_the_task() {
    let limit = 512 << 10;
    let answers = [("a", Result(json!("x".repeat(limit - 1))))];
    check(
        &trace_of(json!({"steps": [call("a")]}), None, &answers),
        r#"
            call a {"n":1}
            step a completed x1 0 ms
            failed limit_exceeded/validation at -: the task's output is 524289 bytes; the limit is 524288
        "#,
    );
    let answers = [("a", Result(json!("x".repeat(limit - 2))))];
    let trace = trace_of(json!({"steps": [call("a")]}), None, &answers);
    assert!(
        trace.contains("\ncompleted \"xxx"),
        "exactly the limit is within it"
    );
}
