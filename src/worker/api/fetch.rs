//! The API Worker: routes and authorizes a request, reads its query and body, then forwards it to the catalogue, the index,
//! a run's object or a breaker's object.

use serde_json::{Value, json};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};
use worker::{Env, Result, Url};

use crate::api::auth::Identity;
use crate::api::batch;
use crate::api::body;
use crate::api::bulk::Operation;
use crate::api::callback::unknown as unknown_callback;
use crate::api::contract;
use crate::api::control::Control;
use crate::api::error::Error;
use crate::api::event::{self, TriggerOutcome, TriggeredStart};
use crate::api::live::Watch;
use crate::api::query::Query;
use crate::api::routes::Route;
use crate::api::scope;
use crate::base::from_json::from_json;
use crate::base::trace::TraceParent;
use crate::protocol::caller::Caller;
use crate::protocol::run::{PageRequest, RunRequest, WorkflowResponse};
use crate::run::Capability;
use crate::worker::api::authorize;
use crate::worker::api::batch::start_all;
use crate::worker::api::callback;
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::documents;
use crate::worker::api::live;
use crate::worker::api::prepare_start;
use crate::worker::api::publish_event::{self, Occurrence};
use crate::worker::api::replay;
use crate::worker::api::request::{header, read_bytes, traceparent};
use crate::worker::api::respond::{self, ApiResult, response};
use crate::worker::api::simulate;
use crate::worker::api::timeout;
use crate::worker::index::{breakers, gates, metrics, operations, runs};
use crate::worker::platform::http_client::{self, Peer};
use crate::worker::platform::{self, deadline};
use crate::worker::run_client::{CallError, RunClient};

const JSON: &str = "application/json";
const JSON_SCHEMA: &str = "application/schema+json";
const NDJSON: &str = "application/x-ndjson";
/// How long an object may take to respond, in addition to the wait that the caller asked for.
pub const OBJECT_MS: u64 = 10_000;

/// `bound`: the name of the Worker that calls over a service binding. It needs no credential.
pub async fn fetch(request: Request, env: Env, bound: Option<String>) -> Result<Response> {
    let (answer, identity) = match admit(&request, &env, bound).await {
        Ok((url, route, identity)) => {
            let path = route.path_without_secrets(url.path());
            let answer = handle(&request, &url, route, &identity, &env).await;
            if let Ok(answer) = &answer
                && let Some(code) = answer.forbidden_code().await
            {
                authorize::log_refusal(403, &code, &request, path, identity.caller.name.as_deref());
            }
            (answer, identity)
        }
        Err(error) => (Ok(ApiResponse::Json(Err(error))), Identity::ANONYMOUS),
    };
    let answer = match answer {
        Ok(ApiResponse::Json(result)) => response(result)?,
        Ok(ApiResponse::Ready(response)) => response,
        Err(error) => response(Err(failure(&error)))?,
    };
    Ok(respond::finish(&answer, identity.roles))
}

/// The cause is logged.
pub fn failure(error: &worker::Error) -> Error {
    let message = error.to_string();
    platform::log(json!({"level": "error", "event": "request_failed", "message": message}));
    Error::not_migrated(&message).unwrap_or_else(Error::internal)
}

enum ApiResponse {
    Json(ApiResult),
    /// A page of a list, or the response of an object, forwarded as it is.
    Ready(Response),
}

impl ApiResponse {
    /// The code of a 403. An object refuses what only it can know: the workflow of its run, or the one who started it.
    async fn forbidden_code(&self) -> Option<String> {
        match self {
            ApiResponse::Json(result) => {
                let error = result.as_ref().err().filter(|error| error.status == 403);
                error.map(|error| error.code.to_string())
            }
            ApiResponse::Ready(response) if response.status() == 403 => {
                let text = JsFuture::from(response.clone().ok()?.text().ok()?).await.ok()?;
                let body: Value = serde_json::from_str(&text.as_string()?).ok()?;
                body["error"]["code"].as_str().map(str::to_string)
            }
            ApiResponse::Ready(_) => None,
        }
    }
}

/// The route of a request, and who sends it.
async fn admit(
    request: &Request,
    env: &Env,
    bound: Option<String>,
) -> std::result::Result<(Url, Route, Identity), Error> {
    let url =
        Url::parse(&request.url()).map_err(|_| Error::bad_request("the URL of the request is invalid"))?;
    let route = Route::parse(&request.method(), url.path())?;
    let identity = match bound {
        Some(name) => Identity::bound_worker(&name),
        None => authorize::authorize(request, &url, env, &route).await?,
    };
    Ok((url, route, identity))
}

async fn handle(
    request: &Request,
    url: &Url,
    route: Route,
    identity: &Identity,
    env: &Env,
) -> Result<ApiResponse> {
    let rules = route.rules();
    // Before the body is read: a guess costs no more than this check.
    if let Route::Callback { capability } = &route
        && let Err(error) = callback::check(env, capability).await
    {
        return Ok(ApiResponse::Json(Err(error)));
    }
    let query = match Query::read(&route, url.query()) {
        Ok(query) => query,
        Err(error) => return Ok(ApiResponse::Json(Err(error))),
    };
    let body = match rules.body.is_read() {
        false => Value::Null,
        true => match read_bytes(request)
            .await?
            .and_then(|bytes| body::read(&route, &bytes))
        {
            Ok(body) => body,
            Err(error) => return Ok(ApiResponse::Json(Err(error))),
        },
    };
    let caller = identity.caller.or_named(body::name_in(&route, &body));
    let result = match route {
        Route::Health => Ok((200, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))),
        Route::ReadContract => {
            return Ok(ApiResponse::Ready(respond::text(200, JSON, contract::OPENAPI)?));
        }
        Route::ReadSchema { kind } => {
            let schema = contract::schema(kind);
            return Ok(ApiResponse::Ready(respond::text(200, JSON_SCHEMA, schema)?));
        }
        Route::Metrics => {
            let (text, rows_read) = metrics::scrape(&env.d1("DB")?).await?;
            return Ok(ApiResponse::Ready(respond::metrics(&text, rows_read)?));
        }
        Route::ReadIdentity => Ok((200, identity.view())),
        Route::PutDocument { kind, id } => documents::put(env, &caller, kind, &id, body).await?,
        Route::AnalyzeWorkflow { workflow } => match query.version() {
            Ok(version) => documents::analyze(env, &caller, &workflow, version, &body).await?,
            Err(error) => Err(error),
        },
        Route::ReadDocument { kind, id } => match query.version() {
            Ok(version) => documents::read(env, kind, &id, version).await?,
            Err(error) => Err(error),
        },
        Route::ListDocuments { kind } => match query.page_by_name(kind.name()) {
            Ok((after, limit)) => {
                let catalogue = Catalogue::new(env)?;
                let page = catalogue.list(kind, &after, limit, &caller.workflows).await?;
                return Ok(ApiResponse::Ready(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::ListRuns => match query.run_list().and_then(|list| list.within(&caller.workflows)) {
            Ok(list) => {
                let page = runs::list(&env.d1("DB")?, &list).await?;
                return Ok(ApiResponse::Ready(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::StartRun { workflow } => {
            let wait_ms = match query.wait_ms() {
                Ok(wait_ms) => wait_ms,
                Err(error) => return Ok(ApiResponse::Json(Err(error))),
            };
            match prepare_start::from_request(env, &workflow, &body).await? {
                Ok(mut command) => {
                    command.traceparent = traceparent(request);
                    let run = command.run_id.clone();
                    let wait_ms = Some(wait_ms);
                    return forward(env, Some(&caller), &run, RunRequest::Start { command, wait_ms }).await;
                }
                Err(error) => Err(error),
            }
        }
        Route::StartBatch => match batch::items(&body) {
            Ok(items) => Ok((
                200,
                batch::response(start_all(env, &caller, items, traceparent(request)).await),
            )),
            Err(error) => Err(error),
        },
        Route::Simulate => simulate::simulate(env, &caller, &body).await?,
        Route::StartOperation { control } => start_operation(env, caller, &control, &body).await?,
        Route::ReadOperation { id } => {
            let view = operations::read(&env.d1("DB")?, &caller, &id).await?;
            view.map(|view| (200, view))
        }
        Route::ReadRun { run } => match query.wait_ms() {
            Ok(wait_ms) => return forward(env, Some(&caller), &run, RunRequest::Read { wait_ms }).await,
            Err(error) => Err(error),
        },
        Route::ListTokens { run } => match (query.after(), query.limit()) {
            (Ok(after), Ok(limit)) => {
                return forward(
                    env,
                    Some(&caller),
                    &run,
                    RunRequest::ListTokens(PageRequest { after, limit }),
                )
                .await;
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        },
        Route::ListEvents { run } => match (query.after(), query.limit()) {
            (Ok(after), Ok(limit)) => {
                return forward(
                    env,
                    Some(&caller),
                    &run,
                    RunRequest::ListEvents(PageRequest { after, limit }),
                )
                .await;
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        },
        Route::ListNotifications { run } => match (query.after(), query.limit()) {
            (Ok(after), Ok(limit)) => {
                let request = RunRequest::ListNotifications(PageRequest { after, limit });
                return forward(env, Some(&caller), &run, request).await;
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        },
        Route::WatchRun { run } => match Watch::read(&query, header(request, "last-event-id").as_deref()) {
            Ok(watch) => match live::watch(request, env, &caller, &run, watch).await {
                Ok(response) => return Ok(ApiResponse::Ready(response)),
                Err(error) => Err(call_error(error)),
            },
            Err(error) => Err(error),
        },
        Route::ListTimeouts { run } => {
            let accept = header(request, "accept").unwrap_or_default();
            if accept.contains(NDJSON) {
                return timeout_lines(env, &caller, &run).await;
            }
            match (query.after(), query.limit()) {
                (Ok(after), Ok(limit)) => {
                    return forward(
                        env,
                        Some(&caller),
                        &run,
                        RunRequest::ListTimeouts(PageRequest { after, limit }),
                    )
                    .await;
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
        Route::ReadTimeout { run, id } => return read_timeout(env, &caller, &run, id).await,
        Route::ReadDeliverable { run } => {
            return forward(env, Some(&caller), &run, RunRequest::ReadDeliverable).await;
        }
        Route::ReadResumeOptions { run } => {
            return forward(env, Some(&caller), &run, RunRequest::ReadResumeOptions).await;
        }
        Route::ExportRun { run } => match query.redacts_values() {
            Ok(is_redacted) => match replay::export(env, &caller, &run, is_redacted).await? {
                Ok(text) => return Ok(ApiResponse::Ready(respond::text(200, JSON, &text)?)),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        },
        Route::WhatIf { run } => replay::what_if(env, &caller, &run, &body).await?,
        Route::Callback { capability } => return deliver_callback(env, capability, body).await,
        Route::PublishEvent { name } => {
            let key = header(request, "idempotency-key");
            publish(env, &caller, &name, key, &body, traceparent(request)).await?
        }
        Route::ListGates => match query.gate_list() {
            Ok(list) => {
                let page = gates::list(&env.d1("DB")?, &caller.workflows, &list).await?;
                return Ok(ApiResponse::Ready(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::ListBreakers => match query.page_by_name(breakers::CURSOR) {
            Ok((after, limit)) => {
                let page = breakers::list(&env.d1("DB")?, &after, limit).await?;
                return Ok(ApiResponse::Ready(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::ResetBreaker { key } => {
            return reset_breaker(env, &caller, &key).await;
        }
        Route::Control { run, control } => {
            let version = control.version(&body);
            match version.and_then(|version| Ok((version, control.request(body)?))) {
                Ok((None, request)) => return forward(env, Some(&caller), &run, request).await,
                Ok((Some(version), request)) => {
                    return forward_on_version(env, &caller, &run, version, request).await;
                }
                Err(error) => Err(error),
            }
        }
    };
    Ok(ApiResponse::Json(result))
}

/// With a key of the caller, publishing the event again starts nothing twice.
async fn publish(
    env: &Env,
    caller: &Caller,
    name: &str,
    key: Option<String>,
    payload: &Value,
    traceparent: Option<TraceParent>,
) -> Result<ApiResult> {
    let key = match key {
        None => platform::random_id()?,
        Some(key) => match event::check_key(&key) {
            Ok(()) => key,
            Err(error) => return Ok(Err(error)),
        },
    };
    let occurrence = Occurrence {
        name,
        key: &key,
        payload,
        hops: 1,
        root: None,
        started_by: caller.name.as_deref(),
        traceparent,
    };
    let workflows = publish_event::triggered(env, name).await?;
    if let Err(error) = scope::check_event(name, &workflows, &caller.workflows) {
        return Ok(Err(error));
    }
    let starts = match publish_event::start_all(env, &occurrence, &workflows).await {
        Ok(starts) => starts,
        Err(message) => return Err(worker::Error::RustError(message)),
    };
    let is_started = |start: &TriggeredStart| matches!(start.outcome, TriggerOutcome::Started { .. });
    if starts.iter().any(is_started) {
        audit("publish_event", caller, json!({"event_name": name, "key": key}));
    }
    Ok(event::response(name, &key, &starts))
}

/// Says who changed what. Run objects log the changes of their runs.
pub fn audit(action: &str, caller: &Caller, mut what: Value) {
    what["level"] = json!("info");
    what["event"] = json!("audit");
    what["action"] = json!(action);
    what["by"] = json!(caller.name);
    platform::log(what);
}

/// Forwards the request to the run's object and its response to the caller.
async fn forward(env: &Env, caller: Option<&Caller>, run: &str, request: RunRequest) -> Result<ApiResponse> {
    let timeout_ms = request.wait_ms() + OBJECT_MS;
    let client = RunClient::new(env, run, timeout_ms).on_behalf_of(caller);
    match client.forward(&request).await {
        Ok(response) => Ok(ApiResponse::Ready(response)),
        Err(error) => Ok(ApiResponse::Json(Err(call_error(error)))),
    }
}

/// Forwards a retry or restart with another version of the run's workflow. Only the object knows which workflow that is, and
/// whether the caller may reach it.
async fn forward_on_version(
    env: &Env,
    caller: &Caller,
    run: &str,
    version: u64,
    request: RunRequest,
) -> Result<ApiResponse> {
    let response = match forward(env, Some(caller), run, RunRequest::ReadWorkflow).await? {
        ApiResponse::Ready(response) if response.status() == 200 => response,
        // An object of an earlier build does not know the request.
        ApiResponse::Ready(response) if response.status() == 400 => {
            return Ok(ApiResponse::Json(Err(other_build())));
        }
        refused => return Ok(refused),
    };
    let text = JsFuture::from(response.text()?).await?.as_string();
    let workflow: WorkflowResponse = from_json(&text.unwrap_or_default())?;
    match prepare_start::version_for_run(env, &workflow.workflow_id, version, run).await? {
        Ok(resolved) => forward(env, Some(caller), run, request.on_version(resolved)).await,
        Err(error) => Ok(ApiResponse::Json(Err(error))),
    }
}

/// What a caller reads when an object does not answer.
pub fn call_error(error: CallError) -> Error {
    match error {
        CallError::TimedOut => timed_out(),
        CallError::OtherBuild => other_build(),
        CallError::Failed(message) => failure(&worker::Error::RustError(message)),
    }
}

fn other_build() -> Error {
    Error::new(
        503,
        "other_build",
        "a new version of Curfew is being deployed; nothing was done, repeat the request",
    )
}

/// The work is done in the background: see `operations`.
async fn start_operation(env: &Env, caller: Caller, control: &Control, body: &Value) -> Result<ApiResult> {
    let now = platform::now();
    let operation = match Operation::read(control, body, caller, now) {
        Ok(operation) => operation,
        Err(error) => return Ok(Err(error)),
    };
    let kind = operation.request.audited_action().unwrap_or_default();
    let id = operations::create(env, kind, &operation, now).await?;
    audit(
        "start_operation",
        &operation.caller,
        json!({"kind": kind, "operation_id": id}),
    );
    Ok(Ok((202, json!({"operation_id": id}))))
}

/// Forwards the result of an async action. What the object does not know gets the response of every wrong capability.
async fn deliver_callback(env: &Env, capability: String, body: Value) -> Result<ApiResponse> {
    let Some(Capability { run_id, .. }) = Capability::parse(&capability) else {
        return Ok(ApiResponse::Json(Err(unknown_callback())));
    };
    let request = RunRequest::Callback { capability, body };
    // Not on behalf of a caller: the capability reaches its one attempt.
    match forward(env, None, &run_id, request).await? {
        ApiResponse::Ready(response) if response.status() == 404 => {
            Ok(ApiResponse::Json(Err(unknown_callback())))
        }
        other => Ok(other),
    }
}

async fn reset_breaker(env: &Env, caller: &Caller, key: &str) -> Result<ApiResponse> {
    let breaker: Peer = env.durable_object("BREAKERS")?.get_by_name(key)?.into_rpc();
    let request = http_client::Request {
        url: "http://breaker/reset",
        method: "POST",
        headers: &[],
        body: None,
    };
    match deadline::within(OBJECT_MS, request.send(&breaker)).await {
        Some(Ok(response)) => {
            if response.status() == 200 {
                audit("reset_breaker", caller, json!({"breaker": key}));
            }
            Ok(ApiResponse::Ready(response.into_raw()))
        }
        Some(Err(error)) => Err(worker::Error::RustError(error.into())),
        None => Ok(ApiResponse::Json(Err(timed_out()))),
    }
}

fn timed_out() -> Error {
    Error::new(
        504,
        "timeout",
        "the object did not answer in time; the request may or may not have been carried out",
    )
}

/// A record of the object, with what the index knows of its node.
async fn read_timeout(env: &Env, caller: &Caller, run: &str, id: u64) -> Result<ApiResponse> {
    let response = match forward(env, Some(caller), run, RunRequest::ReadTimeout { id }).await? {
        ApiResponse::Ready(response) if response.status() == 200 => response,
        other => return Ok(other),
    };
    let text = JsFuture::from(response.text()?).await?.as_string();
    let view = serde_json::from_str(&text.unwrap_or_default())?;
    Ok(ApiResponse::Json(Ok((200, timeout::add_usual(env, view).await))))
}

/// The timeout log of a run, one JSON object per line.
async fn timeout_lines(env: &Env, caller: &Caller, run: &str) -> Result<ApiResponse> {
    let response = match forward(env, Some(caller), run, RunRequest::ReadTimeoutLines).await? {
        ApiResponse::Ready(response) if response.status() == 200 => response,
        other => return Ok(other),
    };
    let text = JsFuture::from(response.text()?)
        .await?
        .as_string()
        .unwrap_or_default();
    let lines: Vec<Value> = serde_json::from_str(&text)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(ApiResponse::Ready(respond::text(200, NDJSON, &text)?))
}
