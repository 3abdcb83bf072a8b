//! Starts of a batch: each workflow is resolved once, then the runs are started, some at a time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::Value;
use worker::{Env, Result};

use crate::api::batch::{self, StartAnswer};
use crate::api::control::name_in;
use crate::api::error::Error;
use crate::api::scope;
use crate::api::start::{ResolvedWorkflow, StartBody};
use crate::protocol::caller::Caller;
use crate::protocol::run::RunRequest;
use crate::worker::api::fetch::{call_error, failure};
use crate::worker::api::prepare_start;
use crate::worker::run_client::RunClient;

/// The platform lets an invocation wait for this many connections at once.
const CONCURRENT_STARTS: usize = 6;
/// How long a run's object may take to respond: with all of them silent, the request still ends before the entry gives it up.
const OBJECT_MS: u64 = 6_000;

type Resolved = std::result::Result<Rc<ResolvedWorkflow>, Error>;
/// By id and requested version.
type Workflows = BTreeMap<(String, Option<u64>), Resolved>;

/// The answer of each item, in their order.
pub async fn start_all(env: &Env, caller: &Caller, items: &[Value]) -> Vec<StartAnswer> {
    let rules = prepare_start::time_rules(env);
    let starts: Vec<std::result::Result<(String, StartBody), Error>> = items
        .iter()
        .map(|item| {
            let (workflow, body) = StartBody::read_item(item, &rules)?;
            scope::check_workflow(&workflow, &caller.workflows)?;
            Ok((workflow, body))
        })
        .collect();
    let keys = starts.iter().flatten();
    let keys = keys.map(|(workflow, body)| (workflow.clone(), body.request.version));
    let workflows = RefCell::new(
        keys.map(|key| (key, Err(Error::internal())))
            .collect::<Workflows>(),
    );
    let keys: Vec<_> = workflows.borrow().keys().cloned().collect();
    let resolving = iter(keys).for_each_concurrent(CONCURRENT_STARTS, |key| {
        let (rules, workflows) = (&rules, &workflows);
        async move {
            let resolved = or_failure(prepare_start::resolved(env, &key.0, key.1, rules).await);
            workflows.borrow_mut().insert(key, resolved);
        }
    });
    resolving.await;
    let workflows = workflows.into_inner();
    let answers: RefCell<BTreeMap<usize, StartAnswer>> = RefCell::default();
    let starting = iter(batch::groups(items)).for_each_concurrent(CONCURRENT_STARTS, |group| {
        let (starts, workflows, answers) = (&starts, &workflows, &answers);
        async move {
            for index in group {
                let caller = caller.or_named(name_in(&items[index]));
                let answer = match &starts[index] {
                    Ok((workflow, body)) => {
                        let key = (workflow.clone(), body.request.version);
                        start(env, &caller, &workflows[&key], body).await
                    }
                    Err(error) => Err(error.clone()),
                };
                let answer = answer.unwrap_or_else(|error| batch::refused(&error));
                answers.borrow_mut().insert(index, answer);
            }
        }
    });
    starting.await;
    answers.into_inner().into_values().collect()
}

async fn start(
    env: &Env,
    caller: &Caller,
    resolved: &Resolved,
    body: &StartBody,
) -> std::result::Result<StartAnswer, Error> {
    let resolved = resolved.as_ref().map_err(Clone::clone)?;
    let command = or_failure(prepare_start::prepare_resolved(env, resolved, body.clone()).await)?;
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
