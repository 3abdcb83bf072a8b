//! What an export has, and which ones are refused.

use curfew::replay::{Page, Parts, export_text, from_version};
use serde_json::{Value, json};

use super::{recorded, try_what_if};
use crate::simulate::chain;

fn small() -> Value {
    recorded(json!({"workflow": chain(json!([{"id": "a"}]), json!({}))}))
}

#[track_caller]
fn refused(export: &Value) -> (&'static str, String, String) {
    let error = try_what_if(export, json!({})).expect_err("it is refused");
    (error.code, error.pointer.unwrap_or_default(), error.message)
}

#[test]
fn an_export_that_cannot_be_played_says_why() {
    for (field, value, code, pointer, message) in [
        (
            "format",
            json!("curfew-export/9"),
            "invalid_request",
            "/format",
            "no export of a run",
        ),
        (
            "redacted",
            json!(true),
            "invalid_request",
            "/redacted",
            "without `redact`",
        ),
        (
            "events",
            json!([]),
            "not_replayable",
            "",
            "does not have its beginning",
        ),
        ("run", json!({"id": 7}), "invalid_request", "", "cannot be read"),
        (
            "snapshot",
            json!({"version": 1, "workflow": {}, "tasks": [], "node_tasks": []}),
            "invalid_request",
            "/snapshot",
            "cannot be read",
        ),
    ] {
        let mut export = small();
        export[field] = value;
        let (found, at, text) = refused(&export);
        assert_eq!((found, at.as_str()), (code, pointer), "{field}: {text}");
        assert!(text.contains(message), "{text}");
    }
    for export in [json!(null), json!([]), json!({}), json!("text")] {
        assert_eq!(refused(&export).0, "invalid_request");
    }
}

#[test]
fn another_version_is_asked_of_the_server() {
    let error = try_what_if(&small(), json!({"version": 9})).expect_err("it is refused");
    assert_eq!(error.pointer.as_deref(), Some("/version"));
    let own = try_what_if(&small(), json!({"version": 1})).expect("its own version");
    assert_eq!(own["differences"], json!([]));
    let unknown = try_what_if(&small(), json!({"verson": 1})).expect_err("it is refused");
    assert_eq!(
        (unknown.status, unknown.pointer.as_deref()),
        (400, Some("/verson"))
    );
}

#[test]
fn a_change_that_makes_an_invalid_document_is_refused_at_the_place_in_the_document() {
    let changes = json!([{"op": "add", "path": "/nodes/0/timeout", "value": "soon"}]);
    let error = try_what_if(&small(), json!({"changes": changes})).expect_err("it is refused");
    assert_eq!(
        (error.code, error.pointer.as_deref()),
        ("invalid_document", Some("/nodes/0/timeout"))
    );
}

#[test]
fn a_run_that_went_on_with_another_version_needs_both() {
    let mut export = small();
    let events = export["events"].as_array_mut().expect("events");
    let last = events.len() as u64 + 10;
    events.push(json!({"seq": last, "at": 0, "kind": "run_retried", "mode": "retry_step", "from_version": 4, "version": 1}));
    let (code, _, message) = refused(&export);
    assert_eq!(code, "not_replayable");
    assert!(message.contains("version 4"), "{message}");
    assert_eq!(from_version(&json!({"from_version": 4}).to_string()), Some(4));
    assert_eq!(from_version(r#"{"reason": "\"from_version\""}"#), None);
}

/// A recording as an object answers it, with a text in every field that holds data.
fn parts() -> Parts {
    let mut parts = Parts::default();
    let recording = json!({
        "run": {"id": "r", "input": "secret", "output": "secret", "context": {"state": "secret"}, "reason": "secret", "error": {"message": "it failed"}},
        "start": {"request": {}},
        "snapshot": {"workflow": {"input": "of a document"}},
        "settings": {},
        "gates": [{"id": "g1", "prompt": "secret", "decision": {"choice": "approve", "input": "secret", "comment": "secret"}}],
        "signals": {"go": ["secret"]},
    });
    parts.add_recording(recording.to_string());
    let tokens = json!({"items": [{"id": "t1", "output": {"deep": "secret"}, "branch": {"item": "secret"}}], "next_cursor": null}).to_string();
    let page: Page = serde_json::from_str(&tokens).expect("a page");
    parts.add_page("tokens", &page).expect("it is small");
    parts.add_page("tokens", &page).expect("it is small");
    parts
}

#[test]
fn values_are_left_out_if_asked_for_and_documents_stay() {
    let text = export_text(&parts(), true).expect("JSON");
    assert!(!text.contains("secret"), "{text}");
    let export: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(export["redacted"], true);
    assert_eq!(export["snapshot"]["workflow"]["input"], "of a document");
    assert_eq!(export["gates"][0]["decision"]["choice"], "approve");
    assert_eq!(export["run"]["error"]["message"], "it failed");
    let whole: Value = serde_json::from_str(&export_text(&parts(), false).expect("JSON")).expect("JSON");
    assert_eq!(
        whole["tokens"].as_array().map(Vec::len),
        Some(2),
        "pages follow each other"
    );
    assert_eq!(whole["signals"]["go"][0], "secret");
}

#[test]
fn a_history_that_is_too_long_is_refused() {
    let mut parts = parts();
    let item = json!({"items": [{"output": "x".repeat(1 << 20)}], "next_cursor": null}).to_string();
    let page: Page = serde_json::from_str(&item).expect("a page");
    let refused = (0..20).find_map(|_| parts.add_page("tokens", &page).err());
    let refused = refused.expect("16 MiB are the most");
    assert_eq!((refused.status, refused.code), (422, "limit_exceeded"));
}
