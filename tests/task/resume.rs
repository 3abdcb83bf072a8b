//! Attempts that resume from a checkpoint.

use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{Endless, Failure, Result};
use super::fake_runtime::{PeerResponse, TaskRun, call, check, order, set, with};

/// Everything that a checkpoint can hold.
fn busy_task() -> Value {
    json!({"steps": [
        set("begin", json!({"state.count": 1})),
        call("plain"),
        with(call("mapped"), json!({"output_mapping": {"output.mapped": "${result}", "state.count": "${state.count + 1}"}})),
        with(call("skipped"), json!({"condition": "state.count == 0"})),
        with(call("passed"), json!({"on_failure": "continue"})),
        set("middle", json!({"state.count": "${state.count + 1}"})),
        call("late"),
        set("end", json!({"seen": "${state}", "errors": "${size(state._errors)}"})),
        with(call("last"), json!({"input_mapping": "${output}"})),
    ]})
}

fn busy_answers() -> Vec<(&'static str, PeerResponse)> {
    vec![
        ("plain", Result(json!({"body": [1, 2]}))),
        ("mapped", Result(json!("m"))),
        ("passed", Failure("status 500")),
        ("late", Result(json!(null))),
        ("last", Result(json!("done"))),
    ]
}

fn steps_of(run: &TaskRun) -> Vec<String> {
    let steps = run.result.steps.iter();
    steps
        .map(|step| format!("{} {:?} x{}", step.reference, step.status, step.attempts))
        .collect()
}

/// Wherever it stops, only the rest runs, and the result is that of an uninterrupted task.
#[test]
fn a_resumed_task_has_the_result_of_an_uninterrupted_one() {
    let undisturbed = order(busy_task(), json!({}), &busy_answers());
    assert_eq!(
        undisturbed.result.status,
        curfew::protocol::task::ReportStatus::Completed
    );
    let answers = busy_answers();
    for at in 0..answers.len() {
        let (step, _) = answers[at];
        let mut until = answers[..at].to_vec();
        until.push((step, Endless("so f".into())));
        let stopped = order(busy_task(), json!({"deadline_at": 1_300}), &until);
        let checkpoint = stopped.checkpoint();
        assert_eq!(checkpoint["next"], *step);
        let resumed = order(busy_task(), json!({"resume_from": checkpoint}), &answers[at..]);
        assert_eq!(
            resumed.result.output, undisturbed.result.output,
            "stopped at {step}"
        );
        assert_eq!(steps_of(&resumed), steps_of(&undisturbed), "stopped at {step}");
        assert!(resumed.result.partial.is_empty() && resumed.result.checkpoint.is_none());
    }
}

#[test]
fn the_last_result_of_the_checkpoint_may_be_the_output() {
    let steps = json!([call("a"), with(call("b"), json!({"condition": "state.a == 1"}))]);
    let answers = [("a", Result(json!(1))), ("b", Failure("status 500"))];
    let stopped = order(json!({"steps": steps}), json!({}), &answers);
    let passing_over = json!([call("a"), with(call("b"), json!({"condition": "false"}))]);
    let resume = json!({"resume_from": stopped.checkpoint()});
    check(
        &order(json!({"steps": passing_over}), resume, &[]).trace(),
        "
            step a completed x1 0 ms
            step b skipped x0 0 ms
            completed 1
        ",
    );
}

#[test]
fn a_second_checkpoint_keeps_the_first_one() {
    let task = json!({"steps": [call("a"), call("b"), call("c")]});
    let stop = |more: Value, answers: &[(&str, PeerResponse)]| {
        order(task.clone(), with(json!({"deadline_at": 1_300}), more), answers)
    };
    let first = stop(
        json!({}),
        &[("a", Result(json!("A"))), ("b", Endless("b".into()))],
    );
    // No other step has finished: the checkpoint is the same.
    let second = stop(
        json!({"resume_from": first.checkpoint()}),
        &[("b", Endless("bb".into()))],
    );
    check(
        &second.left(),
        r#"
            partial b 2 bytes: bb
            after a go on with b: state {"a":"A"} output {} written false last "A"
        "#,
    );
    let third = stop(
        json!({"resume_from": second.checkpoint()}),
        &[("b", Result(json!("B"))), ("c", Endless("c".into()))],
    );
    check(
        &third.left(),
        r#"
            complete b 1 bytes: B
            partial c 1 bytes: c
            after a,b go on with c: state {"a":"A","b":"B"} output {} written false last "B"
        "#,
    );
    check(
        &third.trace(),
        r#"
            call b {"n":1} by 1300
            call c {"n":1} by 1300
            step a completed x1 0 ms
            step b completed x1 0 ms
            step c timed_out x1 300 ms
            timed_out tool_timeout/timeout at c: step c timed out: context deadline exceeded
        "#,
    );
}

#[test]
fn an_invalid_checkpoint_starts_the_task_over() {
    let task = json!({"steps": [call("a"), call("b")]});
    let good = json!({
        "next": "b", "state": {"a": 5}, "output": {"x": 1}, "wrote_output": true, "last_result": 5,
        "steps": [{"ref": "a", "status": "completed", "attempts": 1, "duration_ms": 3}],
    });
    let answers = [("a", Result(json!(1))), ("b", Result(json!(2)))];
    let resumed = order(task.clone(), json!({"resume_from": good}), &answers[1..]);
    check(
        &resumed.trace(),
        r#"
            call b {"n":1}
            step a completed x1 3 ms
            step b completed x1 0 ms
            completed {"x":1}
        "#,
    );
    let mut without_state = good.clone();
    without_state.as_object_mut().expect("an object").remove("state");
    for bad in [
        with(good.clone(), json!({"next": "gone"})),
        with(good.clone(), json!({"next": 7})),
        with(good.clone(), json!({"state": "no object"})),
        with(good.clone(), json!({"output": [1]})),
        with(
            good.clone(),
            json!({"steps": [{"ref": "a", "status": "unheard of"}]}),
        ),
        without_state,
        json!("b"),
        json!(null),
    ] {
        let run = order(task.clone(), json!({"resume_from": bad}), &answers);
        check(
            &run.trace(),
            r#"
                call a {"n":1}
                call b {"n":1}
                step a completed x1 0 ms
                step b completed x1 0 ms
                completed 2
            "#,
        );
    }
}

#[test]
fn a_business_retry_after_resuming_begins_with_the_first_step() {
    let steps = json!([
        call("a"),
        with(
            call("b"),
            json!({"on_failure": "retry", "input_mapping": "${state.a}"})
        )
    ]);
    let task = json!({"retry": {"max_attempts": 2}, "steps": steps});
    let checkpoint = json!({
        "next": "b", "state": {"a": "old"}, "output": {"x": 1}, "wrote_output": true, "last_result": "old",
        "steps": [{"ref": "a", "status": "completed", "attempts": 1, "duration_ms": 3}],
    });
    let answers = [
        ("b", Failure("status 500")),
        ("a", Result(json!("new"))),
        ("b", Result(json!("done"))),
    ];
    check(
        &order(task, json!({"resume_from": checkpoint}), &answers).trace(),
        r#"
            call b "old"
            call a {"n":1}
            call b "new"
            step a completed x1 0 ms
            step b completed x1 0 ms
            completed "done"
        "#,
    );
}
