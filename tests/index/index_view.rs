//! The views of a run and its gates fit a queue message, however large their values are.

use curfew::base::failure::{Failure, FailureClass};
use curfew::index::batch::MESSAGE_BYTES;
use curfew::index::index_view::{self, GATE_BYTES};
use curfew::index::run_summary::{ProbeResponse, RunSummary};
use curfew::run::Settings;
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn at_gate(gate: Value, input: Value) -> Driver {
    let document = json!({"nodes": [{"id": "ask", "gate": gate}]});
    Driver::start_with(Settings::default(), document, input)
}

fn gate_view(run: &Driver) -> Value {
    let gate = run.run.gates().next().expect("the run waits at a gate");
    index_view::gate(&run.run.header.id, gate, GATE_BYTES)
}

#[test]
fn a_small_gate_is_not_truncated() {
    let prompt = "x".repeat(12_000);
    let run = at_gate(json!({"prompt": "${input.text}"}), json!({"text": prompt}));
    let view = gate_view(&run);
    assert_eq!(view["prompt"], json!(prompt));
    assert_eq!(view.get("truncated"), None);
}

#[test]
fn a_long_prompt_is_truncated_and_marked() {
    for text in [
        "x".repeat(150_000),
        "\u{1}\"\\".repeat(20_000),
        "ß𝔸".repeat(30_000),
    ] {
        let run = at_gate(json!({"prompt": "${input.text}"}), json!({"text": text}));
        let view = gate_view(&run);
        let bytes = view.to_string().len();
        assert!(bytes <= GATE_BYTES + 20, "{bytes}");
        assert!(bytes + 100 >= GATE_BYTES, "{bytes}");
        assert_eq!(view["truncated"], true);
        let prompt = view["prompt"].as_str().expect("a text");
        assert!(prompt.ends_with(&format!("… [cut, {} bytes in all]", text.len())));
        assert_eq!((&view["id"], &view["status"]), (&json!("g1"), &json!("open")));
    }
}

#[test]
fn json_prompts_long_schemas_and_many_choices_are_truncated() {
    let choices: Vec<String> = (0..2_000)
        .map(|number| format!("choice number {number}"))
        .collect();
    let gate = json!({
        "prompt": "${input}",
        "choices": choices,
        "input_schema": {"type": "object", "description": "y".repeat(80_000)},
    });
    let run = at_gate(gate, json!({"rows": vec!["z"; 20_000]}));
    let view = gate_view(&run);
    let bytes = view.to_string().len();
    assert!(bytes <= GATE_BYTES + 20, "{bytes}");
    assert!(
        view["prompt"]
            .as_str()
            .is_some_and(|text| text.starts_with(r#"{"rows":["z","#))
    );
    let choices = view["choices"].as_array().expect("a list");
    assert!(choices.len() > 50 && choices.len() < 2_000);
    assert_eq!(choices[0], "choice number 0");
    assert!(
        view["input_schema"]["$comment"]
            .as_str()
            .is_some_and(|text| text.starts_with("cut, 8"))
    );
    assert_eq!(view["truncated"], true);
}

#[test]
fn a_large_decision_is_truncated() {
    let mut run = at_gate(json!({"choices": ["yes"]}), json!({}));
    let mut gate = run.run.gates().next().expect("a gate").clone();
    run.decide("g1", "yes");
    gate.decision = Some(
        serde_json::from_value(json!({
            "choice": "yes", "input": {"text": "x".repeat(400_000)}, "comment": "y".repeat(400_000), "by": "z".repeat(400_000),
        }))
        .expect("a decision"),
    );
    let view = index_view::gate("r", &gate, GATE_BYTES);
    assert!(view.to_string().len() <= GATE_BYTES, "{}", view.to_string().len());
    assert_eq!(
        (&view["truncated"], &view["decision"]["choice"]),
        (&json!(true), &json!("yes"))
    );
}

#[test]
fn a_run_with_a_long_error_fits_a_message() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    let whole = RunSummary::of(&run.run, run.now);
    assert_eq!(whole.summary.get("truncated"), None);
    let mut failure = Failure::new(&"c".repeat(300_000), FailureClass::Unknown, "m".repeat(300_000));
    failure.step_ref = Some("\u{0}".repeat(300_000));
    run.run.header.error = Some(failure);
    run.run.header.tags = (0..20).map(|_| "\u{0}".repeat(64)).collect();
    let summary = RunSummary::of(&run.run, run.now);
    assert!(
        json!(summary).to_string().len() <= 20_000,
        "{}",
        json!(summary).to_string().len()
    );
    assert_eq!(summary.summary["truncated"], true);
    assert_eq!(
        summary.summary["tags"].as_array().map(Vec::len),
        Some(20),
        "tags are filters and are not truncated"
    );
    let message = summary.summary["error"]["message"].as_str().expect("a message");
    assert!(message.len() > 3_000 && message.ends_with("… [cut, 300000 bytes in all]"));
}

#[test]
fn a_probe_response_is_bounded_for_any_number_of_gates() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "gate": {"prompt": "${input.text}"}}, {"id": "c"}],
        "transitions": [
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "spawn_count": 150},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each"}},
        ],
    });
    let run = Driver::start_with(Settings::default(), document, json!({"text": "x".repeat(5_000)}));
    let response = ProbeResponse::of(&run.run, RunSummary::of(&run.run, run.now));
    assert_eq!(response.gates.len(), 100);
    assert!(
        json!(response).to_string().len() <= 2 * MESSAGE_BYTES,
        "{}",
        json!(response).to_string().len()
    );
    assert!(response.gates.iter().all(|gate| gate["truncated"] == true));
}
