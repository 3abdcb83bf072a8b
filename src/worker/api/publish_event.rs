//! Raising an event: every workflow that it triggers is started, by the way every other run is. Both for the API, where
//! something happened outside, and for a run's object that has an event in its outbox.

use futures_util::future::join_all;
use serde_json::{Value, json};
use worker::Env;

use crate::api::event::{self, Outcome, Start};
use crate::api::start::StartBody;
use crate::run::{EventRef, StartRequest, TriggeredBy};
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::prepare_start;
use crate::worker::index::event_starts;
use crate::worker::platform::call::{self, Call, Peer};
use crate::worker::platform::{self, deadline};

/// How long a run's object may take to answer.
const OBJECT_MS: u64 = 8_000;
/// Connections of an invocation that may wait for an answer at once.
const AT_ONCE: usize = 6;
/// Workflows looked up at a time.
const LOOKED_AT: u32 = 24;

/// One time that an event happens.
#[derive(Clone, Copy)]
pub struct Occurrence<'a> {
    pub name: &'a str,
    pub key: &'a str,
    pub payload: &'a Value,
    pub hops: u32,
    /// The first of the events that led to this one; `None`: this one.
    pub root: Option<&'a EventRef>,
}

impl Occurrence<'_> {
    /// The first of the events that the runs it starts come from.
    fn root(&self) -> EventRef {
        let itself = || EventRef {
            event: self.name.to_string(),
            key: self.key.to_string(),
        };
        self.root.cloned().unwrap_or_else(itself)
    }
}

/// Some of the workflows.
pub struct Page {
    pub starts: Vec<Start>,
    /// The last of them.
    pub after: Option<String>,
    /// There are no others.
    pub is_last: bool,
}

/// Starts every workflow. An error: not all were answered, and it is to be raised again.
pub async fn all(env: &Env, event: &Occurrence<'_>) -> Result<Vec<Start>, String> {
    let mut starts = Vec::new();
    let mut after = String::new();
    loop {
        let page = page(env, event, &after, |wanted| wanted).await?;
        starts.extend(page.starts);
        match page.after.filter(|_| !page.is_last) {
            Some(last) => after = last,
            None => return Ok(starts),
        }
    }
}

/// Starts the next workflows behind `after`; `take` says for how many of those that were found there is room.
pub async fn page(
    env: &Env,
    event: &Occurrence<'_>,
    after: &str,
    take: impl FnOnce(u32) -> u32,
) -> Result<Page, String> {
    let catalogue = Catalogue::new(env).map_err(|error| error.to_string())?;
    let found = catalogue.triggered(event.name, after, LOOKED_AT).await;
    let workflows = found.map_err(|error| error.to_string())?;
    let room = take(workflows.len() as u32) as usize;
    let wanted = &workflows[..room.min(workflows.len())];
    let admitted = admitted(env, event, wanted).await;
    let admitted = admitted.map_err(|error| error.to_string())?;
    let (mut starts, mut failed) = (Vec::new(), None);
    for few in wanted.chunks(AT_ONCE) {
        let few = few.iter().map(|workflow| start(env, event, workflow, &admitted));
        for start in join_all(few).await {
            // One that cannot be reached keeps nobody else from starting; the whole page is raised again.
            match start {
                Ok(start) => starts.push(start),
                Err(message) => failed = Some(message),
            }
        }
    }
    if let Some(message) = failed {
        return Err(message);
    }
    Ok(Page {
        after: starts.last().map(|start| start.workflow_id.clone()),
        is_last: starts.len() == workflows.len() && (workflows.len() as u32) < LOOKED_AT,
        starts,
    })
}

/// The runs that may be started of those workflows. Only an event that a run emits which was itself started by one is held
/// against the limit of the first: one from outside starts what it triggers, and what that emits is counted when it does.
async fn admitted(env: &Env, event: &Occurrence<'_>, workflows: &[String]) -> worker::Result<Vec<String>> {
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
) -> Result<Start, String> {
    let run_id = event::run_id(event.name, event.key, workflow);
    let wish = StartBody {
        run_id: Some(run_id.clone()),
        input: event.payload.clone(),
        request: StartRequest::default(),
    };
    let outcome = |outcome| {
        Ok(Start {
            workflow_id: workflow.to_string(),
            outcome,
        })
    };
    let prepared = match admitted.contains(&run_id) {
        true => {
            let prepared = prepare_start::prepare(env, workflow, wish, &prepare_start::time_rules(env)).await;
            prepared.map_err(|error| error.to_string())?
        }
        false => Err(event::too_many_runs(&event.root())),
    };
    let mut command = match prepared {
        Ok(command) => command,
        Err(error) => {
            // Never the payload: the message may quote it.
            let root = event.root();
            platform::log(json!({
                "level": "warn", "event": "trigger_refused", "name": event.name, "key": event.key,
                "workflow_id": workflow, "code": error.code, "pointer": error.pointer,
                "root_event": root.event, "root_key": root.key,
            }));
            return outcome(Outcome::Refused(error));
        }
    };
    command.triggered_by = Some(TriggeredBy {
        event: event.name.to_string(),
        key: event.key.to_string(),
        hops: event.hops,
        root: event.root.cloned(),
    });
    let body = serde_json::to_string(&command).map_err(|error| error.to_string())?;
    let namespace = env.durable_object("RUNS").map_err(|error| error.to_string())?;
    let stub = namespace
        .get_by_name(&run_id)
        .map_err(|error| error.to_string())?;
    let stub: Peer = stub.into_rpc();
    let answer = deadline::within(
        OBJECT_MS,
        call::send(&stub, Call::post("http://run/start", &body)),
    )
    .await;
    match answer.ok_or("no answer in time")??.status() {
        201 => outcome(Outcome::Started { run_id }),
        200 => outcome(Outcome::Known { run_id }),
        409 => outcome(Outcome::Taken { run_id }),
        status => Err(format!("the start of {run_id} was answered with status {status}")),
    }
}
