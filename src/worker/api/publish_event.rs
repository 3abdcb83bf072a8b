//! Publishes an event: starts every workflow that it triggers. Used by the API and by run objects, which publish the events of
//! their outbox. Safe to repeat: the run ids are derived from the event, and a start of an existing run does nothing.

use futures_util::future::join_all;
use serde_json::{Value, json};
use worker::Env;

use crate::api::event::{self, TriggerOutcome, TriggeredStart};
use crate::api::start::StartBody;
use crate::base::limits;
use crate::base::trace::TraceParent;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::run::{EventRef, StartRequest, TriggeredBy};
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::prepare_start;
use crate::worker::index::event_starts;
use crate::worker::platform;
use crate::worker::run_client::RunClient;

/// How long a run's object may take to respond.
const OBJECT_MS: u64 = 8_000;
/// The platform lets an invocation wait for this many connections at once.
const CONCURRENT_STARTS: usize = 6;
/// Workflows per page.
const PAGE_WORKFLOWS: u32 = 24;
/// Workflows per statement where an event starts all of them at once: nearly always all there are.
const LISTED_WORKFLOWS: u32 = limits::WORKFLOWS_PER_EVENT as u32 + 1;

/// One published event.
#[derive(Clone, Copy)]
pub struct Occurrence<'a> {
    pub name: &'a str,
    pub key: &'a str,
    pub payload: &'a Value,
    pub hops: u32,
    /// The first event of the chain that led to this one; `None`: this event is the first.
    pub root: Option<&'a EventRef>,
    /// The name that the runs it starts are given.
    pub started_by: Option<&'a str>,
    /// The trace context that the runs it starts continue.
    pub traceparent: Option<TraceParent>,
}

impl Occurrence<'_> {
    fn root(&self) -> EventRef {
        let itself = || EventRef {
            event: self.name.to_string(),
            key: self.key.to_string(),
        };
        self.root.cloned().unwrap_or_else(itself)
    }
}

/// The workflows that one call has started.
pub struct Page {
    pub starts: Vec<TriggeredStart>,
    /// The last workflow of the page; the next page starts after it.
    pub after: Option<String>,
    pub is_last: bool,
}

/// All workflows that an event starts.
pub async fn triggered(env: &Env, event: &str) -> worker::Result<Vec<String>> {
    let catalogue = Catalogue::new(env)?;
    let mut workflows: Vec<String> = Vec::new();
    loop {
        let after = workflows.last().map_or("", String::as_str);
        let page = catalogue.triggered(event, after, LISTED_WORKFLOWS).await?;
        let is_last = (page.len() as u32) < LISTED_WORKFLOWS;
        workflows.extend(page);
        if is_last {
            return Ok(workflows);
        }
    }
}

/// Starts the next workflows after `after`. `take` gets the number of workflows found and returns how many to start.
pub async fn start_page(
    env: &Env,
    event: &Occurrence<'_>,
    after: &str,
    take: impl FnOnce(u32) -> u32,
) -> Result<Page, String> {
    let catalogue = Catalogue::new(env).map_err(|error| error.to_string())?;
    let found = catalogue.triggered(event.name, after, PAGE_WORKFLOWS).await;
    let workflows = found.map_err(|error| error.to_string())?;
    let count = take(workflows.len() as u32) as usize;
    let wanted = &workflows[..count.min(workflows.len())];
    let starts = start_all(env, event, wanted).await?;
    Ok(Page {
        after: starts.last().map(|start| start.workflow_id.clone()),
        is_last: starts.len() == workflows.len() && (workflows.len() as u32) < PAGE_WORKFLOWS,
        starts,
    })
}

/// Starts the workflows. After an error the event must be published again: not every start was confirmed.
pub async fn start_all(
    env: &Env,
    event: &Occurrence<'_>,
    workflows: &[String],
) -> Result<Vec<TriggeredStart>, String> {
    let admitted = admit(env, event, workflows).await;
    let admitted = admitted.map_err(|error| error.to_string())?;
    let (mut starts, mut failed) = (Vec::new(), None);
    for chunk in workflows.chunks(CONCURRENT_STARTS) {
        let chunk = chunk
            .iter()
            .map(|workflow| start(env, event, workflow, &admitted));
        for start in join_all(chunk).await {
            // A start that fails does not prevent the others. All are repeated later.
            match start {
                Ok(start) => starts.push(start),
                Err(message) => failed = Some(message),
            }
        }
    }
    match failed {
        Some(message) => Err(message),
        None => Ok(starts),
    }
}

/// The ids of the runs that may be started. The limit of runs per first event applies to events that were emitted by runs; an
/// event from outside starts every workflow that it triggers.
async fn admit(env: &Env, event: &Occurrence<'_>, workflows: &[String]) -> worker::Result<Vec<String>> {
    let runs = workflows
        .iter()
        .map(|workflow| event::run_id(event.name, event.key, workflow));
    let runs: Vec<String> = runs.collect();
    match event.hops > 1 && !runs.is_empty() {
        true => event_starts::admit(&env.d1("DB")?, &event.root(), &runs, platform::now()).await,
        false => Ok(runs),
    }
}

async fn start(
    env: &Env,
    event: &Occurrence<'_>,
    workflow: &str,
    admitted: &[String],
) -> Result<TriggeredStart, String> {
    let run_id = event::run_id(event.name, event.key, workflow);
    let body = StartBody {
        run_id: Some(run_id.clone()),
        input: event.payload.clone(),
        request: StartRequest::default(),
    };
    let outcome = |outcome| {
        Ok(TriggeredStart {
            workflow_id: workflow.to_string(),
            outcome,
        })
    };
    let prepared = match admitted.contains(&run_id) {
        true => {
            let prepared = prepare_start::prepare(env, workflow, body, &prepare_start::time_rules(env)).await;
            prepared.map_err(|error| error.to_string())?
        }
        false => Err(event::too_many_runs(&event.root())),
    };
    let mut start_run = match prepared {
        Ok(start_run) => start_run,
        Err(error) => {
            // Not the message: it may quote the payload.
            let root = event.root();
            platform::log(json!({
                "level": "warn", "event": "trigger_refused", "name": event.name, "key": event.key,
                "workflow_id": workflow, "code": error.code, "pointer": error.pointer,
                "root_event": root.event, "root_key": root.key,
            }));
            return outcome(TriggerOutcome::Refused(error));
        }
    };
    start_run.triggered_by = Some(TriggeredBy {
        event: event.name.to_string(),
        key: event.key.to_string(),
        hops: event.hops,
        root: event.root.cloned(),
    });
    start_run.started_by = event.started_by.map(str::to_string);
    start_run.traceparent = event.traceparent;
    let request = RunRequest::Start {
        command: start_run,
        wait_ms: None,
    };
    match RunClient::new(env, &run_id, OBJECT_MS).send(&request).await? {
        RunResponse::Created(_) => outcome(TriggerOutcome::Started { run_id }),
        RunResponse::Done(_) => outcome(TriggerOutcome::AlreadyStarted { run_id }),
        RunResponse::Conflict(_) => outcome(TriggerOutcome::KeyUsed { run_id }),
        other => {
            let (status, _) = other.into_parts();
            Err(format!("the start of {run_id} was answered with status {status}"))
        }
    }
}
