//! Actions of kind `llm_call`: valid documents, and every problem with its pointer.

use curfew::definition::snapshot::DocumentKind;
use curfew::definition::timeouts::{Preset, TimeoutRules};
use serde_json::{Value, json};

use super::documents::{expect, expect_under};

/// An action with a provider, a model and a prompt, and these fields. A null removes a field.
fn action(more: Value) -> Value {
    let mut implementation = json!({"provider": "openai", "model": "m", "prompt": "Hi"});
    for (field, value) in more.as_object().into_iter().flatten() {
        implementation[field] = value.clone();
    }
    json!({"id": "a", "kind": "llm_call", "implementation": implementation})
}

#[track_caller]
fn check(more: Value, problems: &[&str]) {
    let problems: Vec<String> = problems
        .iter()
        .map(|line| format!("/implementation{line}"))
        .collect();
    let problems: Vec<&str> = problems.iter().map(String::as_str).collect();
    expect(DocumentKind::Actions, action(more), &problems);
}

#[test]
fn valid_calls_are_accepted() {
    for more in [
        json!({}),
        json!({"provider": "anthropic", "system": "be kind", "base_url": "http://127.0.0.1:8080/x"}),
        json!({"provider": "workers_ai", "model": "@cf/meta/llama"}),
        json!({"base_url": "https://a.example/${input.path}", "model": "${input.model}", "prompt": "${state.text}: ${output.x}",
            "api_key": "${secret.KEY}", "headers": {"x-a": "${secret.OTHER}"}, "max_tokens": "${input.n}",
            "temperature": "${input.t}", "top_p": "${input.p}", "stop": "${input.stop}", "tools": "${input.tools}",
            "tool_choice": "${input.choice}"}),
        json!({"base_url": "${input.url}"}),
        json!({"prompt": null, "messages": "${input.messages}"}),
        json!({"prompt": null, "messages": [{"role": "system", "content": "a"}, "${input.message}",
            {"role": "${input.role}", "content": ["${input.part}"]},
            {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "1", "content": {"any": 1}}, {"role": "developer", "content": "x"}]}),
        json!({"max_tokens": 1, "temperature": 2, "top_p": 0.5, "stop": ["a", "b"], "tool_choice": "required",
            "tools": [{"name": "f", "parameters": {"type": "object"}}, "${input.tool}"]}),
        json!({"tool_choice": {"name": "f"}, "stop": "END"}),
        json!({"response_format": {"type": "text"}}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"response_format": {"type": "json_schema", "schema": {"type": "object"}}}),
    ] {
        check(more, &[]);
    }
}

#[test]
fn missing_and_unknown_fields_are_reported() {
    expect(
        DocumentKind::Actions,
        json!({"id": "a", "kind": "llm_call", "implementation": {}}),
        &[
            "/implementation/model missing_field: \"model\" is required",
            "/implementation/prompt missing_field: \"prompt\" (a text) or \"messages\"",
            "/implementation/provider missing_field: \"provider\" is required",
        ],
    );
    check(
        json!({"provider": "clippy", "promt": "x"}),
        &[
            "/promt unknown_field: unknown field; did you mean \"prompt\"?",
            "/provider invalid_choice: \"clippy\" is none of openai, anthropic, workers_ai",
        ],
    );
    check(
        json!({"messages": [{"role": "user", "content": "x"}]}),
        &["/prompt both_forms: write either \"prompt\" or \"messages\", not both"],
    );
}

#[test]
fn constant_fields_are_type_checked() {
    for (more, problem) in [
        (
            json!({"model": 5}),
            "/model wrong_type: expected a string, found a number",
        ),
        (json!({"model": ""}), "/model wrong_type: it is empty"),
        (
            json!({"prompt": ["x"]}),
            "/prompt wrong_type: expected a string, found an array",
        ),
        (
            json!({"system": {}}),
            "/system wrong_type: expected a string, found an object",
        ),
        (json!({"api_key": 1}), "/api_key wrong_type: expected a string"),
        (
            json!({"headers": "x"}),
            "/headers wrong_type: expected an object of headers, found a string",
        ),
        (
            json!({"base_url": "nowhere"}),
            "/base_url invalid_url: \"nowhere\" is no URL: relative URL",
        ),
        (
            json!({"base_url": "ftp://a/"}),
            "/base_url invalid_url: \"ftp://a/\" is no URL: ftp is neither",
        ),
        (
            json!({"base_url": 7}),
            "/base_url wrong_type: expected a URL like",
        ),
        (
            json!({"max_tokens": 0}),
            "/max_tokens out_of_range: 0 is less than 1",
        ),
        (
            json!({"max_tokens": 1.5}),
            "/max_tokens wrong_type: expected a whole number, found a number",
        ),
        (
            json!({"max_tokens": "many"}),
            "/max_tokens wrong_type: expected a whole number, found a string",
        ),
        (
            json!({"temperature": 2.1}),
            "/temperature out_of_range: 2.1 is outside 0 to 2",
        ),
        (
            json!({"temperature": "hot"}),
            "/temperature wrong_type: expected a number, found a string",
        ),
        (
            json!({"top_p": -0.1}),
            "/top_p out_of_range: -0.1 is outside 0 to 1",
        ),
        (
            json!({"top_p": true}),
            "/top_p wrong_type: expected a number, found a boolean",
        ),
        (
            json!({"stop": [1]}),
            "/stop wrong_type: expected a string or a list of strings",
        ),
        (
            json!({"stop": {}}),
            "/stop wrong_type: expected a string or a list of strings, found an object",
        ),
        (
            json!({"tools": {}}),
            "/tools wrong_type: expected a list of {name, description, parameters}",
        ),
        (
            json!({"tools": [{"name": "f"}, 5]}),
            "/tools/1 wrong_type: expected an object",
        ),
        (json!({"tools": ["f"]}), "/tools/0 wrong_type: expected an object"),
        (
            json!({"tool_choice": "any"}),
            "/tool_choice invalid_choice: \"any\" is none of auto, none, required;",
        ),
        (
            json!({"tool_choice": 1}),
            "/tool_choice wrong_type: expected a word or",
        ),
        (
            json!({"prompt": "${inptu.x}"}),
            "/prompt unknown_name: \"inptu\" is not a name here",
        ),
        (json!({"prompt": "${1 +}"}), "/prompt invalid_expression"),
        (
            json!({"api_key": "${secret['K' + 'EY']}"}),
            "/api_key invalid_secret",
        ),
        (json!({"tools": [{"name": "${f}"}]}), "/tools unknown_name"),
    ] {
        check(more, &[problem]);
    }
}

#[test]
fn messages_have_a_role() {
    let said =
        |messages: Value, problems: &[&str]| check(json!({"prompt": null, "messages": messages}), problems);
    said(json!([]), &["/messages out_of_range: there is no message in it"]);
    said(
        json!("Hi"),
        &["/messages wrong_type: expected a list of {role, content}, found a string"],
    );
    said(
        json!({"role": "user"}),
        &["/messages wrong_type: expected a list of {role, content}, found an object"],
    );
    said(
        json!([{"role": "user", "content": "x"}, "words", {"content": "x"}, {"role": "robot", "content": "x"},
            {"role": 5, "content": "x"}, {"role": "user"}]),
        &[
            "/messages/1 wrong_type: expected an object {role, content}, found a string",
            "/messages/2/role missing_field: \"role\" is required",
            "/messages/3/role invalid_choice: \"robot\" is none of system, developer, user, assistant, tool",
            "/messages/4/role wrong_type: expected a string, found a number",
            "/messages/5/content missing_field: \"content\" is required",
        ],
    );
}

#[test]
fn response_formats_are_checked() {
    for (format, problems) in [
        (
            json!("json"),
            vec!["/response_format wrong_type: expected an object, found a string"],
        ),
        (
            json!({}),
            vec!["/response_format/type missing_field: \"type\" is required"],
        ),
        (
            json!({"type": "xml"}),
            vec!["/response_format/type invalid_choice: \"xml\" is none of text, json_object, json_schema"],
        ),
        (
            json!({"type": "json_schema"}),
            vec!["/response_format/schema missing_field: \"schema\" is required"],
        ),
        (
            json!({"type": "json_schema", "schema": {"type": "objekt"}}),
            vec!["/response_format/schema/type invalid_schema"],
        ),
        (
            json!({"type": "json_object", "schema": {}}),
            vec!["/response_format/schema unsupported: a schema goes with \"type\": \"json_schema\""],
        ),
        (
            json!({"type": "text", "strict": true}),
            vec!["/response_format/strict unknown_field"],
        ),
    ] {
        check(json!({"response_format": format}), &problems);
    }
}

#[test]
fn workers_ai_has_no_url_and_no_key() {
    check(
        json!({"provider": "workers_ai", "base_url": "https://x.example", "api_key": "k", "headers": {}}),
        &[
            "/api_key unsupported: workers_ai is called through the executor's binding AI",
            "/base_url unsupported: workers_ai is called",
            "/headers unsupported: workers_ai is called",
        ],
    );
}

#[test]
fn hard_limits_are_those_of_llm_calls() {
    let rules = TimeoutRules {
        preset: Preset::Flow,
        ..TimeoutRules::default()
    };
    let judged = |timeout: &str, problems: &[&str]| {
        let mut step = json!({"ref": "s", "action": action(json!({}))});
        step["action"]["execution"] = json!({"timeout": timeout});
        let task = json!({"id": "t", "steps": [step]});
        let library = curfew::definition::snapshot::Library::new();
        expect_under(&rules, DocumentKind::Tasks, task, &library, problems);
    };
    judged("3m", &[]);
    judged(
        "3m1s",
        &[
            "/steps/0/action/execution/timeout over_hard_limit: 3m1s is over the hard limit of 3m0s for a llm_call",
        ],
    );
}
