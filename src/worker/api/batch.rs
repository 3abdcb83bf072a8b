//! Starts of a batch: each workflow is resolved once, then the runs are started, some at a time.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::FutureExt;
use serde_json::Value;
use worker::{Env, Result};

use crate::api::batch::{self, StartAnswer};
use crate::api::control::name_in;
use crate::api::error::Error;
use crate::api::scope;
use crate::api::start::{ResolvedWorkflow, StartBody};
use crate::base::trace::TraceParent;
use crate::protocol::caller::Caller;
use crate::protocol::run::RunRequest;
use crate::worker::api::fetch::{call_error, failure};
use crate::worker::api::prepare_start;
use crate::worker::platform::concurrent::run_all;
use crate::worker::run_client::RunClient;

/// How long a run's object may take to respond: with all of them silent, the request still ends before the entry gives it up.
const OBJECT_MS: u64 = 6_000;

type Resolved = std::result::Result<Rc<ResolvedWorkflow>, Error>;
/// An id, and the version that was asked for. A list: a batch has few of them, and it is smaller code than a map.
type Workflow = (String, Option<u64>, Resolved);

/// The answer of each item, in their order.
pub async fn start_all(
    env: &Env,
    caller: &Caller,
    items: &[Value],
    traceparent: Option<TraceParent>,
) -> Vec<StartAnswer> {
    let rules = prepare_start::time_rules(env);
    let starts: Vec<std::result::Result<(String, StartBody), Error>> = items
        .iter()
        .map(|item| {
            let (workflow, body) = StartBody::read_item(item, &rules)?;
            scope::check_workflow(&workflow, &caller.workflows)?;
            Ok((workflow, body))
        })
        .collect();
    let mut workflows: Vec<Workflow> = Vec::new();
    for (workflow, body) in starts.iter().flatten() {
        let version = body.request.version;
        if find(&workflows, workflow, version).is_none() {
            let resolved = or_failure(prepare_start::resolved(env, workflow, version, &rules).await);
            workflows.push((workflow.clone(), version, resolved));
        }
    }
    let answers = RefCell::new(vec![(0, String::new()); items.len()]);
    let calls = batch::groups(items).into_iter().map(|group| {
        let (starts, workflows, answers) = (&starts, &workflows, &answers);
        async move {
            for index in group {
                let caller = caller.or_named(name_in(&items[index]));
                let answer = match &starts[index] {
                    Ok((workflow, body)) => {
                        let resolved = find(workflows, workflow, body.request.version);
                        let resolved = resolved.expect("every workflow was resolved");
                        start(env, &caller, resolved, body, traceparent).await
                    }
                    Err(error) => Err(error.clone()),
                };
                answers.borrow_mut()[index] = answer.unwrap_or_else(|error| batch::refused(&error));
            }
        }
        .boxed_local()
    });
    run_all(calls.collect()).await;
    answers.into_inner()
}

fn find<'a>(workflows: &'a [Workflow], id: &str, version: Option<u64>) -> Option<&'a Resolved> {
    let mut found = workflows
        .iter()
        .filter(|(other, asked, _)| other == id && *asked == version);
    found.next().map(|(_, _, resolved)| resolved)
}

async fn start(
    env: &Env,
    caller: &Caller,
    resolved: &Resolved,
    body: &StartBody,
    traceparent: Option<TraceParent>,
) -> std::result::Result<StartAnswer, Error> {
    let resolved = resolved.as_ref().map_err(Clone::clone)?;
    let mut command = or_failure(prepare_start::prepare_resolved(env, resolved, body.clone()).await)?;
    command.traceparent = traceparent;
    let run_id = command.run_id.clone();
    let request = RunRequest::Start {
        command,
        wait_ms: Some(0),
    };
    let client = RunClient::new(env, &run_id, OBJECT_MS).on_behalf_of(Some(caller));
    let answer = client.send(&request).await.map_err(call_error)?;
    Ok(answer.into_parts())
}

/// What fails for one item is the outcome of that item.
fn or_failure<T>(result: Result<std::result::Result<T, Error>>) -> std::result::Result<T, Error> {
    result.unwrap_or_else(|error| Err(failure(&error)))
}
