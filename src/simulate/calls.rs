//! The calls that tasks make: which mock answers each, and what was sent.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value, json};

use crate::api::error::Error;
use crate::base::failure::{Failure, FailureClass};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::definition::action::{Action, ActionKind};
use crate::simulate::body::{Mock, MockAnswer};
use crate::task::llm::request::{self as llm_request, LlmRequest};
use crate::task::mcp::McpCall;
use crate::task::request::Outgoing;
use crate::task::runtime::ActionCall;
use crate::task::shell;
use crate::task::status::check_response;

/// The mocks of a simulation, and how often each was used.
#[derive(Default)]
pub struct Mocks {
    mocks: Vec<(Mock, Cell<u64>)>,
    given_bytes: Cell<u64>,
}

/// Where a call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub run_id: String,
    pub node_id: String,
    pub token_id: String,
    pub epoch: u64,
}

impl Mocks {
    pub fn new(mocks: Vec<Mock>) -> Mocks {
        Mocks {
            mocks: mocks.into_iter().map(|mock| (mock, Cell::new(0))).collect(),
            given_bytes: Cell::default(),
        }
    }

    /// The first that fits and is not used up.
    pub fn take(&self, node: &str, action: Option<&str>, step: Option<&str>) -> Option<&Mock> {
        let fits = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
        };
        let found = self.mocks.iter().find(|(mock, used)| {
            fits(&mock.node, Some(node))
                && fits(&mock.action, action)
                && fits(&mock.step, step)
                && mock.times.is_none_or(|times| used.get() < times)
        });
        found.map(|(mock, used)| {
            used.set(used.get() + 1);
            self.given_bytes.set(self.given_bytes.get() + mock.bytes);
            mock
        })
    }

    /// Of all answers so far.
    pub fn given_bytes(&self) -> u64 {
        self.given_bytes.get()
    }

    /// The first that is for this node and for no action or step.
    pub fn take_for_node(&self, node: &str) -> Option<&Mock> {
        match self.names_node(node) {
            true => self.take(node, None, None),
            false => None,
        }
    }

    /// Whether a mock is only for this node: then it answers for a workflow that the node calls.
    pub fn names_node(&self, node: &str) -> bool {
        self.mocks
            .iter()
            .any(|(mock, _)| mock.node.as_deref() == Some(node))
    }
}

/// The error for a call that no mock answers.
pub fn no_mock(place: &Place, action: &Action, step: &str) -> Error {
    let kind = kind_name(&action.kind);
    let named = match action.id.is_empty() {
        true => String::new(),
        false => format!(" of action \"{}\"", action.id),
    };
    let mock = json!({"node": place.node_id, "step": step, "result": example_of(&action.kind)});
    let message = format!(
        "node \"{}\" makes a {kind}{named} in step \"{step}\", and no mock answers it; add one to \"mocks\", for example {mock}",
        place.node_id
    );
    with_mock(message, mock)
}

/// The error for a workflow that is called, has no document and no mock.
pub fn no_mock_for_child(node_id: &str) -> Error {
    let mock = json!({"node": node_id, "result": {}});
    let message = format!(
        "node \"{node_id}\" calls a workflow whose document is unknown, and no mock answers for it; add the document to \
         \"workflows\" of \"documents\", or add one to \"mocks\", for example {mock}"
    );
    with_mock(message, mock)
}

fn with_mock(message: String, mock: Value) -> Error {
    Error {
        details: Some(json!({"mock": mock})),
        ..Error::new(422, "no_mock", message)
    }
}

/// What such a call returns, for the mock to add.
fn example_of(kind: &ActionKind) -> Value {
    match kind {
        ActionKind::HttpRequest(_) => json!({"status": 200, "headers": {}, "body": {}}),
        ActionKind::McpTool(_) => {
            json!({"content": [], "structured": null, "text": "", "is_error": false})
        }
        ActionKind::LlmCall(_) => json!({"text": "", "tool_calls": [], "finish_reason": "stop"}),
        ActionKind::Shell(_) => json!({"exit_code": 0, "stdout": "", "stderr": "", "truncated": false}),
        ActionKind::ServiceCall(_)
        | ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => json!({}),
    }
}

pub fn kind_name(kind: &ActionKind) -> &'static str {
    match kind {
        ActionKind::HttpRequest(_) => "http_request",
        ActionKind::McpTool(_) => "mcp_tool",
        ActionKind::ServiceCall(_) => "service_call",
        ActionKind::LlmCall(_) => "llm_call",
        ActionKind::Shell(_) => "shell",
        ActionKind::UpdateContext(_) => "update_context",
        ActionKind::Assert(_) => "assert",
        ActionKind::EmitEvent(_) => "emit_event",
        ActionKind::WorkflowCall(_) => "workflow_call",
    }
}

/// The failure of a mock. Without a code it is the one that an HTTP peer would cause.
pub fn failure_of(
    class: FailureClass,
    code: Option<&str>,
    message: Option<&str>,
    retry_after_ms: Option<u64>,
) -> Failure {
    let usual = match class {
        FailureClass::Network => "network_error",
        FailureClass::ServerError => "http_500",
        FailureClass::ProviderTransient => "http_529",
        FailureClass::RateLimited => "http_429",
        FailureClass::BadRequest => "http_400",
        FailureClass::Auth => "http_401",
        FailureClass::NotFound => "http_404",
        FailureClass::Timeout
        | FailureClass::Validation
        | FailureClass::Assertion
        | FailureClass::Permanent
        | FailureClass::BreakerOpen
        | FailureClass::Unknown => class.name(),
    };
    let message = message.map_or_else(|| format!("the mock says {}", class.name()), str::to_string);
    let mut failure = Failure::new(code.unwrap_or(usual), class, message);
    failure.retry_after_ms = retry_after_ms;
    failure
}

/// What a call sends, with its templates rendered as in production. Headers are left out, because they hold credentials.
pub fn request_of(call: &ActionCall<'_>, key: &str, now: Millis) -> Result<Value, Failure> {
    let request = match &call.action.kind {
        ActionKind::HttpRequest(request) => sent(&Outgoing::http_request(request, call, key)?),
        ActionKind::ServiceCall(service) => {
            let mut request = sent(&Outgoing::service_call(service, call, key)?);
            request["binding"] = json!(service.binding);
            request
        }
        ActionKind::LlmCall(llm) => match llm_request::of(llm, call, key)? {
            (LlmRequest::Http(outgoing), _) => sent(&outgoing),
            (LlmRequest::Binding { model, inputs }, _) => json!({"model": model, "inputs": inputs}),
        },
        ActionKind::McpTool(tool) => {
            let mcp = McpCall::of(tool, call, key)?;
            json!({"url": mcp.first_request().url.as_str(), "params": mcp.call(1)["params"]})
        }
        ActionKind::Shell(command) => sent(&shell::order(command, call, key, now)?),
        ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => Value::Null,
    };
    Ok(call.secrets.redactor().value(request))
}

fn sent(outgoing: &Outgoing) -> Value {
    let body = outgoing.body.as_ref().map(|body| {
        let json = serde_json::from_str::<Value>(body);
        json.unwrap_or_else(|_| json!(body))
    });
    json!({"method": outgoing.method, "url": outgoing.url.as_str(), "body": body})
}

/// A call that returns this, as an executor checks it: a status or an exit code that is not expected is a failure. The outer error
/// says why no call returns it.
pub fn checked_result(
    call: &ActionCall<'_>,
    result: &Value,
    now: Millis,
) -> Result<Result<(), Failure>, String> {
    let redactor = call.secrets.redactor();
    Ok(match &call.action.kind {
        // A mock without a status is a call that succeeds.
        ActionKind::HttpRequest(_) if result.is_object() && result.get("status").is_none() => Ok(()),
        ActionKind::HttpRequest(request) => {
            let status = result["status"]
                .as_u64()
                .filter(|status| (100..=599).contains(status));
            let Some(status) = status.and_then(|status| u16::try_from(status).ok()) else {
                let example = example_of(&call.action.kind);
                return Err(format!(
                    "an http_request returns its status, headers and body, for example {example}"
                ));
            };
            let headers = result["headers"].as_object().cloned().unwrap_or_default();
            let text = match &result["body"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                body => body.to_string(),
            };
            let expected = request.expect_status.as_deref();
            check_response(status, &headers, &text, expected, redactor, now)
        }
        ActionKind::Shell(command) if result["stdout"].is_string() && result["stderr"].is_string() => {
            shell::outcome(command, &result.to_string(), redactor, None).map(|_| ())
        }
        ActionKind::Shell(_)
        | ActionKind::McpTool(_)
        | ActionKind::ServiceCall(_)
        | ActionKind::LlmCall(_)
        | ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => Ok(()),
    })
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It is still under way.
    Open,
    Result,
    Failed(FailureClass),
    /// It was cut at its deadline.
    TimedOut,
    /// Its executor was stopped, because the result does not count any more.
    Aborted,
}

impl CallEnd {
    fn name(self) -> &'static str {
        match self {
            CallEnd::Open => "open",
            CallEnd::Result => "result",
            CallEnd::Failed(_) => "failed",
            CallEnd::TimedOut => "timed_out",
            CallEnd::Aborted => "aborted",
        }
    }
}

/// The calls that were made, in order.
#[derive(Default)]
pub struct CallLog {
    calls: RefCell<Vec<RecordedCall>>,
    bytes: Cell<u64>,
}

struct RecordedCall {
    at: Millis,
    ended_at: Option<Millis>,
    end: CallEnd,
    fields: Map<String, Value>,
}

impl CallLog {
    /// The number of the call.
    pub fn begin(&self, at: Millis, place: &Place, kind: &str, more: Value) -> usize {
        let mut fields = Map::new();
        fields.insert("run_id".into(), json!(place.run_id));
        fields.insert("node_id".into(), json!(place.node_id));
        fields.insert("token_id".into(), json!(place.token_id));
        fields.insert("epoch".into(), json!(place.epoch));
        fields.insert("kind".into(), json!(kind));
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        self.bytes.set(self.bytes.get() + json_bytes(&fields) as u64);
        let mut calls = self.calls.borrow_mut();
        calls.push(RecordedCall {
            at,
            ended_at: None,
            end: CallEnd::Open,
            fields,
        });
        calls.len() - 1
    }

    pub fn end(&self, number: usize, at: Millis, end: CallEnd) {
        if let Some(call) = self.calls.borrow_mut().get_mut(number)
            && call.end == CallEnd::Open
        {
            call.ended_at = Some(at);
            call.end = end;
        }
    }

    pub fn len(&self) -> usize {
        self.calls.borrow().len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Calls to executors' peers, as the answer shows them. `at_ms` counts from the start.
    pub fn views(&self, started_at: Millis) -> Vec<Value> {
        let calls = self.calls.borrow();
        let views = calls.iter().map(|call| {
            let mut view = Map::new();
            view.insert("at_ms".into(), json!(call.at.saturating_sub(started_at)));
            let duration = call.ended_at.map(|ended_at| ended_at.saturating_sub(call.at));
            view.insert("duration_ms".into(), json!(duration));
            view.insert("outcome".into(), json!(call.end.name()));
            if let CallEnd::Failed(class) = call.end {
                view.insert("class".into(), json!(class));
            }
            view.extend(call.fields.clone());
            Value::Object(view)
        });
        views.collect()
    }

    /// Calls that never end, by the number of the call.
    pub fn open(&self) -> Vec<Value> {
        let calls = self.calls.borrow();
        let open = calls.iter().filter(|call| call.end == CallEnd::Open);
        let open = open.map(|call| {
            let field = |name: &str| call.fields.get(name).cloned().unwrap_or_default();
            json!({
                "for": "call", "run_id": field("run_id"), "node_id": field("node_id"), "step": field("step"),
                "kind": field("kind"),
            })
        });
        open.collect()
    }
}

/// Whether the answer comes before the deadline of the call, and when it ends.
pub fn ends_at(mock: &Mock, now: Millis, deadline_at: Option<Millis>) -> (Option<Millis>, bool) {
    let answered_at = match mock.answer {
        MockAnswer::Hang => None,
        MockAnswer::Result(_) | MockAnswer::Fail { .. } => Some(now.saturating_add(mock.after_ms)),
    };
    match (answered_at, deadline_at) {
        (Some(at), Some(deadline)) if at < deadline => (Some(at), true),
        (Some(at), None) => (Some(at), true),
        (_, Some(deadline)) => (Some(deadline), false),
        (None, None) => (None, false),
    }
}
