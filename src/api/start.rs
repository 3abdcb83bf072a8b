//! Starting a run: the caller's request, and the checks that it passes before the run's object is created. Pure.

use std::rc::Rc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::base::ids;
use crate::base::limits::{ROW_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::base::time::Limit;
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::definition::snapshot::StoredSnapshot;
use crate::definition::timeouts::{TimeoutLayer, TimeoutRules};
use crate::json_schema::Schema;
use crate::protocol::start::{ResolvedVersion, StartRequest};

pub use crate::protocol::start::StartRun;

/// The body of `POST /v1/workflows/:id/runs`.
#[derive(Clone, Debug, PartialEq)]
pub struct StartBody {
    pub run_id: Option<String>,
    pub input: Value,
    pub request: StartRequest,
}

impl StartBody {
    pub fn read(body: &Value, rules: &TimeoutRules) -> Result<StartBody, Error> {
        control::read_with(Problems::new(*rules), body, read_fields)
    }

    /// An item of a batch: a workflow and the body of its start.
    pub fn read_item(item: &Value, rules: &TimeoutRules) -> Result<(String, StartBody), Error> {
        control::read_with(Problems::new(*rules), item, |reader| {
            let workflow = reader.required_id("workflow_id");
            let body = read_fields(reader)?;
            Some((workflow?, body))
        })
    }
}

fn read_fields(reader: &Reader) -> Option<StartBody> {
    let run_id = reader.string("run_id");
    if run_id.is_some_and(|id| !ids::is_run_id(id)) {
        reader.report("run_id", "invalid_id", ids::RUN_ID_RULE);
    }
    control::read_by(reader);
    let version = control::read_version(reader);
    let input = reader.value("input").cloned().unwrap_or_else(|| json!({}));
    let timeout = reader.limit("timeout", "timeout_ms");
    if timeout == Limit::Never {
        reader.report(
            "timeout_ms",
            "wrong_type",
            "a run cannot lift its workflow's limit; leave it out",
        );
    }
    Some(StartBody {
        run_id: run_id.map(str::to_string),
        input,
        request: StartRequest {
            version,
            timeout_ms: timeout.millis(),
            budget_ms: None,
            node_decides: false,
        },
    })
}

/// A workflow version with its tasks, actions and called workflows.
pub struct ResolvedWorkflow {
    stored: StoredSnapshot,
    text: Rc<RawValue>,
    input_schema: Option<Schema>,
    has_async: bool,
}

impl ResolvedWorkflow {
    pub fn new(stored: StoredSnapshot) -> Result<ResolvedWorkflow, Error> {
        let text = to_raw_value(&stored).map_err(|_| Error::internal())?;
        // A snapshot is one row. The snapshot of a child contains the workflows that the child may call.
        let check = |what: String, bytes| {
            let too_large = TooLarge::check(what, bytes, ROW_BYTES);
            too_large.map_err(|too_large| Error::new(422, "limit_exceeded", too_large.to_string()))
        };
        check(
            "the workflow with all its tasks, actions and called workflows".into(),
            text.get().len(),
        )?;
        let children = json_bytes(&stored.children);
        for child in &stored.children {
            let id = &child.workflow["id"];
            let what = format!("the called workflow {id} with all that it may call");
            check(what, children + json_bytes(child))?;
        }
        let schema = stored.workflow.get("input_schema");
        let schema = schema.filter(|schema| !schema.is_null()).map(Schema::compile);
        Ok(ResolvedWorkflow {
            text: text.into(),
            // A schema that does not compile was refused when the workflow was stored.
            input_schema: schema.and_then(Result::ok),
            has_async: stored.has_async(),
            stored,
        })
    }

    /// Whether an action of this workflow, or of one that it calls, gets its result by a callback.
    pub fn stored(&self) -> &StoredSnapshot {
        &self.stored
    }

    pub fn has_async(&self) -> bool {
        self.has_async
    }

    /// For a run that goes on with this version.
    pub fn for_run(&self, callback_secret: Option<String>) -> ResolvedVersion {
        ResolvedVersion {
            stored: Rc::clone(&self.text),
            callback_secret,
        }
    }

    pub fn bytes(&self) -> usize {
        self.text.get().len()
    }

    /// The start of a run whose request was checked before.
    pub fn start_unchecked(&self, run_id: String, body: StartBody) -> StartRun {
        StartRun {
            run_id,
            stored: Rc::clone(&self.text),
            input: body.input,
            request: body.request,
            parent: None,
            triggered_by: None,
            callback_secret: None,
            started_by: None,
            traceparent: None,
        }
    }
}

impl StartRun {
    pub fn new(run_id: String, body: StartBody, workflow: &ResolvedWorkflow) -> Result<StartRun, Error> {
        check_timeout(body.request.timeout_ms, &workflow.stored)?;
        // Numbers may be longer in the row than in the request.
        TooLarge::check("the input", json_bytes(&body.input), ROW_BYTES)
            .map_err(|too_large| Error::too_large(&too_large))?;
        if let Some(schema) = &workflow.input_schema {
            let problems = schema.validate(&body.input);
            if let Some(first) = problems.first() {
                let mut error = Error::new(
                    422,
                    "invalid_input",
                    format!(
                        "the input does not fit the workflow's input_schema: {}",
                        first.message
                    ),
                );
                error.pointer = Some(format!("/input{}", first.pointer));
                error.details = Some(
                    problems
                        .iter()
                        .map(|problem| {
                            json!({"pointer": format!("/input{}", problem.pointer), "code": "schema_mismatch", "message": problem.message})
                        })
                        .collect(),
                );
                return Err(error);
            }
        }
        Ok(workflow.start_unchecked(run_id, body))
    }
}

/// The caller's timeout must respect the same hard limit as the workflow's own.
fn check_timeout(timeout_ms: Option<u64>, stored: &StoredSnapshot) -> Result<(), Error> {
    let limit = timeout_ms.map_or(Limit::Unset, Limit::After);
    let exceeding = stored.workflow["allow_exceed_hard"] == Value::Bool(true);
    match stored
        .effective_preset()
        .reject(TimeoutLayer::Flow, limit, exceeding)
    {
        None => Ok(()),
        Some(refusal) => {
            let message = refusal.message("at the top of the workflow");
            let mut error = Error::new(422, refusal.code(), message);
            error.pointer = Some("/timeout_ms".into());
            Err(error)
        }
    }
}
