//! The API Worker: who asks, what for, is it allowed; then the catalogue, the index or the run's object answers.

use std::cell::Cell;

use futures_util::StreamExt;
use serde_json::{Value, json};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};
use worker::{Env, Result, Url};

use super::auth;
use super::catalogue::Catalogue;
use super::error::Error;
use super::event;
use super::launch;
use super::raise::{self, Occurrence};
use super::respond::{self, Answer, response};
use super::routes::Route;
use crate::engine::Capability;
use crate::model::event::trigger_event;
use crate::model::limits;
use crate::model::snapshot::{self, Check, DocumentKind, Library};
use crate::platform::call::{self, Call, Peer};
use crate::platform::{self, deadline};
use crate::watch::cursor::{self, GatePosition};
use crate::watch::run_filter::{RunList, read_limit};
use crate::watch::{breakers, gates, runs};

/// The longest a caller may wait for a run to end in one request.
const WAIT_MS_MAX: u64 = 30_000;
const NDJSON: &str = "application/x-ndjson";
/// How long a run's object may take to answer, beyond what the caller asked to wait.
const OBJECT_MS: u64 = 10_000;
/// A body that is somewhat too large is heard to its end: a caller that is cut off while it sends sees a broken
/// connection and never the reason.
const DRAINED_BYTES: usize = 8 * limits::REQUEST_BYTES;

pub async fn fetch(request: Request, env: Env) -> Result<Response> {
    match handle(request, &env).await {
        Ok(Reply::Answer(answer)) => response(answer),
        Ok(Reply::Passed(passed)) => Ok(passed),
        Err(error) => {
            platform::log(json!({"level": "error", "event": "request_failed", "message": error.to_string()}));
            response(Err(Error::internal()))
        }
    }
}

enum Reply {
    Answer(Answer),
    /// The object's own response.
    Passed(Response),
}

async fn handle(request: Request, env: &Env) -> Result<Reply> {
    let url = Url::parse(&request.url())?;
    let route = match Route::parse(&request.method(), url.path()) {
        Ok(route) => route,
        Err(error) => return Ok(Reply::Answer(Err(error))),
    };
    if let Some(role) = route.role() {
        let tokens = env.var("CURFEW_TOKENS").ok().map(|value| value.to_string());
        let authorization = header(&request, "authorization");
        let host = url.host_str().unwrap_or_default();
        warn_without_tokens(tokens.as_deref());
        if let Err(error) = auth::authorize(tokens.as_deref(), authorization.as_deref(), host, role) {
            return Ok(Reply::Answer(Err(error)));
        }
    }
    let answer = match route {
        Route::Health => Ok((200, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))),
        Route::PutDocument { kind, id } => match read_body(&request).await? {
            Ok(body) => put_document(env, kind, &id, body).await?,
            Err(error) => Err(error),
        },
        Route::ReadDocument { kind, id } => read_document(env, kind, &id, &url).await?,
        Route::ListDocuments { kind } => match page_by_name(kind.name(), &url) {
            Ok((after, limit)) => {
                let page = Catalogue::new(env)?.list(kind, &after, limit).await?;
                return Ok(Reply::Passed(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::ListRuns => match RunList::read(&pairs(&url)) {
            Ok(list) => {
                let page = runs::list(&env.d1("DB")?, &list).await?;
                return Ok(Reply::Passed(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::StartRun { workflow } => {
            let command = match read_body(&request).await? {
                Ok(body) => launch::asked(env, &workflow, &body).await?,
                Err(error) => Err(error),
            };
            match (command, wait_ms(&url)) {
                (Ok(command), Ok(wait_ms)) => {
                    let body = serde_json::to_string(&command)?;
                    let path = format!("/start?wait_ms={wait_ms}");
                    return ask_object(env, &command.run_id, "POST", &path, Some(&body), wait_ms).await;
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
        Route::ReadRun { run } => match wait_ms(&url) {
            Ok(wait_ms) => {
                let path = format!("/run?wait_ms={wait_ms}");
                return ask_object(env, &run, "GET", &path, None, wait_ms).await;
            }
            Err(error) => Err(error),
        },
        Route::ListTokens { run } => {
            let after = query(&url, "cursor").map_or(Ok(0), |text| text.parse::<u64>());
            match (after, limit(&url)) {
                (Ok(after), Ok(limit)) => {
                    let path = format!("/tokens?after={after}&limit={limit}");
                    return ask_object(env, &run, "GET", &path, None, 0).await;
                }
                (Err(_), _) => Err(cursor::refusal()),
                (_, Err(error)) => Err(error),
            }
        }
        Route::ListHistory { run, door } => {
            let accept = header(&request, "accept").unwrap_or_default();
            if door == "/timeouts" && accept.contains(NDJSON) {
                return timeout_lines(env, &run).await;
            }
            // Events are counted, so that the last number seen is where to go on from.
            let after = query(&url, "after").or_else(|| query(&url, "cursor"));
            match (after.map_or(Ok(0), |text| text.parse::<u64>()), limit(&url)) {
                (Ok(after), Ok(limit)) => {
                    let path = format!("{door}?after={after}&limit={limit}");
                    return ask_object(env, &run, "GET", &path, None, 0).await;
                }
                (Err(_), _) => Err(Error::new(
                    400,
                    "invalid_request",
                    "after is the number of an event",
                )),
                (_, Err(error)) => Err(error),
            }
        }
        Route::ReadTimeout { run, id } => {
            return ask_object(env, &run, "GET", &format!("/timeout?id={id}"), None, 0).await;
        }
        Route::ReadReport { run, door } => return ask_object(env, &run, "GET", door, None, 0).await,
        Route::Callback { capability } => {
            match (Capability::parse(&capability), read_body(&request).await?) {
                (_, Err(error)) => Err(error),
                (None, Ok(_)) => Err(Error::not_found("the callback")),
                (Some(_), Ok(body)) if limits::depth_of(&body) > limits::DEPTH => {
                    Err(Error::too_deep("the body"))
                }
                (Some(known), Ok(body)) => {
                    let body = json!({"capability": capability, "body": body}).to_string();
                    return ask_object(env, &known.run_id, "POST", "/callback", Some(&body), 0).await;
                }
            }
        }
        Route::RaiseEvent { name } => raise_event(env, name, &request).await?,
        Route::ListGates => {
            let after = query(&url, "cursor").map(|text| GatePosition::read(&text));
            match (after.transpose(), limit(&url)) {
                (Ok(after), Ok(limit)) => {
                    let after = after.unwrap_or_default();
                    let page = gates::list(&env.d1("DB")?, &after, limit).await?;
                    return Ok(Reply::Passed(respond::page(&page)?));
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
        Route::ListBreakers => match page_by_name(breakers::CURSOR, &url) {
            Ok((after, limit)) => {
                let page = breakers::list(&env.d1("DB")?, &after, limit).await?;
                return Ok(Reply::Passed(respond::page(&page)?));
            }
            Err(error) => Err(error),
        },
        Route::ResetBreaker { key } => {
            let breaker: Peer = env.durable_object("BREAKERS")?.get_by_name(&key)?.into_rpc();
            return ask(&breaker, "POST", "http://breaker/reset", None, 0).await;
        }
        Route::Command { run, door } => match read_body(&request).await? {
            Ok(body) if limits::depth_of(&body) > limits::DEPTH => Err(Error::too_deep("the body")),
            Ok(body) => {
                return ask_object(env, &run, "POST", &door, Some(&body.to_string()), 0).await;
            }
            Err(error) => Err(error),
        },
    };
    Ok(Reply::Answer(answer))
}

thread_local! {
    static WARNED: Cell<bool> = const { Cell::new(false) };
}

/// Once per isolate, so that nobody runs without tokens and does not know it.
fn warn_without_tokens(tokens: Option<&str>) {
    if tokens.is_none_or(|text| text.trim().is_empty()) && !WARNED.replace(true) {
        platform::log(json!({
            "level": "warn", "event": "auth_not_configured",
            "message": "CURFEW_TOKENS is not set: every request to a loopback host is allowed, every other is refused",
        }));
    }
}

fn header(request: &Request, name: &str) -> Option<String> {
    // Only a name that is none is refused.
    request.headers().get(name).ok().flatten()
}

/// The body as JSON; an empty one is `{}`.
async fn read_body(request: &Request) -> Result<std::result::Result<Value, Error>> {
    let body = read_written(request).await?;
    Ok(body.map(|written| written.unwrap_or_else(|| json!({}))))
}

/// The body as JSON, if there is one. Keeps no more than the limit.
async fn read_written(request: &Request) -> Result<std::result::Result<Option<Value>, Error>> {
    let too_large = || {
        Error::new(
            413,
            "body_too_large",
            format!(
                "the body is larger than the limit of {} bytes",
                limits::REQUEST_BYTES
            ),
        )
    };
    let announced = header(request, "content-length").and_then(|text| text.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > DRAINED_BYTES) {
        return Ok(Err(too_large()));
    }
    if announced.is_some_and(|bytes| bytes <= limits::REQUEST_BYTES) {
        // At once: reading a body in pieces costs a small one several turns.
        let bytes = JsFuture::from(request.array_buffer()?).await?;
        let bytes = js_sys::Uint8Array::new(&bytes).to_vec();
        return Ok(match bytes.len() > limits::REQUEST_BYTES {
            true => Err(too_large()),
            false => parse(&bytes),
        });
    }
    let mut bytes = Vec::new();
    let mut seen = 0;
    if let Ok(mut stream) = worker::Request::from(Clone::clone(request)).stream() {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            seen += chunk.len();
            if seen > DRAINED_BYTES {
                return Ok(Err(too_large()));
            }
            if seen <= limits::REQUEST_BYTES {
                bytes.extend_from_slice(&chunk);
            }
        }
    }
    if seen > limits::REQUEST_BYTES {
        return Ok(Err(too_large()));
    }
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> std::result::Result<Option<Value>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let read = serde_json::from_slice(bytes).map(Some);
    read.map_err(|error| Error::invalid_json(&error))
}

async fn put_document(env: &Env, kind: DocumentKind, id: &str, mut document: Value) -> Result<Answer> {
    if let Value::Object(fields) = &mut document {
        fields.entry("id").or_insert_with(|| json!(id));
        if fields["id"].as_str().is_some_and(|written| written != id) {
            return Ok(Err(Error::invalid_request(
                "/id",
                format!(
                    "the document says its id is {}, the address says \"{id}\"",
                    fields["id"]
                ),
            )));
        }
    }
    if limits::depth_of(&document) > limits::DEPTH {
        return Ok(Err(Error::too_deep("the document")));
    }
    let content = document.to_string();
    if content.len() > limits::DOCUMENT_BYTES {
        return Ok(Err(Error::new(
            422,
            "limit_exceeded",
            format!(
                "the document is {} bytes; the limit is {}",
                content.len(),
                limits::DOCUMENT_BYTES
            ),
        )));
    }
    let catalogue = Catalogue::new(env)?;
    let mut library = Library::new();
    let rules = launch::time_rules(env);
    let warnings = loop {
        match snapshot::check(kind, &document, &library, &rules) {
            Ok(warnings) => break warnings,
            Err(Check::Invalid(problems)) => return Ok(Err(Error::invalid_document(&problems))),
            Err(Check::Missing(references)) => catalogue.fetch(references, &mut library).await?,
        }
    };
    if let Some(name) = trigger_event(&document).filter(|_| kind == DocumentKind::Workflows)
        && catalogue.others_triggered(name, id).await? >= limits::TRIGGERED
    {
        return Ok(Err(event::crowded(name)));
    }
    let (version, is_new) = catalogue.store(kind, id, &content).await?;
    let status = if is_new { 201 } else { 200 };
    Ok(Ok((
        status,
        json!({"id": id, "version": version, "warnings": warnings}),
    )))
}

async fn read_document(env: &Env, kind: DocumentKind, id: &str, url: &Url) -> Result<Answer> {
    let version = match query(url, "version").map(|text| text.parse::<u64>()) {
        None => None,
        Some(Ok(version)) => Some(version),
        Some(Err(_)) => {
            return Ok(Err(Error::new(
                400,
                "invalid_request",
                "version is a whole number",
            )));
        }
    };
    let Some(found) = Catalogue::new(env)?.read(kind, id, version).await? else {
        return Ok(Err(Error::not_found(format!("\"{id}\" in {}", kind.name()))));
    };
    let document: Value = serde_json::from_str(&found.content)?;
    Ok(Ok((
        200,
        json!({"id": id, "version": found.version, "created_at": found.created_at, "document": document}),
    )))
}

/// Something happened outside. The body is its payload; whoever names it may tell of it again.
async fn raise_event(env: &Env, name: String, request: &Request) -> Result<Answer> {
    let payload = match read_written(request).await? {
        Ok(body) => body.unwrap_or(Value::Null),
        Err(error) => return Ok(Err(error)),
    };
    if limits::depth_of(&payload) > limits::DEPTH {
        return Ok(Err(Error::too_deep("the body")));
    }
    let key = match header(request, "idempotency-key") {
        None => platform::random_id()?,
        Some(key) => match event::check_key(&key) {
            Ok(()) => key,
            Err(error) => return Ok(Err(error)),
        },
    };
    let occurrence = Occurrence {
        name: &name,
        key: &key,
        payload: &payload,
        hops: 1,
    };
    let starts = match raise::all(env, &occurrence).await {
        Ok(starts) => starts,
        Err(message) => return Err(worker::Error::RustError(message)),
    };
    Ok(event::answer(&name, &key, &starts))
}

/// How long the caller would wait for the end of the run.
fn wait_ms(url: &Url) -> std::result::Result<u64, Error> {
    match query(url, "wait_ms").map(|text| text.parse::<u64>()) {
        None => Ok(0),
        Some(Ok(millis)) if millis <= WAIT_MS_MAX => Ok(millis),
        Some(_) => {
            let message = format!("wait_ms is a number of milliseconds, {WAIT_MS_MAX} at most");
            Err(Error::new(400, "invalid_request", message))
        }
    }
}

/// Asks the run's object; its answer goes to the caller as it is. Never waits longer than it must.
async fn ask_object(
    env: &Env,
    run: &str,
    method: &str,
    path: &str,
    body: Option<&str>,
    wait_ms: u64,
) -> Result<Reply> {
    let stub: Peer = env.durable_object("RUNS")?.get_by_name(run)?.into_rpc();
    ask(&stub, method, &format!("http://run{path}"), body, wait_ms).await
}

async fn ask(stub: &Peer, method: &str, url: &str, body: Option<&str>, wait_ms: u64) -> Result<Reply> {
    let call = Call {
        url,
        method,
        headers: None,
        body,
        follow_redirects: true,
    };
    match deadline::within(wait_ms + OBJECT_MS, call::send(stub, call)).await {
        Some(Ok(answer)) => Ok(Reply::Passed(answer.into_response())),
        Some(Err(error)) => Err(worker::Error::RustError(error.into())),
        None => Ok(Reply::Answer(Err(Error::new(
            504,
            "timeout",
            "the object did not answer in time; the request may or may not have been carried out",
        )))),
    }
}

/// The log of a run's timeouts, one JSON object a line.
async fn timeout_lines(env: &Env, run: &str) -> Result<Reply> {
    let answer = match ask_object(env, run, "GET", "/timeout-lines", None, 0).await? {
        Reply::Passed(answer) if answer.status() == 200 => answer,
        other => return Ok(other),
    };
    let text = JsFuture::from(answer.text()?)
        .await?
        .as_string()
        .unwrap_or_default();
    let lines: Vec<Value> = serde_json::from_str(&text)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(Reply::Passed(respond::text(200, NDJSON, &text)?))
}

/// Where the page of a list in the order of its names begins, and how long it may be.
fn page_by_name(list: &str, url: &Url) -> std::result::Result<(String, u64), Error> {
    let after = cursor::read_name(list, query(url, "cursor").as_deref())?;
    Ok((after, limit(url)?))
}

fn limit(url: &Url) -> std::result::Result<u64, Error> {
    read_limit(query(url, "limit").as_deref())
}

fn pairs(url: &Url) -> Vec<(String, String)> {
    url.query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
}
