//! Actions of the kinds `mcp_tool` and `shell`.

use curfew::definition::snapshot::DocumentKind;
use serde_json::{Value, json};

use super::documents::expect;

fn action(kind: &str, implementation: Value, expected: &[&str]) {
    expect(
        DocumentKind::Actions,
        json!({"id": "a", "kind": kind, "implementation": implementation}),
        expected,
    );
}

#[test]
fn an_mcp_tool_has_a_server_and_a_name() {
    let whole = json!({"server_url": "https://a.example/${input.path}", "tool": "add",
        "headers": {"authorization": "Bearer ${secret.T}"}, "arguments": {"a": "${state.n}"}});
    action("mcp_tool", whole, &[]);
    action(
        "mcp_tool",
        json!({"server_url": "https://a.example", "tool": "add"}),
        &[],
    );
    action(
        "mcp_tool",
        json!({"url": "https://a.example", "arguments": {"x": "${result}"}}),
        &[
            "/implementation/arguments unknown_name",
            "/implementation/server_url missing_field",
            "/implementation/tool missing_field",
            "/implementation/url unknown_field",
        ],
    );
}

#[test]
fn a_command_has_exactly_one_runner() {
    let whole = json!({"url": "https://runner.example/", "headers": {"authorization": "Bearer ${secret.T}"},
        "command": "make", "args": ["-j", "${input.n}"], "env": {"KEY": "${secret.K}"}, "cwd": "/srv",
        "stdin": "${input.text}", "expect_exit": [0, 2]});
    action("shell", whole, &[]);
    action("shell", json!({"binding": "RUNNER", "command": "true"}), &[]);
    action(
        "shell",
        json!({"command": "true"}),
        &["/implementation/url missing_field"],
    );
    action(
        "shell",
        json!({"binding": "RUNNER", "url": "http://x", "command": "true"}),
        &["/implementation/url both_forms"],
    );
    action(
        "shell",
        json!({"binding": 5}),
        &[
            "/implementation/binding wrong_type",
            "/implementation/command missing_field",
        ],
    );
    for wrong in [json!([]), json!(256), json!(-1), json!("0"), json!([0, 1.5])] {
        action(
            "shell",
            json!({"binding": "RUNNER", "command": "true", "expect_exit": wrong}),
            &["/implementation/expect_exit wrong_type"],
        );
    }
}
