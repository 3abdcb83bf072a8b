//! The trace context of calls, and what calls of models and tools add to the report of their step.

use curfew::base::trace::TraceParent;
use curfew::definition::action::ActionKind;
use curfew::definition::llm::Provider;
use curfew::protocol::task::{GEN_AI_CHARACTERS, StepReport};
use curfew::task::llm::request::{self, LlmRequest};
use curfew::task::llm::response_decoder::ResponseDecoder;
use curfew::task::mcp::{McpCall, Session};
use curfew::task::redact::Redactor;
use curfew::task::request::Outgoing;
use curfew::task::runtime::ActionCall;
use curfew::task::shell;
use curfew::task::trace::CallNotes;
use serde_json::{Value, json};

use super::action_call::calling;
use super::fake_runtime::{PeerResponse, order};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STEP: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";

/// The `traceparent` of the request that an action sends.
fn header_of(kind: &str, implementation: Value, traceparent: Option<&str>) -> Option<String> {
    calling(kind, implementation, json!({}), None, |call| {
        let call = ActionCall { traceparent, ..*call };
        let sent = match &call.action.kind {
            ActionKind::HttpRequest(request) => Outgoing::http_request(request, &call, "key"),
            ActionKind::ServiceCall(service) => Outgoing::service_call(service, &call, "key"),
            ActionKind::Shell(command) => shell::order(command, &call, "key", 1_000),
            ActionKind::McpTool(tool) => McpCall::of(tool, &call, "key")
                .and_then(|mcp| mcp.post(&Session::default(), &mcp.initialize(1))),
            ActionKind::LlmCall(llm) => request::of(llm, &call, "key").map(|(request, _)| match request {
                LlmRequest::Http(outgoing) => outgoing,
                LlmRequest::Binding { .. } => panic!("it goes over HTTP"),
            }),
            other => panic!("{other:?} sends nothing"),
        };
        let headers = sent.expect("it can be sent").headers;
        let mut found = headers.into_iter().filter(|(name, _)| name == "traceparent");
        let value = found.next().map(|(_, value)| value);
        assert!(found.next().is_none());
        value
    })
}

#[test]
fn every_kind_of_call_carries_the_context_unless_the_document_writes_one() {
    let kinds = [
        ("http_request", json!({"url": "https://a.example"})),
        ("service_call", json!({"binding": "B"})),
        ("shell", json!({"url": "https://a.example", "command": "true"})),
        (
            "mcp_tool",
            json!({"server_url": "https://a.example", "tool": "t"}),
        ),
        (
            "llm_call",
            json!({"provider": "anthropic", "model": "m", "prompt": "p"}),
        ),
        (
            "llm_call",
            json!({"provider": "openai", "model": "m", "prompt": "p"}),
        ),
    ];
    for (kind, implementation) in kinds {
        assert_eq!(
            header_of(kind, implementation.clone(), Some(STEP)).as_deref(),
            Some(STEP),
            "{kind}"
        );
        assert_eq!(header_of(kind, implementation.clone(), None), None, "{kind}");
        let mut own = implementation;
        own["headers"] = json!({"TraceParent": "mine"});
        assert_eq!(
            header_of(kind, own, Some(STEP)).as_deref(),
            Some("mine"),
            "{kind}"
        );
    }
}

fn steps(more: Value) -> Vec<StepReport> {
    let call = |step_ref: &str| json!({"ref": step_ref, "action": {"kind": "service_call", "implementation": {"binding": "B", "path": step_ref}}});
    let task = json!({"steps": [call("one"), call("two")]});
    let answers = [
        ("one", PeerResponse::Result(json!(1))),
        ("two", PeerResponse::Result(json!(2))),
    ];
    order(task, more, &answers).result.steps
}

#[test]
fn steps_have_spans_where_they_are_recorded() {
    let attempt = TraceParent::parse(PARENT).expect("valid").span_id;
    let recorded = steps(json!({"traceparent": PARENT, "records_spans": true}));
    let ids: Vec<_> = recorded.iter().map(|step| step.span_id).collect();
    assert_eq!(ids, [Some(attempt.step("one", 0)), Some(attempt.step("two", 0))]);
    assert!(recorded.iter().all(|step| step.started_at.is_some()));
    for more in [
        json!({}),
        json!({"traceparent": PARENT}),
        json!({"traceparent": "no", "records_spans": true}),
        json!({"records_spans": true}),
    ] {
        for step in steps(more) {
            assert_eq!((step.span_id, step.started_at), (None, None));
        }
    }
}

#[test]
fn models_are_noted_also_when_they_fail() {
    let redactor = Redactor::default();
    let notes = CallNotes::default();
    notes.model_called(Provider::Anthropic, "m-1", &redactor);
    let decoder = |text: &str| {
        let mut decoder = ResponseDecoder::new(Provider::Anthropic, &redactor);
        let _ = decoder.take(text.as_bytes());
        decoder.note_usage(&notes);
    };
    decoder("");
    decoder(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-1-x\",\"content\":[],\
         \"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n",
    );
    let noted = json!(notes.into_gen_ai());
    assert_eq!(
        noted,
        json!({"operation": "chat", "provider": "anthropic", "request_model": "m-1", "response_model": "m-1-x",
            "input_tokens": 7, "output_tokens": 1})
    );
}

#[test]
fn names_are_bounded() {
    let notes = CallNotes::default();
    notes.tool_called(&"é".repeat(10_000), &Redactor::default());
    let noted = notes.into_gen_ai().expect("a tool was called");
    let tool = noted.tool.expect("its name");
    assert_eq!(tool.chars().count(), GEN_AI_CHARACTERS + 1);
}
