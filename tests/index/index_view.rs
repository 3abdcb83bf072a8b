//! Whatever a run holds, what the index is told of it fits into a message.

use curfew::base::failure::{Failure, FailureClass};
use curfew::index::batch::LETTER_BYTES;
use curfew::index::index_view::{self, GATE_BYTES};
use curfew::index::run_summary::{ProbeResponse, RunSummary};
use curfew::run::Settings;
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn at_gate(gate: Value, input: Value) -> Driver {
    let document = json!({"nodes": [{"id": "ask", "gate": gate}]});
    Driver::start_with(Settings::default(), document, input)
}

fn shown(run: &Driver) -> Value {
    let gate = run.run.gates().next().expect("it stands at a gate");
    index_view::gate(&run.run.header.id, gate, GATE_BYTES)
}

#[test]
fn a_gate_that_fits_is_told_as_it_is() {
    let prompt = "x".repeat(12_000);
    let run = at_gate(json!({"prompt": "${input.text}"}), json!({"text": prompt}));
    let view = shown(&run);
    assert_eq!(view["prompt"], json!(prompt));
    assert_eq!(view.get("truncated"), None);
}

#[test]
fn a_long_prompt_is_cut_and_says_so() {
    for text in [
        "x".repeat(150_000),
        "\u{1}\"\\".repeat(20_000),
        "ß𝔸".repeat(30_000),
    ] {
        let run = at_gate(json!({"prompt": "${input.text}"}), json!({"text": text}));
        let view = shown(&run);
        assert!(
            view.to_string().len() <= GATE_BYTES + 20,
            "{}",
            view.to_string().len()
        );
        assert!(
            view.to_string().len() + 100 >= GATE_BYTES,
            "{}",
            view.to_string().len()
        );
        assert_eq!(view["truncated"], true);
        let prompt = view["prompt"].as_str().expect("a text stays one");
        assert!(prompt.ends_with(&format!("… [cut, {} bytes in all]", text.len())));
        assert_eq!((&view["id"], &view["status"]), (&json!("g1"), &json!("open")));
    }
}

#[test]
fn a_prompt_that_is_no_text_a_long_schema_and_many_choices_are_cut_too() {
    let choices: Vec<String> = (0..2_000)
        .map(|number| format!("choice number {number}"))
        .collect();
    let gate = json!({
        "prompt": "${input}",
        "choices": choices,
        "input_schema": {"type": "object", "description": "y".repeat(80_000)},
    });
    let run = at_gate(gate, json!({"rows": vec!["z"; 20_000]}));
    let view = shown(&run);
    assert!(
        view.to_string().len() <= GATE_BYTES + 20,
        "{}",
        view.to_string().len()
    );
    assert!(
        view["prompt"]
            .as_str()
            .is_some_and(|text| text.starts_with(r#"{"rows":["z","#))
    );
    let kept = view["choices"].as_array().expect("choices stay a list");
    assert!(kept.len() > 50 && kept.len() < 2_000);
    assert_eq!(kept[0], "choice number 0");
    assert!(
        view["input_schema"]["$comment"]
            .as_str()
            .is_some_and(|text| text.starts_with("cut, 8"))
    );
    assert_eq!(view["truncated"], true);
}

#[test]
fn a_decision_with_much_in_it_is_cut() {
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
fn a_run_with_a_long_error_is_told_in_one_message() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    let whole = RunSummary::of(&run.run, run.now);
    assert_eq!(whole.summary.get("truncated"), None);
    let mut failure = Failure::new(&"c".repeat(300_000), FailureClass::Unknown, "m".repeat(300_000));
    failure.step_ref = Some("\u{0}".repeat(300_000));
    run.run.header.error = Some(failure);
    run.run.header.tags = (0..20).map(|_| "\u{0}".repeat(64)).collect();
    let told = RunSummary::of(&run.run, run.now);
    assert!(
        json!(told).to_string().len() <= 20_000,
        "{}",
        json!(told).to_string().len()
    );
    assert_eq!(told.summary["truncated"], true);
    assert_eq!(
        told.summary["tags"].as_array().map(Vec::len),
        Some(20),
        "what is filtered by is whole"
    );
    let message = told.summary["error"]["message"].as_str().expect("a message");
    assert!(message.len() > 3_000 && message.ends_with("… [cut, 300000 bytes in all]"));
}

#[test]
fn an_answer_to_the_sweep_is_bounded_however_many_gates_there_are() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "gate": {"prompt": "${input.text}"}}, {"id": "c"}],
        "transitions": [
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "spawn_count": 150},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each"}},
        ],
    });
    let run = Driver::start_with(Settings::default(), document, json!({"text": "x".repeat(5_000)}));
    let rung = ProbeResponse::of(&run.run, run.now);
    assert_eq!(rung.gates.len(), 100);
    assert!(
        json!(rung).to_string().len() <= 2 * LETTER_BYTES,
        "{}",
        json!(rung).to_string().len()
    );
    assert!(rung.gates.iter().all(|gate| gate["truncated"] == true));
}
