//! `GET /resume`: the resume options, with a recommendation and its reason.

use curfew::base::failure::{Failure, FailureClass};
use curfew::protocol::task::{Checkpoint, TaskReport};
use curfew::run::RetryMode;
use serde_json::{Value, json};

use crate::run::driver::{Driver, failed};

fn document() -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

fn view(run: &Driver) -> Value {
    run.resume_view()
}

fn failed_with(class: FailureClass) -> Driver {
    failed_as(Failure::new("wrong", class, "something went wrong"))
}

fn failed_as(error: Failure) -> Driver {
    let mut run = Driver::start(document());
    run.report(TaskReport {
        error: Some(error),
        ..failed("t1@1")
    });
    run
}

#[test]
fn the_whole_view_of_a_failed_run() {
    let mut run = Driver::start(document());
    run.at(2_000).succeed("t1@1", json!(1)).at(3_000).fail("t2@1");
    let error = json!({"code": "peer_failed", "class": "server_error", "message": "status 500", "node_id": "b",
        "token_id": "t2"});
    assert_eq!(
        view(&run),
        json!({
            "run_id": "run-1", "status": "failed", "resumable": true, "reason": null,
            "options": [
                {"mode": "retry_step", "open": true,
                 "what": "go on from what failed, with the state as it is and the steps that were finished"},
                {"mode": "discard_and_retry", "open": true,
                 "what": "go on from the last checkpoint; what the failed steps did is dropped"},
                {"mode": "escalate", "open": true, "what": "a person decides first whether it goes on"},
            ],
            "recommended": "retry_step", "why": "what failed may have passed by now",
            "version": {"current": 1, "recommended": false, "why": null, "how": null},
            "failed_tokens": [{"token_id": "t2", "node_id": "b", "status": "failed", "error": error,
                "has_partial_work": false}],
            "tokens_to_go_on": 1,
            "last_successful_checkpoint": {"token_id": "t1", "node_id": "a", "at": 2_000},
            "error": error,
        })
    );
}

#[test]
fn the_failure_class_decides_the_recommendation() {
    use FailureClass::*;
    for (classes, mode) in [
        (
            vec![Network, ServerError, RateLimited, Timeout, Unknown],
            "retry_step",
        ),
        (vec![Validation, Assertion], "discard_and_retry"),
        (vec![BadRequest, Auth, NotFound, Permanent], "escalate"),
    ] {
        for class in classes {
            let view = view(&failed_with(class));
            assert_eq!(view["recommended"], json!(mode), "{class:?}");
            assert!(view["why"].as_str().is_some_and(|why| !why.is_empty()));
        }
    }
}

#[test]
fn another_version_is_recommended_where_the_document_is_at_fault() {
    use FailureClass::*;
    for class in FailureClass::ALL {
        let view = view(&failed_with(*class));
        let is_fault = matches!(class, Validation | BadRequest | NotFound);
        assert_eq!(view["version"]["recommended"], json!(is_fault), "{class:?}");
        assert_eq!(view["version"]["why"].is_string(), is_fault, "{class:?}");
        let mode = match class {
            Validation => "discard_and_retry",
            _other => "retry_step",
        };
        let how = format!(
            "PUT /v1/workflows/flow with a document that is fixed, then POST /v1/runs/run-1/retry {{\"mode\": \"{mode}\", \
             \"version\": N}} with N = the version that PUT answers"
        );
        let how = if is_fault { json!(how) } else { Value::Null };
        assert_eq!(view["version"]["how"], how, "{class:?}");
    }
}

/// A declined card: another document does not help.
#[test]
fn what_a_peer_refused_is_no_fault_of_the_document() {
    let refused = Failure::new("http_422", FailureClass::Validation, "card declined");
    let view = view(&failed_as(refused));
    assert_eq!(view["version"]["recommended"], json!(false));
    assert!(
        view["why"]
            .as_str()
            .is_some_and(|why| why.starts_with("a peer refused"))
    );
}

/// No token knows where the path was cut: a version with a higher limit begins again.
#[test]
fn a_run_that_met_a_limit_of_its_document_is_restarted_on_a_version_with_another() {
    let document = json!({"limits": {"tokens_total": 1}, "nodes": [{"id": "a"}, {"id": "b"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]});
    let view = view(&Driver::start(document));
    assert_eq!(
        (&view["resumable"], &view["version"]["recommended"]),
        (&json!(false), &json!(true))
    );
    let how = view["version"]["how"].as_str().expect("a text");
    assert!(
        how.contains("POST /v1/runs/run-1/restart {\"version\": N}"),
        "{how}"
    );
}

/// Regardless of the failure class.
#[test]
fn retry_step_is_recommended_for_partial_work() {
    let mut run = Driver::start(document());
    let checkpoint = Checkpoint {
        next: "second".into(),
        state: json!({}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(null),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    };
    run.report(TaskReport {
        error: Some(Failure::new(
            "wrong",
            FailureClass::Permanent,
            "something went wrong",
        )),
        checkpoint: Some(Box::new(checkpoint)),
        ..failed("t1@1")
    });
    let view = view(&run);
    assert_eq!(view["recommended"], json!("retry_step"));
    assert_eq!(view["failed_tokens"][0]["has_partial_work"], json!(true));
    assert_eq!(view["last_successful_checkpoint"], Value::Null);
}

#[test]
fn a_timed_out_run_is_resumable_without_failed_tokens() {
    let mut run = Driver::start(document());
    run.at(61_000).wake("t1@1");
    let view = view(&run);
    assert_eq!(
        (
            &view["recommended"],
            &view["failed_tokens"],
            &view["tokens_to_go_on"]
        ),
        (&json!("retry_step"), &json!([]), &json!(1))
    );
}

#[track_caller]
fn not_resumable(run: &Driver, reason: &str) {
    let view = view(run);
    assert_eq!(view["resumable"], json!(false));
    assert_eq!(view["reason"], json!(reason));
    assert_eq!((&view["recommended"], &view["why"]), (&Value::Null, &Value::Null));
    for option in view["options"].as_array().into_iter().flatten() {
        assert_eq!(option["open"], json!(false));
    }
}

#[test]
fn a_run_that_is_not_resumable_has_a_reason() {
    let over = "only a run that failed or timed out goes on; restart this one to run it again";
    let mut run = Driver::start(document());
    not_resumable(&run, "the run has not ended");
    not_resumable(run.pause(), "the run is paused: POST /v1/runs/run-1/resume");
    not_resumable(run.cancel(None), over);
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
    not_resumable(&run, over);
    let mut document = document();
    document["output_mapping"] = json!("${state.nothing.there}");
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
    not_resumable(&run, "nothing was under way when the run ended: restart it");
    let mut document = self::document();
    document["limits"] = json!({"tokens_total": 1});
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(1));
    not_resumable(
        &run,
        "the run met one of its limits where a path would have gone on; restart it",
    );
}

#[test]
fn the_reason_of_a_paused_run_says_how_to_continue_it() {
    let mut document = document();
    document["on_timeout"] = json!("human_gate");
    let mut run = Driver::start(document);
    run.at(61_000).wake("t1@1");
    not_resumable(&run, "a person decides: POST /v1/runs/run-1/gates/run1");
    // The gate is decided.
    run.grant("run1", 10_000).pause();
    not_resumable(&run, "the run is paused: POST /v1/runs/run-1/resume");
    let mut run = Driver::start(self::document());
    run.fail("t1@1").retry(RetryMode::Escalate);
    not_resumable(&run, "a person decides: POST /v1/runs/run-1/gates/run1");
    let mut run = Driver::start(self::document());
    run.parent_holds(1, true, None);
    not_resumable(
        &run,
        "the run that called this one stands still; it goes on with it",
    );
}

#[test]
fn after_a_retry_the_view_shows_the_latest_failure() {
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1))
        .fail("t2@1")
        .retry(RetryMode::RetryStep)
        .fail("t3@1");
    let view = view(&run);
    assert_eq!(view["failed_tokens"][0]["token_id"], json!("t3"));
    assert_eq!(view["tokens_to_go_on"], json!(1));
}
