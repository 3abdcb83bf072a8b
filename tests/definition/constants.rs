//! Constants that can only fail are refused when a document is stored. What an expression gives is not known then.

use curfew::definition::problem::Problems;
use curfew::definition::snapshot::DocumentKind;
use serde_json::{Value, json};

use super::documents::expect;

const URL: &str = "https://a.example/";

fn with(mut implementation: Value, more: &Value) -> Value {
    for (name, field) in more.as_object().into_iter().flatten() {
        implementation[name] = field.clone();
    }
    implementation
}

fn least(kind: &str) -> Value {
    match kind {
        "http_request" => json!({"url": URL}),
        "service_call" => json!({"binding": "PEER"}),
        "mcp_tool" => json!({"server_url": URL, "tool": "search"}),
        "shell" => json!({"binding": "RUNNER", "command": "true"}),
        "llm_call" => json!({"provider": "openai", "model": "m", "prompt": "p"}),
        "update_context" => json!({"set": {"x": 1}}),
        other => panic!("{other}"),
    }
}

fn document(kind: &str, more: &Value) -> Value {
    json!({"id": "a", "kind": kind, "implementation": with(least(kind), more)})
}

/// Each expected line is a prefix of `pointer code: message`, below the implementation.
#[track_caller]
fn check(kind: &str, more: Value, expected: &[&str]) {
    let place = |line: &&str| match line.strip_prefix("warning ") {
        Some(line) => format!("warning /implementation{line}"),
        None => format!("/implementation{line}"),
    };
    let lines: Vec<String> = expected.iter().map(place).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expect(DocumentKind::Actions, document(kind, &more), &lines);
}

/// What is refused, with its problem.
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "http_request",
            json!({"url": ""}),
            "/url invalid_url: \"\" is no URL: relative URL without a base; write one like",
        ),
        (
            "http_request",
            json!({"url": 5}),
            "/url wrong_type: expected a URL like \"https://api.example.com/\", found a number",
        ),
        ("http_request", json!({"url": ["${input.x}"]}), "/url wrong_type"),
        (
            "http_request",
            json!({"url": "/x"}),
            "/url invalid_url: \"/x\" is no URL",
        ),
        (
            "http_request",
            json!({"url": "ftp://x/"}),
            "/url invalid_url: \"ftp://x/\" is no URL: ftp is neither http nor https",
        ),
        (
            "http_request",
            json!({"url": "https://u:p@e.example/"}),
            "/url invalid_url: the url holds a user or a password; write an \"authorization\" header instead, with a \"${secret.NAME}\"",
        ),
        (
            "http_request",
            json!({"headers": []}),
            "/headers wrong_type: expected an object of headers, found an array",
        ),
        (
            "http_request",
            json!({"headers": {"a b": "x"}}),
            "/headers/a b invalid_header: this is no name of a header",
        ),
        (
            "http_request",
            json!({"headers": {"Host": "x"}}),
            "/headers/Host invalid_header: \"host\" belongs to the connection",
        ),
        (
            "http_request",
            json!({"headers": {"x": "a\nb"}}),
            "/headers/x invalid_header: the value has a line break",
        ),
        (
            "http_request",
            json!({"query": "a=b"}),
            "/query wrong_type: expected an object, found a string",
        ),
        (
            "http_request",
            json!({"method": 5}),
            "/method wrong_type: expected a method like \"GET\" or \"POST\", found a number",
        ),
        (
            "http_request",
            json!({"method": "GET /"}),
            "/method invalid_method: \"GET /\" is no HTTP method",
        ),
        (
            "http_request",
            json!({"body": {"a": "${input.a}"}}),
            "/body invalid_body: a GET request has no body; write another \"method\", like \"POST\", or leave \"body\" out",
        ),
        (
            "http_request",
            json!({"method": "head", "body": "x"}),
            "/body invalid_body: a HEAD request has no body",
        ),
        (
            "service_call",
            json!({"binding": ""}),
            "/binding invalid_id: \"\" is no name of a binding",
        ),
        ("service_call", json!({"binding": "a b"}), "/binding invalid_id"),
        (
            "service_call",
            json!({"binding": "${input.x}"}),
            "/binding invalid_id",
        ),
        ("service_call", json!({"path": 5}), "/path wrong_type"),
        ("service_call", json!({"method": ""}), "/method invalid_method"),
        (
            "service_call",
            json!({"method": "GET", "body": 1}),
            "/body invalid_body",
        ),
        ("service_call", json!({"headers": "x"}), "/headers wrong_type"),
        ("mcp_tool", json!({"server_url": "x"}), "/server_url invalid_url"),
        ("mcp_tool", json!({"tool": ""}), "/tool wrong_type: it is empty"),
        (
            "mcp_tool",
            json!({"arguments": []}),
            "/arguments wrong_type: expected an object, found an array",
        ),
        ("mcp_tool", json!({"headers": 1}), "/headers wrong_type"),
        (
            "shell",
            json!({"args": "a"}),
            "/args wrong_type: expected a list, found a string",
        ),
        (
            "shell",
            json!({"env": []}),
            "/env wrong_type: expected an object, found an array",
        ),
        (
            "shell",
            json!({"command": ["x"]}),
            "/command wrong_type: expected a string, found an array",
        ),
        ("shell", json!({"cwd": 5}), "/cwd wrong_type: expected a string"),
        ("shell", json!({"binding": ""}), "/binding invalid_id"),
        ("shell", json!({"binding": null, "url": "x"}), "/url invalid_url"),
        (
            "llm_call",
            json!({"base_url": "https://u:p@e.example/"}),
            "/base_url invalid_url: the url holds a user",
        ),
        (
            "llm_call",
            json!({"headers": {"Host": "x"}}),
            "/headers/Host invalid_header",
        ),
        (
            "llm_call",
            json!({"api_key": "sk-live-123"}),
            "/api_key invalid_secret: write \"${secret.NAME}\", and store the key as a secret of the executor",
        ),
        (
            "update_context",
            json!({"set": {"input.x": 1}}),
            "/set/input.x invalid_target: \"input.x\" is not a target: nothing writes to \"input\"; write to state.input.x or output.input.x",
        ),
        (
            "update_context",
            json!({"set": {"secret.y": 2}}),
            "/set/secret.y invalid_target",
        ),
        (
            "update_context",
            json!({"set": {"run": 3}}),
            "/set/run invalid_target: \"run\" is not a target: nothing writes to \"run\"; write to state.run or output.run",
        ),
        (
            "update_context",
            json!({"set": {"now.x": 3}}),
            "/set/now.x invalid_target",
        ),
    ]
}

#[test]
fn what_can_only_fail_is_refused_where_it_stands() {
    for (kind, more, problem) in refused() {
        check(kind, more, &[problem]);
    }
}

/// The key is not in the answer either: it would be in logs then.
#[test]
fn a_key_in_clear_is_not_quoted() {
    let document = document("llm_call", &json!({"api_key": "sk-live-123"}));
    let problems = super::documents::problems_of(DocumentKind::Actions, &document, &Default::default());
    assert!(
        problems
            .iter()
            .all(|problem| !problem.message.contains("sk-live"))
    );
}

#[test]
fn what_may_work_is_accepted() {
    for (kind, more) in [
        (
            "http_request",
            json!({"url": "${input.url}", "method": "${input.method}", "headers": "${input.headers}", "query": "${input.query}"}),
        ),
        (
            "http_request",
            json!({"url": "http://localhost:8080/${input.x}", "headers": {"x": null, "y": "${input.y}"}}),
        ),
        // It may be null.
        ("http_request", json!({"body": "${input.body}"})),
        ("http_request", json!({"method": "PURGE", "body": ""})),
        (
            "http_request",
            json!({"method": "post", "body": [1], "headers": null, "query": null}),
        ),
        (
            "service_call",
            json!({"binding": "my-peer_1", "path": "", "body": 5}),
        ),
        ("service_call", json!({"method": "GET", "body": null})),
        (
            "mcp_tool",
            json!({"server_url": "${secret.MCP_URL}", "tool": "${input.tool}", "arguments": "${input}"}),
        ),
        (
            "shell",
            json!({"args": "${input.args}", "env": "${input.env}", "cwd": "", "stdin": {"a": 1}}),
        ),
        ("llm_call", json!({"api_key": "${secret.KEY}"})),
        ("llm_call", json!({"api_key": "Bearer ${secret.KEY}"})),
        (
            "update_context",
            json!({"set": {"inputs.x": 1, "result": 2, "error.code": 3, "state.input": 4, "output.run": 5}}),
        ),
    ] {
        check(kind, more, &[]);
    }
}

#[test]
fn a_credential_in_clear_is_a_warning() {
    let headers = json!({"headers": {"Authorization": "Bearer abc", "x-api-key": 5, "x-team": "a"}});
    for kind in ["http_request", "service_call", "mcp_tool", "shell", "llm_call"] {
        check(
            kind,
            headers.clone(),
            &[
                "warning /headers/Authorization secret_in_clear: the value stands in clear in the document",
                "warning /headers/x-api-key secret_in_clear",
            ],
        );
        let kept = json!({"headers": {"authorization": "Bearer ${secret.T}", "x-api-key": "${input.key}"}});
        check(kind, kept, &[]);
    }
}

/// Runs of documents that an earlier build stored go on.
#[test]
fn what_is_stored_already_can_still_be_read() {
    for (kind, more, _) in refused() {
        let problems = Problems::prechecked();
        let action = curfew::definition::action::Action::read(&document(kind, &more), "", true, &problems);
        assert!(
            action.is_some() && !problems.has_errors(),
            "{kind} {more}: {problems:?}"
        );
    }
}

/// Steps write with the same targets.
#[test]
fn a_step_writes_to_its_state_and_output_only() {
    let task = |mapping: Value| {
        let action = json!({"kind": "service_call", "implementation": {"binding": "PEER"}});
        json!({"id": "t", "steps": [{"action": action, "output_mapping": mapping}]})
    };
    expect(
        DocumentKind::Tasks,
        task(json!({"input.x": "${result}", "state.x": "${result}", "y": 1})),
        &["/steps/0/output_mapping/input.x invalid_target"],
    );
}
