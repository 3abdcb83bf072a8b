//! Gates, signals and sleeps: what people and senders do, and what never comes.

use serde_json::json;

use super::{chain, path_of, refused, simulated};

const DAY_MS: u64 = 86_400_000;

#[test]
fn a_person_decides_at_a_gate() {
    let workflow = chain(
        json!([{"id": "ask", "gate": {"timeout": "48h", "on_timeout": "reject"}}]),
        json!({"output_mapping": "${state.ask.choice}"}),
    );
    let approved = simulated(
        json!({"workflow": workflow, "people": [{"gate": "ask", "after": "5h", "choice": "approve", "by": "ada"}]}),
    );
    assert_eq!(
        (&approved["run"]["output"], &approved["virtual_ms"]),
        (&json!("approve"), &json!(18_000_000))
    );
    let nobody = simulated(json!({"workflow": workflow}));
    assert_eq!(
        (&nobody["run"]["output"], &nobody["virtual_ms"]),
        (&json!("reject"), &json!(2 * DAY_MS)),
        "{nobody:#}"
    );
    let late = simulated(
        json!({"workflow": workflow, "people": [{"gate": "ask", "after": "49h", "choice": "approve"}]}),
    );
    assert_eq!(late["run"]["output"], "reject");
}

/// The names are those of a start and a decision of the API.
#[test]
fn a_gate_with_four_eyes_compares_who_starts_with_who_decides() {
    let workflow = chain(
        json!([{"id": "ask", "gate": {"four_eyes": true}}]),
        json!({"output_mapping": "${state.ask.by}"}),
    );
    let decided = |starter: &str, decider: &str| {
        json!({
            "workflow": workflow, "by": starter,
            "people": [{"gate": "ask", "choice": "approve", "by": decider}],
        })
    };
    let answer = simulated(decided("ada", "bo"));
    assert_eq!(
        (&answer["run"]["status"], &answer["run"]["output"]),
        (&json!("completed"), &json!("bo"))
    );
    assert_eq!(answer["run"]["started_by"], "ada");
    let (status, code, message) = refused(decided("ada", "ada"));
    assert_eq!((status, code), (422, "invalid_request"));
    assert!(message.contains("four_eyes"), "{message}");
    let (status, _, message) = refused(decided("", "bo"));
    assert_eq!(status, 422);
    assert!(message.contains("1-256 characters"), "{message}");
}

#[test]
fn a_decision_that_the_gate_refuses_is_an_error() {
    let workflow = chain(json!([{"id": "ask", "gate": {}}]), json!({}));
    let (status, code, message) =
        refused(json!({"workflow": workflow, "people": [{"gate": "ask", "choice": "perhaps"}]}));
    assert_eq!((status, code), (422, "invalid_request"));
    assert!(
        message.contains("perhaps") || message.contains("choice"),
        "{message}"
    );
}

#[test]
fn a_run_that_waits_forever_says_for_what() {
    let workflow = chain(json!([{"id": "ask", "gate": {}}]), json!({"timeout": null}));
    let answer = simulated(json!({"workflow": workflow}));
    assert_eq!(answer["run"]["status"], "waiting");
    let wait = &answer["waits_for"][0];
    assert_eq!(
        (&wait["for"], &wait["node_id"]),
        (&json!("decision"), &json!("ask")),
        "{wait}"
    );
    let decided = simulated(json!({"workflow": workflow, "people": [wait["add"]]}));
    assert_eq!(decided["run"]["status"], "completed");

    let workflow = chain(
        json!([{"id": "w", "wait": {"signal": "go"}}]),
        json!({"timeout": null, "output_mapping": "${state.w}"}),
    );
    let answer = simulated(json!({"workflow": workflow}));
    let wait = &answer["waits_for"][0];
    assert_eq!(
        (&wait["for"], &wait["signal"]),
        (&json!("signal"), &json!("go")),
        "{answer:#}"
    );
    let signals = json!([{"name": "go", "at": "3h", "payload": {"n": 1}}]);
    let sent = simulated(json!({"workflow": workflow, "signals": signals}));
    assert_eq!(sent["run"]["status"], "completed", "{sent:#}");
    assert_eq!(sent["virtual_ms"], 10_800_000);
}

#[test]
fn a_call_that_hangs_forever_is_what_the_run_waits_for() {
    for queue in [false, true] {
        let workflow = chain(
            json!([{"id": "a", "action_id": "work", "timeout": null}]),
            json!({"timeout": null}),
        );
        let answer =
            simulated(json!({"workflow": workflow, "queue": queue, "mocks": [{"node": "a", "hang": true}]}));
        assert_eq!(answer["run"]["ended_at"], json!(null), "{answer:#}");
        assert_eq!(answer["waits_for"][0]["for"], "call", "{answer:#}");
    }
}

#[test]
fn a_limit_opens_the_gate_of_the_run() {
    let workflow = chain(
        json!([{"id": "a", "wait": {"sleep": "3h"}}]),
        json!({"timeout": "1h", "on_timeout": "human_gate"}),
    );
    let people = json!([{"gate": "timeout", "after": "10m", "choice": "extend", "input": {"by": "4h"}}]);
    let answer = simulated(json!({"workflow": workflow, "people": people}));
    assert_eq!(answer["run"]["status"], "completed", "{answer:#}");
    assert_eq!(answer["timeouts"].as_array().map(Vec::len), Some(1));
    let nobody = simulated(json!({"workflow": workflow}));
    assert_eq!(nobody["run"]["status"], "timed_out", "{:#}", nobody["run"]);
}

#[test]
fn the_simulation_stops_at_a_moment() {
    let workflow = chain(
        json!([{"id": "a", "wait": {"sleep": "5h"}}, {"id": "b", "wait": {"sleep": "5h"}}]),
        json!({}),
    );
    let answer = simulated(json!({"workflow": workflow, "until": "6h", "start_at": "2026-03-01T00:00:00Z"}));
    assert_eq!(path_of(&answer), "a completed, b suspended");
    assert_eq!(answer["virtual_ms"], 21_600_000);
    assert_eq!(answer["run"]["started_at"], 1_772_323_200_000_u64);
    assert_eq!(answer["waits_for"][0]["for"], "time");
}
