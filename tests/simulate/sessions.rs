//! Sessions: a simulation in steps has the end of one that goes through, and callers act in between.

use curfew::engine::call;
use serde_json::{Value, json};

use super::{chain, path_of, simulated};

const HOUR_MS: u64 = 3_600_000;

fn engine(request: Value) -> Value {
    serde_json::from_str(&call(&request.to_string())).expect("an answer is JSON")
}

#[track_caller]
fn done(request: Value) -> Value {
    let answer = engine(request);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["ok"].clone()
}

/// The status and the message of a refusal.
#[track_caller]
fn refused(request: Value) -> (u64, String) {
    let answer = engine(request);
    let status = answer["error"]["status"].as_u64();
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    (status.unwrap_or_else(|| panic!("{answer}")), message.to_string())
}

#[track_caller]
fn open(body: Value) -> u64 {
    let mut request = body;
    request["op"] = json!("open");
    done(request)["session"].as_u64().expect("a number")
}

fn order() -> Value {
    let workflow = chain(
        json!([
            {"id": "reserve", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "ask", "gate": {"timeout": "168h", "on_timeout": "reject"}},
            {"id": "pay", "action_id": "work", "max_retries": 2},
            {"id": "rest", "wait": {"signal": "shipped", "timeout": "24h"}},
        ]),
        json!({"timeout": "240h", "output_mapping": "${state.ask.choice}"}),
    );
    json!({"workflow": workflow, "mocks": [{"action": "work", "after": "2s", "result": {"ok": true}}]})
}

/// Without what a session adds.
fn answer_of(mut view: Value) -> Value {
    let fields = view.as_object_mut().expect("an object");
    fields.remove("gates");
    fields.remove("at_ms");
    view
}

#[test]
fn steps_have_the_end_of_a_simulation_that_goes_through() {
    let mut body = order();
    body["people"] = json!([{"gate": "ask", "after": "26h", "choice": "approve"}]);
    body["signals"] = json!([{"name": "shipped", "at": "30h"}]);
    let whole = simulated(body.clone());
    let session = open(body);
    for _ in 0..40 {
        done(json!({"op": "advance", "session": session, "by": "1h"}));
        // Looking changes nothing, not even what the run costs.
        done(json!({"op": "view", "session": session}));
    }
    let view = done(json!({"op": "view", "session": session}));
    assert_eq!(view["at_ms"], 40 * HOUR_MS);
    assert_eq!(answer_of(view), whole);
}

#[test]
fn faults_are_the_same_in_a_session() {
    for seed in 0..40 {
        let mut body = order();
        body["seed"] = json!(seed);
        body["faults"] = json!({"events": seed * 4});
        body["people"] = json!([{"gate": "ask", "after": "26h", "choice": "approve"}]);
        let whole = simulated(body.clone());
        let session = open(body);
        done(json!({"op": "advance", "session": session, "until": "end"}));
        let view = done(json!({"op": "view", "session": session}));
        assert_eq!(answer_of(view.clone()), whole, "seed {seed}");
        assert_eq!(
            done(json!({"op": "view", "session": session})),
            view,
            "seed {seed}, seen twice"
        );
        done(json!({"op": "close", "session": session}));
    }
}

#[test]
fn callers_act_between_two_steps() {
    let session = open(order());
    let step = |control: Value| {
        let mut request = control;
        request["op"] = json!("control");
        request["session"] = json!(session);
        request
    };
    let opened = done(json!({"op": "view", "session": session}));
    assert_eq!(path_of(&opened), "reserve executing");
    let (status, message) = refused(step(
        json!({"control": "gate", "id": "ask", "body": {"choice": "approve"}}),
    ));
    assert_eq!(status, 409);
    assert!(message.contains("no gate is open"), "{message}");
    done(json!({"op": "advance", "session": session, "by": "3h"}));
    let waiting = done(json!({"op": "view", "session": session}));
    assert_eq!(waiting["gates"][0]["gate"], "ask", "{waiting:#}");
    let (status, message) = refused(step(
        json!({"control": "gate", "id": "review", "body": {"choice": "x"}}),
    ));
    assert_eq!(status, 409);
    assert!(message.contains("open are \"ask\""), "{message}");
    let wrong = done(step(
        json!({"control": "gate", "id": "ask", "body": {"choice": "perhaps"}}),
    ));
    assert_eq!(wrong["refused"]["status"], 422, "{wrong}");
    done(step(
        json!({"control": "gate", "id": "ask", "body": {"choice": "approve", "by": "ada"}}),
    ));
    let paying = done(json!({"op": "view", "session": session}));
    assert_eq!(
        path_of(&paying),
        "reserve completed, ask completed, pay executing"
    );
    done(step(json!({"control": "pause"})));
    done(json!({"op": "advance", "session": session, "by": "300h"}));
    done(step(json!({"control": "resume"})));
    done(step(json!({"control": "extend", "body": {"by": "1h"}})));
    done(json!({"op": "advance", "session": session, "until": "change"}));
    done(step(
        json!({"control": "signal", "id": "shipped", "body": {"parcel": 7}}),
    ));
    done(json!({"op": "advance", "session": session, "until": "end"}));
    let view = done(json!({"op": "view", "session": session}));
    assert_eq!(
        (&view["run"]["status"], &view["run"]["output"]),
        (&json!("completed"), &json!("approve"))
    );
    let decided = view["events"]
        .as_array()
        .expect("events")
        .iter()
        .find(|event| event["kind"] == "gate_decided");
    assert_eq!(decided.expect("it was decided")["by"], "ada");
    let late = done(step(json!({"control": "cancel"})));
    assert_eq!(
        (&late["refused"]["status"], &late["refused"]["code"]),
        (&json!(409), &json!("run_finished"))
    );
}

#[test]
fn a_run_goes_on_after_its_end() {
    let mut body = order();
    body["workflow"]["nodes"][2]["max_retries"] = json!(0);
    body["workflow"]["nodes"][0] = json!({"id": "reserve", "action_id": "work"});
    body["mocks"] = json!([
        {"node": "pay", "fail": "bad_request", "times": 1}, {"action": "work", "result": {}},
    ]);
    body["people"] = json!([{"gate": "ask", "choice": "approve"}]);
    body["signals"] = json!([{"name": "shipped"}]);
    let session = open(body);
    let ended = done(json!({"op": "advance", "session": session, "until": "end"}));
    assert_eq!(ended["status"], "failed", "{ended}");
    done(json!({"op": "control", "session": session, "control": "retry", "body": {"mode": "retry_step"}}));
    let ended = done(json!({"op": "advance", "session": session, "until": "end"}));
    assert_eq!(ended["status"], "completed", "{ended}");
}

#[test]
fn a_call_without_a_mock_ends_the_session_which_can_still_be_seen() {
    let mut body = order();
    body["mocks"] = json!([{"node": "reserve", "result": {}}]);
    let session = open(body);
    let decide = json!({"op": "control", "session": session, "control": "gate", "id": "ask", "body": {"choice": "approve"}});
    let (status, message) = refused(decide);
    assert_eq!(status, 422);
    assert!(message.contains("{\"node\":\"pay\""), "{message}");
    let again = refused(json!({"op": "advance", "session": session, "until": "end"}));
    assert_eq!(again, (status, message));
    let view = done(json!({"op": "view", "session": session}));
    assert_eq!(path_of(&view), "reserve completed, ask completed, pay executing");
}

#[test]
fn what_is_no_step_is_refused() {
    let session = open(order());
    for (request, status) in [
        (json!({"op": "advance"}), 404),
        (json!({"op": "advance", "session": "1"}), 404),
        (json!({"op": "advance", "session": session + 1_000, "by": 1}), 404),
        (json!({"op": "advance", "session": session}), 400),
        (json!({"op": "advance", "session": session, "until": "dawn"}), 400),
        (
            json!({"op": "advance", "session": session, "until": "end", "by": 1}),
            400,
        ),
        (json!({"op": "advance", "session": session, "by": -1}), 422),
        (json!({"op": "advance", "session": session, "by": "7d"}), 422),
        (json!({"op": "advance", "session": session, "by": 1e300}), 422),
        (
            json!({"op": "control", "session": session, "control": "explode"}),
            422,
        ),
        (
            json!({"op": "control", "session": session, "control": "gate"}),
            422,
        ),
        (
            json!({"op": "control", "session": session, "control": "signal", "id": "ä"}),
            422,
        ),
        (
            json!({"op": "control", "session": session, "control": "cancel", "body": {"more": 1}}),
            400,
        ),
        (json!({"op": "open", "workflow": {}}), 422),
        (
            json!({"op": "open", "workflow": order()["workflow"], "until": "1h"}),
            422,
        ),
    ] {
        let (found, message) = refused(request.clone());
        assert_eq!(found, status, "{request}: {message}");
        assert!(!message.is_empty(), "{request}");
    }
    // It is as it was.
    let view = done(json!({"op": "view", "session": session}));
    assert_eq!(
        (path_of(&view).as_str(), &view["at_ms"]),
        ("reserve executing", &json!(0))
    );
    // Every deadline is long past.
    let years = |count: u64| json!({"op": "advance", "session": session, "by": count * 365 * 24 * HOUR_MS});
    assert_eq!(done(years(999))["status"], "failed");
    assert_eq!(refused(years(2)).0, 422);
    done(json!({"op": "view", "session": session}));
}

#[test]
fn the_session_that_was_not_used_for_the_longest_time_is_closed() {
    let first = open(order());
    let second = open(order());
    for _ in 0..curfew::simulate::SESSIONS_MAX - 2 {
        open(order());
    }
    done(json!({"op": "view", "session": first}));
    open(order());
    done(json!({"op": "view", "session": first}));
    let (status, message) = refused(json!({"op": "view", "session": second}));
    assert_eq!(status, 404);
    assert!(message.contains("start the run again"), "{message}");
    done(json!({"op": "close", "session": first}));
    assert_eq!(refused(json!({"op": "close", "session": first})).0, 404);
}

#[test]
fn many_seeds_have_the_answers_of_each() {
    let mut body = order();
    body["faults"] = json!({});
    body["people"] = json!([{"gate": "ask", "choice": "approve"}]);
    let mut request = body.clone();
    request["op"] = json!("simulate_seeds");
    request["first_seed"] = json!(20);
    request["seeds"] = json!(10);
    let found = done(request.clone());
    let answers = found["answers"].as_array().expect("a list");
    assert_eq!(answers.len(), 10);
    for (seed, answer) in (20..30).zip(answers) {
        body["seed"] = json!(seed);
        assert_eq!(answer, &json!({"seed": seed, "ok": simulated(body.clone())}));
    }
    request["mocks"] = json!([]);
    let refusal = &done(request.clone())["answers"][0];
    assert_eq!(
        (&refusal["seed"], &refusal["error"]["code"]),
        (&json!(20), &json!("no_mock"))
    );
    for (field, value) in [
        ("seeds", json!(0)),
        ("seeds", json!(100_000)),
        ("seeds", json!(null)),
        ("first_seed", json!(-1)),
    ] {
        let mut wrong = request.clone();
        wrong[field] = value;
        assert_eq!(refused(wrong).0, 422, "{field}");
    }
}
