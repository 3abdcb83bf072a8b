//! Actions: the operations that steps perform, one variant for each kind.

use serde_json::Value;

use crate::base::failure::FailureClass;
use crate::base::ids;
use crate::base::text::shorten;
use crate::base::time::Limit;
use crate::cel::{Expression, Template};
use crate::definition::event::EmitEvent;
use crate::definition::http_request::HttpRequest;
use crate::definition::llm::{self, LlmCall};
use crate::definition::mapping::{Mapping, read_task_mapping};
use crate::definition::mcp_tool::McpTool;
use crate::definition::node::{CHILD_FAILURE_POLICIES, ChildFailurePolicy};
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::definition::retry::RetryPolicy;
use crate::definition::secret;
use crate::definition::service_call::ServiceCall;
use crate::definition::shell::Shell;
use crate::definition::timeouts::TimeoutLayer;
use crate::definition::{NOW, SCHEMA};
use crate::json_schema::Schema;

/// What happens when an attempt exceeds its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionTimeoutPolicy {
    Fail,
    Retry,
}

pub const EXECUTION_POLICIES: &[(&str, ExecutionTimeoutPolicy)] = &[
    ("fail", ExecutionTimeoutPolicy::Fail),
    ("retry", ExecutionTimeoutPolicy::Retry),
];

/// How the result of a call arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// In the response.
    #[default]
    Sync,
    /// Later, by a request to the callback URL that the call passes on.
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
    /// The key of the circuit breaker for its calls.
    pub breaker: Option<Template>,
    /// The secrets that its implementation names.
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
    UpdateContext(Mapping),
    Assert(Assert),
    EmitEvent(EmitEvent),
    WorkflowCall(WorkflowCall),
}

impl ActionKind {
    /// The name in documents.
    pub fn text(&self) -> &'static str {
        let name = self.name();
        let found = KINDS.iter().find(|(_, kind)| *kind == name);
        found.expect("`KINDS` has every kind").0
    }

    fn name(&self) -> ActionKindName {
        match self {
            ActionKind::HttpRequest(_) => ActionKindName::HttpRequest,
            ActionKind::McpTool(_) => ActionKindName::McpTool,
            ActionKind::ServiceCall(_) => ActionKindName::ServiceCall,
            ActionKind::LlmCall(_) => ActionKindName::LlmCall,
            ActionKind::Shell(_) => ActionKindName::Shell,
            ActionKind::UpdateContext(_) => ActionKindName::UpdateContext,
            ActionKind::Assert(_) => ActionKindName::Assert,
            ActionKind::EmitEvent(_) => ActionKindName::EmitEvent,
            ActionKind::WorkflowCall(_) => ActionKindName::WorkflowCall,
        }
    }

    /// The layer whose default and hard limit apply to this action.
    pub fn layer(&self) -> TimeoutLayer {
        self.name().layer()
    }
}

/// A run of another workflow. The coordinator starts it, not an executor.
#[derive(Clone, Debug)]
pub struct WorkflowCall {
    pub workflow_id: String,
    pub version: Option<u64>,
    pub on_failure: ChildFailurePolicy,
}

#[derive(Clone, Debug)]
pub struct Assert {
    pub condition: Expression,
    pub message: Option<Template>,
}

/// Names that a template of an implementation may use.
pub(super) const NAMES: &[&str] = &["input", "state", "output", NOW, "callback", secret::SECRET];

/// Names that conditions and events may use. They exclude secrets, because their results are visible.
pub(super) const CONDITION_NAMES: &[&str] = &["input", "state", "output", NOW];

/// A breaker's key excludes the time, too: it would make a breaker of its own for every call.
const BREAKER_NAMES: &[&str] = &["input", "state", "output"];

#[derive(Clone, Copy, PartialEq)]
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

impl ActionKindName {
    fn layer(self) -> TimeoutLayer {
        match self {
            ActionKindName::HttpRequest
            | ActionKindName::McpTool
            | ActionKindName::ServiceCall
            | ActionKindName::Shell => TimeoutLayer::Tool,
            ActionKindName::LlmCall => TimeoutLayer::LlmCall,
            ActionKindName::UpdateContext | ActionKindName::Assert | ActionKindName::EmitEvent => {
                TimeoutLayer::Step
            }
            ActionKindName::WorkflowCall => TimeoutLayer::Flow,
        }
    }
}

/// `ActionKind::layer` by the `kind` of a document. `None` for an unknown kind, which is reported elsewhere.
pub(super) fn layer_of_kind(kind: &str) -> Option<TimeoutLayer> {
    let (_, name) = KINDS.iter().find(|(known, _)| *known == kind)?;
    Some(name.layer())
}

impl Action {
    /// `id_required` is false for an action that is inline in its step.
    pub fn read(value: &Value, pointer: &str, id_required: bool, problems: &Problems) -> Option<Action> {
        let reader = Reader::new(value, pointer, problems)?;
        let id = match id_required {
            true => reader.required_id("id"),
            false => reader.id("id").or(Some(String::new())),
        };
        reader.value(SCHEMA);
        reader.string("name");
        reader.string("description");
        let kind = read_kind(&reader);
        let implementation = reader.value("implementation").unwrap_or(&Value::Null);
        let secrets = secret::read_secrets(
            implementation,
            kind.as_ref(),
            &reader.pointer_of("implementation"),
            problems,
        );
        let (mut timeout, mut on_timeout) = (Limit::Unset, None);
        let mut retry = RetryPolicy::default();
        let mut mode = ExecutionMode::default();
        let mut breaker = None;
        if let Some(execution) = reader.object("execution") {
            timeout = execution.limit("timeout", "timeout_ms");
            on_timeout = execution.choice("on_timeout", EXECUTION_POLICIES);
            if let Some(policy) = execution.object("retry_policy") {
                report_unsupported("retry_policy", kind.as_ref(), &execution);
                retry = RetryPolicy::read(policy, on_timeout == Some(ExecutionTimeoutPolicy::Retry));
            }
            mode = execution.choice("mode", EXECUTION_MODES).unwrap_or_default();
            report_unsupported_mode(kind.as_ref(), mode, &execution);
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

    /// The response only acknowledges the call; the result arrives by a callback.
    pub fn is_async(&self) -> bool {
        match self.mode {
            ExecutionMode::Sync => false,
            ExecutionMode::Async => true,
        }
    }

    /// How often its call is made again after failures of this class.
    pub fn retries(&self, class: FailureClass) -> u32 {
        match self.is_retried(class) {
            true => self.retry.retries_max(class),
            false => 0,
        }
    }

    fn is_retried(&self, class: FailureClass) -> bool {
        match class {
            FailureClass::Timeout => self.on_timeout == Some(ExecutionTimeoutPolicy::Retry),
            FailureClass::Permanent => false,
            FailureClass::Network
            | FailureClass::ServerError
            | FailureClass::ProviderTransient
            | FailureClass::RateLimited
            | FailureClass::BreakerOpen
            | FailureClass::Unknown => self.retry.lists(class).unwrap_or(true),
            FailureClass::BadRequest
            | FailureClass::Auth
            | FailureClass::NotFound
            | FailureClass::Validation
            | FailureClass::Assertion => self.retry.lists(class).unwrap_or(false),
        }
    }

    /// Calls something outside of Curfew, which may fail and be called again.
    pub fn makes_calls(&self) -> bool {
        match self.kind {
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_) => true,
            ActionKind::UpdateContext(_)
            | ActionKind::Assert(_)
            | ActionKind::EmitEvent(_)
            | ActionKind::WorkflowCall(_) => false,
        }
    }

    /// Uses nothing but the task's own context. Events are only emitted with the report of the task.
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

/// Only actions that send requests can be called back.
fn report_unsupported_mode(kind: Option<&ActionKind>, mode: ExecutionMode, execution: &Reader) {
    let calls_out = kind.is_none_or(|kind| match kind {
        // A model, a tool or a command returns its result in the response.
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
        ActionKindName::HttpRequest => HttpRequest::read(&implementation).map(ActionKind::HttpRequest),
        ActionKindName::McpTool => McpTool::read(&implementation).map(ActionKind::McpTool),
        ActionKindName::ServiceCall => ServiceCall::read(&implementation).map(ActionKind::ServiceCall),
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

/// A constant key or a template. Secrets are not in scope, because keys are visible in the API.
fn read_breaker(kind: Option<&ActionKind>, execution: &Reader) -> Option<Template> {
    let text = execution.string("breaker")?;
    report_unsupported("breaker", kind, execution);
    if !text.contains("${") && !ids::is_breaker_key(text) {
        let message = format!("\"{}\" is no key: {}", shorten(text), ids::BREAKER_KEY_RULE);
        execution.report("breaker", "invalid_id", message);
        return None;
    }
    execution
        .problems()
        .report_dots(&execution.pointer_of("breaker"), text);
    execution.template("breaker", BREAKER_NAMES)
}

/// Reports a field that has no effect for actions of this kind.
fn report_unsupported(field: &'static str, kind: Option<&ActionKind>, execution: &Reader) {
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

fn read_update_context(reader: &Reader) -> Option<Mapping> {
    if !reader.has("set") {
        reader.report(
            "set",
            "missing_field",
            "\"set\" is required: {\"state.x\": value, ...}",
        );
    }
    read_task_mapping(reader, "set", NAMES)
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
