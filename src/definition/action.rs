//! Actions: the atomic operations, one kind a variant.

use crate::base::ids;
use crate::base::time::{Limit, SECOND};
use crate::cel::{Expression, Template};
use crate::definition::event::EmitEvent;
use crate::definition::llm::{self, LlmCall};
use crate::definition::mcp_tool::McpTool;
use crate::definition::path::Path;
use crate::definition::problem::Problems;
use crate::definition::reader::{Reader, read_template, shorten};
use crate::definition::retry::RetryPolicy;
use crate::definition::secret;
use crate::definition::shell::Shell;
use crate::definition::timeouts::TimeoutLayer;
use crate::definition::workflow::{CHILD_FAILURE_POLICIES, ChildFailurePolicy};
use crate::json_schema::Schema;
use serde_json::Value;

/// What a failed deadline of an attempt leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionTimeoutPolicy {
    Fail,
    Retry,
}

pub const EXECUTION_POLICIES: &[(&str, ExecutionTimeoutPolicy)] = &[
    ("fail", ExecutionTimeoutPolicy::Fail),
    ("retry", ExecutionTimeoutPolicy::Retry),
];

/// When the result of a call is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// With its answer.
    #[default]
    Sync,
    /// Later: whoever was called is given a URL to bring it to.
    Async,
}

const EXECUTION_MODES: &[(&str, ExecutionMode)] =
    &[("sync", ExecutionMode::Sync), ("async", ExecutionMode::Async)];

#[derive(Clone, Debug)]
pub struct Action {
    pub id: String,
    pub kind: ActionKind,
    pub timeout: Limit,
    pub on_timeout: Option<ExecutionTimeoutPolicy>,
    pub retry: RetryPolicy,
    pub mode: ExecutionMode,
    /// The key of the breaker its calls go through.
    pub breaker: Option<Template>,
    /// The secrets its implementation names.
    pub secrets: Vec<String>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
}

#[derive(Clone, Debug)]
pub enum ActionKind {
    HttpRequest(HttpRequest),
    McpTool(McpTool),
    ServiceCall(ServiceCall),
    LlmCall(LlmCall),
    Shell(Shell),
    UpdateContext(Vec<(Path, Template)>),
    Assert(Assert),
    EmitEvent(EmitEvent),
    WorkflowCall(WorkflowCall),
}

impl ActionKind {
    /// Whose default and hard limit count for an action of this kind.
    pub fn layer(&self) -> TimeoutLayer {
        match self {
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::Shell(_) => TimeoutLayer::Tool,
            ActionKind::LlmCall(_) => TimeoutLayer::LlmCall,
            ActionKind::UpdateContext(_) | ActionKind::Assert(_) | ActionKind::EmitEvent(_) => {
                TimeoutLayer::Step
            }
            ActionKind::WorkflowCall(_) => TimeoutLayer::Flow,
        }
    }
}

/// A run of another workflow; the coordinator starts it, no executor does.
#[derive(Clone, Debug)]
pub struct WorkflowCall {
    pub workflow_id: String,
    pub version: Option<u64>,
    pub on_failure: ChildFailurePolicy,
}

#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: Template,
    pub url: Template,
    pub headers: Option<Template>,
    pub query: Option<Template>,
    pub body: Option<Template>,
    /// Statuses that are a success; absent: 200-299.
    pub expect_status: Option<Vec<u16>>,
}

#[derive(Clone, Debug)]
pub struct ServiceCall {
    pub binding: String,
    pub path: Template,
    pub method: Template,
    pub headers: Option<Template>,
    pub body: Option<Template>,
}

#[derive(Clone, Debug)]
pub struct Assert {
    pub condition: Expression,
    pub message: Option<Template>,
}

/// Names a template of an implementation may use.
pub(super) const NAMES: &[&str] = &["input", "state", "output", "callback", secret::SECRET];

/// Names a condition may use: what a secret decides would tell of it.
pub(super) const CONDITION_NAMES: &[&str] = &["input", "state", "output"];

/// What an order takes on its way to the executor, so that the last of its attempts still fits.
const TRANSIT_MS: u64 = SECOND;

#[derive(Clone, Copy)]
enum ActionKindName {
    HttpRequest,
    McpTool,
    ServiceCall,
    LlmCall,
    Shell,
    UpdateContext,
    Assert,
    EmitEvent,
    WorkflowCall,
}

const KINDS: &[(&str, ActionKindName)] = &[
    ("http_request", ActionKindName::HttpRequest),
    ("service_call", ActionKindName::ServiceCall),
    ("update_context", ActionKindName::UpdateContext),
    ("assert", ActionKindName::Assert),
    ("llm_call", ActionKindName::LlmCall),
    ("mcp_tool", ActionKindName::McpTool),
    ("shell", ActionKindName::Shell),
    ("workflow_call", ActionKindName::WorkflowCall),
    ("emit_event", ActionKindName::EmitEvent),
];

/// As `ActionKind::layer`, by the word a document uses; `None` for a word that is refused anyway.
pub(super) fn layer_of_kind(word: &str) -> Option<TimeoutLayer> {
    let (_, name) = KINDS.iter().find(|(known, _)| *known == word)?;
    match name {
        ActionKindName::HttpRequest
        | ActionKindName::McpTool
        | ActionKindName::ServiceCall
        | ActionKindName::Shell => Some(TimeoutLayer::Tool),
        ActionKindName::LlmCall => Some(TimeoutLayer::LlmCall),
        ActionKindName::UpdateContext | ActionKindName::Assert | ActionKindName::EmitEvent => {
            Some(TimeoutLayer::Step)
        }
        ActionKindName::WorkflowCall => Some(TimeoutLayer::Flow),
    }
}

impl Action {
    /// `id_required` is false for an action written inside its step.
    pub fn read(value: &Value, pointer: &str, id_required: bool, problems: &Problems) -> Option<Action> {
        let reader = Reader::new(value, pointer, problems)?;
        let id = match id_required {
            true => reader.required_id("id"),
            false => reader.id("id").or(Some(String::new())),
        };
        reader.string("name");
        reader.string("description");
        let kind = read_kind(&reader);
        let implementation = reader.any("implementation").unwrap_or(&Value::Null);
        let secrets = secret::named_in(implementation, &reader.at("implementation"), problems);
        let (mut timeout, mut on_timeout) = (Limit::Unset, None);
        let mut retry = RetryPolicy::default();
        let mut mode = ExecutionMode::default();
        let mut breaker = None;
        if let Some(execution) = reader.object("execution") {
            timeout = execution.limit("timeout", "timeout_ms");
            on_timeout = execution.choice("on_timeout", EXECUTION_POLICIES);
            if let Some(policy) = execution.object("retry_policy") {
                report_idle("retry_policy", kind.as_ref(), &execution);
                retry = RetryPolicy::read(policy, on_timeout == Some(ExecutionTimeoutPolicy::Retry));
            }
            mode = execution.choice("mode", EXECUTION_MODES).unwrap_or_default();
            report_idle_mode(kind.as_ref(), mode, &execution);
            breaker = read_breaker(kind.as_ref(), &execution);
            execution.finish();
        }
        let input_schema = reader.schema("input_schema");
        let output_schema = reader.schema("output_schema");
        reader.finish();
        Some(Action {
            id: id?,
            kind: kind?,
            timeout,
            on_timeout,
            retry,
            mode,
            breaker,
            secrets,
            input_schema,
            output_schema,
        })
    }

    /// Its answer only says that it was understood; the result comes by a callback.
    pub fn is_async(&self) -> bool {
        match self.mode {
            ExecutionMode::Sync => false,
            ExecutionMode::Async => true,
        }
    }

    /// How long an attempt at a task may take that is nothing but this action. `timeout` is for one call; where the
    /// action says how often, or how long, it calls again, its attempt has the room for it.
    pub fn attempt_limit(&self) -> Limit {
        if let Limit::After(_) = self.retry.total_timeout {
            return self.retry.total_timeout;
        }
        match self
            .timeout
            .millis()
            .and_then(|millis| self.retry.room_ms(millis))
        {
            Some(room) if self.retry.attempts_max > Some(1) => Limit::After(room.saturating_add(TRANSIT_MS)),
            Some(_) | None => self.timeout,
        }
    }

    /// What the coordinator does when such an attempt runs out of time. An action with room of its own has tried
    /// again by then.
    pub fn attempt_on_timeout(&self) -> Option<ExecutionTimeoutPolicy> {
        self.on_timeout.filter(|_| self.attempt_limit() == self.timeout)
    }

    /// Touches nothing outside the task's own context: an event only leaves with the report of its task.
    pub fn is_pure(&self) -> bool {
        match self.kind {
            ActionKind::UpdateContext(_) | ActionKind::Assert(_) | ActionKind::EmitEvent(_) => true,
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_)
            | ActionKind::WorkflowCall(_) => false,
        }
    }
}

/// Only what calls out can be called back.
fn report_idle_mode(kind: Option<&ActionKind>, mode: ExecutionMode, execution: &Reader) {
    let calls_out = kind.is_none_or(|kind| match kind {
        // What a model, a tool or a command has to say comes with its answer.
        ActionKind::HttpRequest(_) | ActionKind::ServiceCall(_) => true,
        ActionKind::McpTool(_)
        | ActionKind::LlmCall(_)
        | ActionKind::Shell(_)
        | ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => false,
    });
    if mode == ExecutionMode::Async && !calls_out {
        execution.report(
            "mode",
            "unknown_field",
            "only http_request and service_call can be \"async\"",
        );
    }
}

fn read_kind(reader: &Reader) -> Option<ActionKind> {
    reader.required_string("kind");
    let kind = reader.choice("kind", KINDS);
    let Some(implementation) = reader.object("implementation") else {
        if !reader.has("implementation") {
            reader.report(
                "implementation",
                "missing_field",
                "\"implementation\" is required",
            );
        }
        return None;
    };
    let read = match kind? {
        ActionKindName::HttpRequest => read_http_request(&implementation).map(ActionKind::HttpRequest),
        ActionKindName::McpTool => McpTool::read(&implementation).map(ActionKind::McpTool),
        ActionKindName::ServiceCall => read_service_call(&implementation).map(ActionKind::ServiceCall),
        ActionKindName::LlmCall => llm::read(&implementation, NAMES).map(ActionKind::LlmCall),
        ActionKindName::Shell => Shell::read(&implementation).map(ActionKind::Shell),
        ActionKindName::UpdateContext => read_update_context(&implementation).map(ActionKind::UpdateContext),
        ActionKindName::Assert => read_assert(&implementation).map(ActionKind::Assert),
        ActionKindName::EmitEvent => EmitEvent::read(&implementation).map(ActionKind::EmitEvent),
        ActionKindName::WorkflowCall => read_workflow_call(&implementation).map(ActionKind::WorkflowCall),
    };
    implementation.finish();
    read
}

/// Written as it is, or made of what the action works on. Never of secrets: a key is shown to whoever asks.
fn read_breaker(kind: Option<&ActionKind>, execution: &Reader) -> Option<Template> {
    let text = execution.string("breaker")?;
    report_idle("breaker", kind, execution);
    if !text.contains("${") && !ids::is_breaker_key(text) {
        let message = format!("\"{}\" is no key: {}", shorten(text), ids::BREAKER_KEY_RULE);
        execution.report("breaker", "invalid_id", message);
        return None;
    }
    execution.template("breaker", CONDITION_NAMES)
}

/// What would never be asked.
fn report_idle(field: &'static str, kind: Option<&ActionKind>, execution: &Reader) {
    let why = match kind {
        None
        | Some(
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_),
        ) => return,
        Some(ActionKind::UpdateContext(_) | ActionKind::Assert(_) | ActionKind::EmitEvent(_)) => {
            "an action of this kind calls nobody: what it does once it does always"
        }
        Some(ActionKind::WorkflowCall(_)) => {
            "a workflow_call starts one run; \"max_retries\" of its node starts another"
        }
    };
    execution.report(field, "unsupported", why);
}

fn read_http_request(reader: &Reader) -> Option<HttpRequest> {
    let url = required_template(reader, "url");
    let method = reader.template("method", NAMES);
    let headers = reader.template("headers", NAMES);
    let query = reader.template("query", NAMES);
    let body = reader.template("body", NAMES);
    let expect_status = read_expect_status(reader);
    Some(HttpRequest {
        method: method.unwrap_or_else(|| constant("GET")),
        url: url?,
        headers,
        query,
        body,
        expect_status,
    })
}

/// One status or a list of them.
fn read_expect_status(reader: &Reader) -> Option<Vec<u16>> {
    let written = reader.any("expect_status")?;
    let status = |value: &Value| {
        value
            .as_u64()
            .and_then(|number| u16::try_from(number).ok())
            .filter(|number| (100..=599).contains(number))
    };
    let statuses: Option<Vec<u16>> = match written {
        Value::Array(values) => values.iter().map(status).collect(),
        single => status(single).map(|number| vec![number]),
    };
    if statuses.as_ref().is_none_or(Vec::is_empty) {
        reader.report(
            "expect_status",
            "wrong_type",
            "expected an HTTP status (100-599) or a list of them",
        );
    }
    statuses
}

fn read_service_call(reader: &Reader) -> Option<ServiceCall> {
    let binding = reader.required_string("binding");
    let path = reader.template("path", NAMES);
    let method = reader.template("method", NAMES);
    let headers = reader.template("headers", NAMES);
    let body = reader.template("body", NAMES);
    Some(ServiceCall {
        binding: binding?.to_string(),
        path: path.unwrap_or_else(|| constant("/")),
        method: method.unwrap_or_else(|| constant("POST")),
        headers,
        body,
    })
}

fn read_update_context(reader: &Reader) -> Option<Vec<(Path, Template)>> {
    if !reader.has("set") {
        reader.report(
            "set",
            "missing_field",
            "\"set\" is required: {\"state.x\": value, ...}",
        );
    }
    let mut writes = Vec::new();
    for (target, element) in reader.entries("set")? {
        let template = read_template(element.value, &element.pointer, NAMES, reader.problems());
        match Path::parse_in_task(target) {
            Ok(path) => writes.extend(template.map(|template| (path, template))),
            Err(message) => reader
                .problems()
                .report(&element.pointer, "invalid_target", message),
        }
    }
    Some(writes)
}

fn read_assert(reader: &Reader) -> Option<Assert> {
    reader.required_string("condition");
    let condition = reader.expression("condition", CONDITION_NAMES);
    let message = reader.template("message", NAMES);
    Some(Assert {
        condition: condition?,
        message,
    })
}

fn read_workflow_call(reader: &Reader) -> Option<WorkflowCall> {
    let workflow_id = reader.required_id("workflow_id");
    let version = reader.integer("version", 1, i64::MAX);
    let on_failure = reader.choice("on_failure", CHILD_FAILURE_POLICIES);
    Some(WorkflowCall {
        workflow_id: workflow_id?,
        version: version.map(|number| number as u64),
        on_failure: on_failure.unwrap_or(ChildFailurePolicy::Propagate),
    })
}

pub(super) fn required_template(reader: &Reader, field: &'static str) -> Option<Template> {
    required(reader, field);
    reader.template(field, NAMES)
}

pub(super) fn required(reader: &Reader, field: &'static str) {
    if !reader.has(field) {
        reader.report(field, "missing_field", format!("\"{field}\" is required"));
    }
}

fn constant(text: &str) -> Template {
    // A text without `${` is its own template.
    Template::parse(&Value::from(text)).unwrap_or_else(|_| unreachable!("{text} holds no expression"))
}
