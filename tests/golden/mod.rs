//! Golden files: formats that are stored in runs or sent between Workers that are deployed independently. A changed file is
//! a changed format. `CURFEW_BLESS=1 cargo test golden` rewrites them.

mod graph;
mod index;
mod notifications;
mod older;
mod queue;
mod recovery;
mod rows;
mod run_requests;
mod time;
mod traces;
mod wire;

use std::path::PathBuf;

use serde_json::Value;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}; see CURFEW_BLESS"))
}

#[track_caller]
fn check(name: &str, text: &str) {
    if std::env::var_os("CURFEW_BLESS").is_some() {
        std::fs::write(path(name), text).expect("a golden file can be written");
    }
    let expected = read(name);
    assert!(
        expected == text,
        "{name} says\n{expected}\nbut this build makes\n{text}"
    );
}

#[track_caller]
pub fn check_json(name: &str, value: &Value) {
    check(name, &format!("{value:#}\n"));
}
