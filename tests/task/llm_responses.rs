//! The result of a provider's response in every format, wherever the network cuts it.

use curfew::base::failure::Failure;
use curfew::base::limits::RESULT_BYTES;
use curfew::definition::llm::{Provider, ResponseFormat};
use curfew::json_schema::Schema;
use curfew::task::llm::response_decoder::{DecodeProgress, ResponseDecoder};
use curfew::task::llm::result;
use curfew::task::redact::Redactor;
use curfew::task::runtime::Stopped;
use proptest::prelude::*;
use serde_json::{Value, json};

fn decode<'a>(
    provider: Provider,
    format: &ResponseFormat,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Value, Stopped> {
    let redactor = Redactor::default();
    let mut decoder = ResponseDecoder::new(provider, &redactor);
    for chunk in chunks {
        match decoder.take(chunk) {
            Ok(DecodeProgress::More) => {}
            Ok(DecodeProgress::Done) => return result::of(decoder, format, "asked"),
            Err(failure) => return Err(decoder.stopped(failure)),
        }
    }
    match decoder.end() {
        Ok(()) => result::of(decoder, format, "asked"),
        Err(failure) => Err(decoder.stopped(failure)),
    }
}

/// The result, or the failure in a line with the text that had arrived.
fn line_of(decoded: Result<Value, Stopped>) -> Value {
    let line = |failure: Failure, partial: &str| {
        let class = json!(failure.class);
        json!(format!(
            "{}/{} {partial}: {}",
            failure.code,
            class.as_str().unwrap_or_default(),
            failure.message
        ))
    };
    match decoded {
        Ok(result) => result,
        Err(Stopped::Failed(failure)) => line(failure, "-"),
        Err(Stopped::FailedMidway { failure, partial }) => line(failure, &partial),
        Err(Stopped::Deadline { .. }) => panic!("there is no clock here"),
    }
}

/// The same in one chunk, byte by byte, and in odd chunks.
#[track_caller]
fn result_of(provider: Provider, format: &ResponseFormat, body: &str) -> Value {
    let whole = line_of(decode(provider, format, [body.as_bytes()]));
    for size in [1, 2, 3, 7, 61] {
        let cut = line_of(decode(provider, format, body.as_bytes().chunks(size)));
        assert_eq!(cut, whole, "in chunks of {size}");
    }
    whole
}

#[track_caller]
fn failure(provider: Provider, body: &str, expected: &str) {
    let found = result_of(provider, &ResponseFormat::Text, body);
    let line = found.as_str().unwrap_or_default();
    assert!(line.starts_with(expected), "expected {expected}\nfound {found}");
}

/// Events in OpenAI's format.
fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// Events in Anthropic's format.
fn named(chunks: &[Value]) -> String {
    let name = |chunk: &Value| chunk["type"].as_str().unwrap_or_default().to_string();
    let each = chunks
        .iter()
        .map(|chunk| format!("event: {}\ndata: {chunk}\n\n", name(chunk)));
    each.collect()
}

fn delta(delta: Value, finish: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-x-0101",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": null})
}

fn openai_text() -> String {
    let usage = json!({"id": "chatcmpl-1", "model": "gpt-x-0101", "choices": [],
        "usage": {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16}});
    let chunks = [
        delta(
            json!({"role": "assistant", "content": "", "refusal": null}),
            json!(null),
        ),
        delta(json!({"content": "Grüße"}), json!(null)),
        delta(json!({"content": " aus dem 🌲"}), json!(null)),
        delta(json!({"content": "wald"}), json!(null)),
        delta(json!({}), json!("stop")),
        usage,
    ];
    format!("{}data: [DONE]\n\n", events(&chunks))
}

fn anthropic_start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "claude-x-0101", "stop_reason": null, "usage": {"input_tokens": 25, "output_tokens": 1}}})
}

fn anthropic_text() -> Vec<Value> {
    vec![
        anthropic_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " 🌲"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn openai_streams_text() {
    assert_eq!(
        result_of(Provider::OpenAi, &ResponseFormat::Text, &openai_text()),
        json!({"text": "Grüße aus dem 🌲wald", "tool_calls": [], "finish_reason": "stop", "model": "gpt-x-0101",
            "usage": {"input_tokens": 12, "output_tokens": 4}})
    );
}

#[test]
fn openai_streams_tool_calls() {
    let call = |index: u64, more: Value| {
        let mut part = json!({"index": index});
        for (key, value) in more.as_object().into_iter().flatten() {
            part[key] = value.clone();
        }
        delta(json!({"tool_calls": [part]}), json!(null))
    };
    let body = events(&[
        delta(json!({"role": "assistant", "content": null}), json!(null)),
        call(
            0,
            json!({"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": ""}}),
        ),
        call(0, json!({"function": {"arguments": "{\"city\":"}})),
        call(
            1,
            json!({"id": "call_b", "type": "function", "function": {"name": "time", "arguments": ""}}),
        ),
        call(0, json!({"function": {"arguments": " \"Köln\"}"}})),
        call(
            2,
            json!({"id": "call_c", "type": "function", "function": {"name": "odd", "arguments": "{\"a\": tru"}}),
        ),
        delta(json!({}), json!("tool_calls")),
    ]);
    // A finish reason replaces a missing `[DONE]`.
    assert_eq!(
        result_of(Provider::OpenAi, &ResponseFormat::Json, &body),
        json!({"text": "", "json": null, "finish_reason": "tool_calls", "model": "gpt-x-0101",
        "usage": {"input_tokens": null, "output_tokens": null},
        "tool_calls": [
            {"id": "call_a", "name": "weather", "arguments": {"city": "Köln"}},
            {"id": "call_b", "name": "time", "arguments": {}},
            {"id": "call_c", "name": "odd", "arguments": "{\"a\": tru"},
        ]})
    );
}

#[test]
fn calls_without_numbers_are_distinguished() {
    let call = |part: Value| delta(json!({"tool_calls": [part]}), json!(null));
    let body = events(&[
        call(json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}})),
        call(json!({"function": {"arguments": "1}"}})),
        call(json!({"id": "b", "function": {"name": "f", "arguments": {"x": 2}}})),
        delta(
            json!({"content": [{"type": "text", "text": "parts"}]}),
            json!("stop"),
        ),
        json!({"choices": [{"index": 1, "delta": {"content": "another answer"}}]}),
    ]);
    let found = result_of(Provider::OpenAi, &ResponseFormat::Text, &body);
    assert_eq!(
        (&found["tool_calls"], &found["text"]),
        (
            &json!([{"id": "a", "name": "f", "arguments": {"x": 1}}, {"id": "b", "name": "f", "arguments": {"x": 2}}]),
            &json!("parts")
        )
    );
}

#[test]
fn anthropic_streams_text() {
    assert_eq!(
        result_of(
            Provider::Anthropic,
            &ResponseFormat::Text,
            &named(&anthropic_text())
        ),
        json!({"text": "Grüße 🌲", "tool_calls": [], "finish_reason": "end_turn", "model": "claude-x-0101",
            "usage": {"input_tokens": 25, "output_tokens": 15}})
    );
}

#[test]
fn anthropic_streams_tool_calls_between_texts() {
    let json_part = |index: u64, part: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": part}});
    let tool = |index: u64, id: &str, name: &str| {
        json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}})
    };
    let body = named(&[
        anthropic_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "I look"}}),
        tool(2, "toolu_1", "weather"),
        json_part(2, ""),
        json_part(2, "{\"city\": \"S"),
        json_part(2, "ão Paulo\"}"),
        tool(3, "toolu_2", "now"),
        json!({"type": "something_new", "index": 9}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 30, "output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(
        result_of(Provider::Anthropic, &ResponseFormat::Text, &body),
        json!({"text": "I look", "finish_reason": "tool_use", "model": "claude-x-0101",
        "usage": {"input_tokens": 30, "output_tokens": 9},
        "tool_calls": [
            {"id": "toolu_1", "name": "weather", "arguments": {"city": "São Paulo"}},
            {"id": "toolu_2", "name": "now", "arguments": {}},
        ]})
    );
}

#[test]
fn workers_ai_streams_in_either_form() {
    let older = format!(
        "{}data: [DONE]\n\n",
        events(&[
            json!({"response": "Grü", "p": "abc"}),
            json!({"response": "ße"}),
            json!({"response": null, "tool_calls": [{"name": "f", "arguments": {"x": 1}}]}),
            json!({"response": "", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}),
        ])
    );
    assert_eq!(
        result_of(Provider::WorkersAi, &ResponseFormat::Text, &older),
        json!({"text": "Grüße", "tool_calls": [{"id": "", "name": "f", "arguments": {"x": 1}}], "finish_reason": null,
            "model": "asked", "usage": {"input_tokens": 7, "output_tokens": 2}})
    );
    let newer = result_of(Provider::WorkersAi, &ResponseFormat::Text, &openai_text());
    assert_eq!(newer["text"], "Grüße aus dem 🌲wald");
}

#[test]
fn a_response_that_is_not_streamed_is_decoded() {
    let openai = json!({"model": "m1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant",
        "content": "Hi", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let anthropic = json!({"type": "message", "model": "m1", "stop_reason": "stop", "content": [{"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}], "usage": {"input_tokens": 1, "output_tokens": 2}});
    let workers =
        json!({"response": "Hi", "tool_calls": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let result = |arguments: Value| {
        json!({"text": "Hi", "tool_calls": [{"id": "a", "name": "f", "arguments": arguments}], "finish_reason": "stop",
            "model": "m1", "usage": {"input_tokens": 1, "output_tokens": 2}})
    };
    let whole = |provider, body: &Value| {
        result_of(provider, &ResponseFormat::Text, &format!("\u{feff}\r\n {body}\n"))
    };
    assert_eq!(whole(Provider::OpenAi, &openai), result(json!({})));
    assert_eq!(whole(Provider::WorkersAi, &openai), result(json!({})));
    assert_eq!(whole(Provider::Anthropic, &anthropic), result(json!({"x": 1})));
    assert_eq!(whole(Provider::WorkersAi, &workers)["text"], "Hi");
    // If JSON was requested, the value itself is the response.
    let formed = result_of(
        Provider::WorkersAi,
        &ResponseFormat::Json,
        &json!({"response": {"n": 1}}).to_string(),
    );
    assert_eq!(formed["json"], json!({"n": 1}));
}

#[test]
fn a_stream_that_breaks_off_keeps_its_text() {
    let half = openai_text();
    let half = &half[..half.find("wald").expect("it is there")];
    failure(
        Provider::OpenAi,
        half,
        "network/network Grüße aus dem 🌲: the answer broke off: the stream ended before",
    );
    let mut chunks = anthropic_text();
    chunks.truncate(7);
    failure(
        Provider::Anthropic,
        &named(&chunks),
        "network/network Grüße 🌲: the answer broke off",
    );
    failure(
        Provider::WorkersAi,
        &events(&[json!({"response": "Hal"})]),
        "network/network Hal: the answer broke off",
    );
    failure(
        Provider::OpenAi,
        "",
        "network/network -: the answer broke off: it is empty",
    );
    failure(
        Provider::OpenAi,
        ": wait\n\n: wait\n\n",
        "network/network -: the answer broke off",
    );
    failure(
        Provider::OpenAi,
        "{\"choices\": [{",
        "network/network {\"choices\": [{: the answer broke off: its JSON has no end",
    );
}

#[test]
fn errors_in_a_stream_have_their_class() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    failure(
        Provider::Anthropic,
        &named(std::slice::from_ref(&overloaded)),
        "provider_error/provider_transient -: the provider reports overloaded_error: Overloaded",
    );
    let mut chunks = anthropic_text();
    chunks.insert(4, overloaded.clone());
    failure(
        Provider::Anthropic,
        &named(&chunks),
        "provider_error/provider_transient Grüße: the provider reports",
    );
    failure(
        Provider::Anthropic,
        &overloaded.to_string(),
        "provider_error/provider_transient -: the provider",
    );
    failure(
        Provider::OpenAi,
        &events(&[
            delta(json!({"content": "Hi"}), json!(null)),
            json!({"error": {"type": "server_error", "message": "oh"}}),
        ]),
        "provider_error/server_error Hi: the provider reports server_error: oh",
    );
    failure(
        Provider::OpenAi,
        "data: {\"error\": \"no\"}\n\n",
        "provider_error/unknown -: the provider reports an error: no",
    );
}

#[test]
fn an_invalid_response_is_a_failure() {
    failure(
        Provider::OpenAi,
        "<html>\n<body>Hello</body>",
        "invalid_response/validation -: the answer is neither",
    );
    failure(
        Provider::OpenAi,
        "data: hello\n\n",
        "invalid_response/validation -: an event of the answer is not JSON",
    );
    failure(
        Provider::OpenAi,
        "{\"ok\": true}",
        "invalid_response/validation {\"ok\": true}: the answer has no \"choices\"",
    );
    failure(
        Provider::Anthropic,
        "{\"ok\": true}",
        "invalid_response/validation {\"ok\": true}: the answer has no \"content\"",
    );
    failure(
        Provider::OpenAi,
        "{nonsense}",
        "invalid_response/validation {nonsense}: the answer is not JSON",
    );
    // Chunks that are not objects are a failure, not a panic.
    for chunk in [
        "1",
        "null",
        "[]",
        "\"x\"",
        "{\"choices\": 5}",
        "{\"choices\": [null]}",
        "{\"type\": 5}",
    ] {
        for provider in [Provider::OpenAi, Provider::Anthropic, Provider::WorkersAi] {
            failure(
                provider,
                &format!("data: {chunk}\n\n"),
                "network/network -: the answer broke off",
            );
        }
    }
}

#[test]
fn a_response_has_a_size_limit() {
    let part = "x".repeat(1 << 10);
    let chunk = events(&[delta(json!({"content": part}), json!(null))]);
    let endless = chunk.repeat(RESULT_BYTES / part.len() + 1);
    let decoded = decode(
        Provider::OpenAi,
        &ResponseFormat::Text,
        endless.as_bytes().chunks(1 << 14),
    );
    let Err(Stopped::FailedMidway { failure, partial }) = decoded else {
        panic!("it is too large: {:?}", decoded.map(|_| ()));
    };
    assert_eq!(
        (failure.code.as_str(), partial.len()),
        ("response_too_large", RESULT_BYTES)
    );
    let whole = json!({"choices": [{"message": {"content": "x".repeat(RESULT_BYTES)}}]}).to_string();
    let decoded = line_of(decode(
        Provider::OpenAi,
        &ResponseFormat::Text,
        whole.as_bytes().chunks(1 << 14),
    ));
    assert!(
        decoded
            .as_str()
            .is_some_and(|line| line.starts_with("response_too_large/validation"))
    );
    let event = format!("data: \"{}\n\n", "x".repeat(1 << 20));
    let decoded = line_of(decode(
        Provider::OpenAi,
        &ResponseFormat::Text,
        [event.as_bytes()],
    ));
    assert_eq!(
        decoded,
        "response_too_large/validation -: an event of the answer is larger than 1 MiB"
    );
    let calls = events(&[delta(
        json!({"tool_calls": vec![json!({"id": "a", "function": {"name": "f"}}); 1]}),
        json!(null),
    )]);
    let calls: String = (0..129)
        .map(|n| calls.replace("\"a\"", &format!("\"a{n}\"")))
        .collect();
    let decoded = line_of(decode(
        Provider::OpenAi,
        &ResponseFormat::Text,
        [calls.as_bytes()],
    ));
    assert_eq!(
        decoded,
        "response_too_large/validation -: the answer has more than 128 tool calls"
    );
}

#[test]
fn json_is_parsed_and_validated() {
    let written = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let schema = Schema::compile(&written).expect("it is a schema");
    let fitting = ResponseFormat::JsonSchema {
        document: written,
        schema,
    };
    let result = |text: &str, format: &ResponseFormat| {
        let body = events(&[delta(json!({"content": text}), json!("stop"))]);
        let found = result_of(Provider::OpenAi, format, &body);
        found.get("json").cloned().unwrap_or(found)
    };
    assert_eq!(result(" {\"n\": 1}\n", &fitting), json!({"n": 1}));
    assert_eq!(result("```json\n{\"n\": 1}\n```", &fitting), json!({"n": 1}));
    assert_eq!(result("```\n[1]\n```", &ResponseFormat::Json), json!([1]));
    for (text, format, line) in [
        (
            "{\"n\": \"one\"}",
            &fitting,
            "schema_mismatch/validation {\"n\": \"one\"}: the model's answer does not fit",
        ),
        (
            "Sure! {\"n\": 1}",
            &fitting,
            "invalid_response/validation Sure! {\"n\": 1}: the model was asked for JSON",
        ),
        (
            "{\"n\":",
            &ResponseFormat::Json,
            "invalid_response/validation {\"n\":: the model was asked for JSON and answered something else (finish_reason stop)",
        ),
        (
            "",
            &ResponseFormat::Json,
            "invalid_response/validation -: the model was asked",
        ),
        (
            "```rust\nfn\n```",
            &ResponseFormat::Json,
            "invalid_response/validation ```rust",
        ),
    ] {
        let found = result(text, format);
        assert!(
            found.as_str().is_some_and(|found| found.starts_with(line)),
            "{found}"
        );
    }
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_changes_nothing(
        which in 0..3usize,
        end in 0usize..2_000,
        mut cuts in prop::collection::vec(0usize..2_000, 0..10),
    ) {
        let (provider, body) = match which {
            0 => (Provider::OpenAi, openai_text()),
            1 => (Provider::Anthropic, named(&anthropic_text())),
            _ => (Provider::WorkersAi, events(&[json!({"response": "Grü"}), json!({"response": "ße 🌲"})]) + "data: [DONE]\n\n"),
        };
        // The same for a response that breaks off anywhere.
        let bytes = &body.as_bytes()[..end.min(body.len())];
        cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let stops = cuts.iter().copied().chain([bytes.len()]);
        let chunks = starts.zip(stops).map(|(start, stop)| &bytes[start..stop]);
        let whole = line_of(decode(provider, &ResponseFormat::Text, [bytes]));
        prop_assert_eq!(line_of(decode(provider, &ResponseFormat::Text, chunks)), whole);
    }
}
