//! The requests to all providers for the same document.

use curfew::base::failure::Failure;
use curfew::cel::Scope;
use curfew::definition::action::{Action, ActionKind};
use curfew::definition::llm::LlmCall;
use curfew::definition::step::StepAction;
use curfew::definition::task::Task;
use curfew::task::llm::request::{self, LlmRequest};
use curfew::task::runtime::ActionCall;
use curfew::task::secrets::{CallSecrets, SecretStore};
use curfew::task::task_cache::TaskCache;
use curfew::task::trace::CallNotes;
use serde_json::{Value, json};

use super::fake_runtime::with;

/// An `llm_call` as the executor reads it.
pub fn read(implementation: Value) -> std::rc::Rc<Task> {
    let step = json!({"ref": "a", "action": {"kind": "llm_call", "implementation": implementation}});
    let text = json!({"id": "t", "steps": [step]}).to_string();
    TaskCache::default().task(&text).expect("the task can be read")
}

pub fn action_of(task: &Task) -> (&Action, &LlmCall) {
    let StepAction::Inline(action) = &task.steps[0].action else {
        panic!("it is written inline");
    };
    let ActionKind::LlmCall(llm) = &action.kind else {
        panic!("it asks a model");
    };
    (action, llm)
}

fn request(implementation: Value, input: Value) -> Result<LlmRequest, Failure> {
    let task = read(implementation);
    let (action, llm) = action_of(&task);
    let (empty, secret) = (json!({}), json!({"KEY": "sk-123"}));
    let mut scope = Scope::new();
    scope
        .bind("input", &input)
        .bind("state", &empty)
        .bind("output", &empty)
        .bind("secret", &secret);
    let call = ActionCall {
        action,
        scope: &scope,
        input: &input,
        deadline_at: None,
        step_ref: "a",
        rounds_before: 0,
        callback_url: None,
        traceparent: None,
        notes: &CallNotes::default(),
        secrets: CallSecrets {
            store: &SecretStore::default(),
            action,
            task: &task,
        },
    };
    request::of(llm, &call, "key").map(|(request, _)| request)
}

/// The address and headers in a line, and the body.
#[track_caller]
fn sent(implementation: Value, input: Value) -> (String, Value) {
    match request(implementation, input).expect("it can be sent") {
        LlmRequest::Http(outgoing) => {
            let headers = outgoing.headers.iter();
            let headers: Vec<_> = headers.map(|(name, value)| format!("{name}={value}")).collect();
            let line = format!("{} {} [{}]", outgoing.method, outgoing.url, headers.join("; "));
            let body = serde_json::from_str(&outgoing.body.expect("it has a body"));
            (line, body.expect("the body is JSON"))
        }
        LlmRequest::Binding { model, inputs } => (format!("AI {model}"), inputs),
    }
}

#[track_caller]
fn refused(implementation: Value, input: Value) -> String {
    let failure = request(implementation, input).expect_err("it cannot be sent");
    format!("{}/{:?}: {}", failure.code, failure.class, failure.message)
}

fn schema() -> Value {
    json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
}

/// Every field that a document may have.
fn full(provider: &str) -> Value {
    json!({
        "provider": provider, "model": "m-${input.size}", "system": "Be ${input.mood}.",
        "messages": [
            {"role": "system", "content": "Also: brief."},
            {"role": "user", "content": "${input.question}"},
            {"role": "assistant", "content": "I will look.", "tool_calls": [{"id": "c1", "name": "look", "arguments": {"at": 1}}]},
            {"role": "tool", "tool_call_id": "c1", "content": {"found": true}},
            {"role": "user", "content": [{"type": "text", "text": "and?"}]},
        ],
        "max_tokens": 100, "temperature": 0.5, "top_p": "${input.p}", "stop": "END",
        "tools": [
            {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}},
            {"type": "function", "function": {"name": "go"}},
        ],
        "tool_choice": {"name": "look"},
        "response_format": {"type": "json_schema", "schema": schema()},
    })
}

fn input() -> Value {
    json!({"size": "small", "mood": "kind", "question": "why?", "p": 0.9})
}

/// The request to a provider with OpenAI's API.
fn chat() -> Value {
    json!({
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "system", "content": "Also: brief."},
            {"role": "user", "content": "why?"},
            {"role": "assistant", "content": "I will look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{\"found\":true}"},
            {"role": "user", "content": [{"type": "text", "text": "and?"}]},
        ],
        "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ["END"],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "looks",
                "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}},
            {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    })
}

#[test]
fn openai() {
    let own =
        json!({"base_url": "http://llm.example/v1/", "api_key": "${secret.KEY}", "headers": {"X-Org": "o"}});
    let (line, body) = sent(with(full("openai"), own), input());
    assert_eq!(
        line,
        "POST http://llm.example/v1/chat/completions \
         [content-type=application/json; idempotency-key=key; authorization=Bearer sk-123; x-org=o]"
    );
    let more = json!({
        "model": "m-small", "stream": true, "stream_options": {"include_usage": true},
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema()}},
    });
    assert_eq!(body, with(chat(), more));
}

#[test]
fn openai_has_another_name_for_the_limit() {
    let (line, body) = sent(
        json!({"provider": "openai", "model": "m", "prompt": "Hi", "max_tokens": 5, "response_format": {"type": "json_object"}}),
        json!({}),
    );
    assert!(
        line.starts_with("POST https://api.openai.com/v1/chat/completions [content-type"),
        "{line}"
    );
    assert!(!line.contains("authorization"), "{line}");
    assert_eq!(
        body,
        json!({
            "model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 5,
            "response_format": {"type": "json_object"}, "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn anthropic() {
    let (line, body) = sent(
        with(full("anthropic"), json!({"api_key": "${secret.KEY}"})),
        input(),
    );
    assert_eq!(
        line,
        "POST https://api.anthropic.com/v1/messages \
         [content-type=application/json; idempotency-key=key; anthropic-version=2023-06-01; x-api-key=sk-123]"
    );
    let asked = format!(
        "Be kind.\n\nAlso: brief.\n\nAnswer with one JSON value and nothing else: no words around it and no code \
         fence. It must fit this JSON Schema:\n{}",
        schema()
    );
    assert_eq!(
        body,
        json!({
            "model": "m-small", "system": asked, "stream": true,
            "messages": [
                {"role": "user", "content": "why?"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I will look."},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "{\"found\":true}"}]},
                {"role": "user", "content": [{"type": "text", "text": "and?"}]},
            ],
            "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"],
            "tools": [
                {"name": "look", "description": "looks",
                    "input_schema": {"type": "object", "properties": {"at": {"type": "integer"}}}},
                {"name": "go", "input_schema": {"type": "object", "properties": {}}},
            ],
            "tool_choice": {"type": "tool", "name": "look"},
        })
    );
}

#[test]
fn anthropic_needs_a_limit_and_its_version_may_change() {
    let (line, body) = sent(
        json!({"provider": "anthropic", "model": "m", "prompt": "Hi", "base_url": "https://gate.example/anthropic/v1?team=a",
            "headers": {"anthropic-version": "2030-01-01", "authorization": "Bearer x"}, "api_key": "${input.none}"}),
        json!({"none": null}),
    );
    assert_eq!(
        line,
        "POST https://gate.example/anthropic/v1/messages?team=a \
         [content-type=application/json; idempotency-key=key; anthropic-version=2030-01-01; authorization=Bearer x]"
    );
    assert_eq!(
        body,
        json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": "Hi"}], "stream": true})
    );
}

#[test]
fn workers_ai() {
    let (line, body) = sent(full("workers_ai"), input());
    assert_eq!(line, "AI m-small");
    // A response with a response_format is not streamed.
    let more = json!({"stream": false, "response_format": {"type": "json_schema", "json_schema": schema()}});
    assert_eq!(body, with(chat(), more));
    let (_, body) = sent(
        json!({"provider": "workers_ai", "model": "m", "prompt": "Hi"}),
        json!({}),
    );
    assert_eq!(
        body,
        json!({"messages": [{"role": "user", "content": "Hi"}], "stream": true})
    );
}

#[test]
fn tools_and_choices_in_the_providers_own_form_are_unchanged() {
    let asked = |provider: &str, more: Value| {
        let (_, body) = sent(
            with(json!({"provider": provider, "model": "m", "prompt": "Hi"}), more),
            json!({}),
        );
        (body["tools"].clone(), body["tool_choice"].clone())
    };
    let search = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let own = json!({"tools": search, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    assert_eq!(
        asked("anthropic", own.clone()),
        (search, json!({"type": "auto", "disable_parallel_tool_use": true}))
    );
    let neutral = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    for (choice, openai, anthropic) in [
        ("auto", json!("auto"), json!({"type": "auto"})),
        ("none", json!("none"), json!({"type": "none"})),
        ("required", json!("required"), json!({"type": "any"})),
    ] {
        let more = json!({"tools": neutral, "tool_choice": choice});
        let function =
            json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
        assert_eq!(asked("openai", more.clone()), (function, openai));
        assert_eq!(asked("anthropic", more), (neutral.clone(), anthropic));
    }
}

#[test]
fn invalid_values_are_refused_before_the_request() {
    let base = json!({"provider": "openai", "model": "m", "prompt": "Hi"});
    for (field, value, run) in [
        (
            "model",
            json!(5),
            "wrong_type/Validation: model must be a string, found 5",
        ),
        (
            "max_tokens",
            json!("x"),
            "wrong_type/Validation: max_tokens must be a number, found \"x\"",
        ),
        (
            "temperature",
            json!([]),
            "wrong_type/Validation: temperature must be a number, found []",
        ),
        (
            "stop",
            json!([1]),
            "wrong_type/Validation: stop must be a string or a list of strings, found [1]",
        ),
        (
            "tools",
            json!({}),
            "wrong_type/Validation: tools must be a list, found {}",
        ),
        ("base_url", json!("x"), "invalid_url/Validation: \"x\" is no URL"),
        (
            "base_url",
            json!("http://u:p@x"),
            "invalid_url/Validation: the url holds a user or a password",
        ),
        (
            "headers",
            json!({"host": "x"}),
            "invalid_header/Validation: header \"host\" belongs",
        ),
        (
            "api_key",
            json!("a\r\nb: c"),
            "invalid_header/Validation: header \"authorization\" has an invalid",
        ),
    ] {
        let implementation = with(base.clone(), json!({field: "${input.v}"}));
        let found = refused(implementation, json!({"v": value}));
        assert!(found.starts_with(run), "{found}");
    }
    for messages in [json!([]), json!("x"), json!([1]), json!([{"content": "x"}])] {
        let implementation = json!({"provider": "openai", "model": "m", "messages": "${input.v}"});
        let found = refused(implementation, json!({"v": messages}));
        assert!(
            found.starts_with("wrong_type/Validation: messages must be a list of {role, content}"),
            "{found}"
        );
    }
    assert_eq!(
        refused(with(base.clone(), json!({"prompt": "${input.none}"})), json!({})),
        "expression_failed/Validation: prompt: expression `input.none`: no such key: none"
    );
    // Null counts as absent.
    let (_, body) = sent(
        with(
            base,
            json!({"max_tokens": "${input.v}", "system": "${input.v}", "tools": "${input.v}"}),
        ),
        json!({"v": null}),
    );
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Hi"}]));
    assert!(body.get("tools").is_none() && body.get("max_completion_tokens").is_none());
}
