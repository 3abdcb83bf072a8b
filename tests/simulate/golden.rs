//! One simulation with everything in it, pinned: natively, in the engine's wasm and in workerd it has the same answer.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::simulated;

#[test]
fn the_answer_is_pinned() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/simulation.json");
    let text = fs::read_to_string(&path).expect("the golden file");
    let golden: Value = serde_json::from_str(&text).expect("JSON");
    let request = golden["request"].clone();
    let answer = simulated(request.clone());
    if std::env::var_os("CURFEW_BLESS").is_some() {
        let text = format!("{:#}\n", json!({"request": request, "answer": answer}));
        fs::write(path, text).expect("the golden file can be written");
        return;
    }
    assert_eq!(answer, golden["answer"]);
}
