//! Prepares starts, for API requests and for events: resolves the workflow against the catalogue and checks the start
//! against it. Resolved workflows are cached per isolate; a stored version never changes, so the cache cannot be stale.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Value, json};
use worker::{Env, Result};

use crate::api::auth;
use crate::api::error::Error;
use crate::api::start::{ResolvedWorkflow, StartBody, StartRun};
use crate::base::limits;
use crate::base::lru_cache::LruCache;
use crate::definition::snapshot::{self, DocumentKind, Library, Resolution};
use crate::definition::timeouts::TimeoutRules;
use crate::protocol::start::ResolvedVersion;
use crate::worker::api::callback;
use crate::worker::api::catalogue::Catalogue;
use crate::worker::index::latencies;
use crate::worker::platform;

/// Tells operators what to do when a run needs callbacks and no public URL is configured.
pub const PUBLIC_URL_ADVICE: &str = "an action of the workflow, or of one that it calls, is \"async\" and its result comes by a \
     callback: set the variable CURFEW_PUBLIC_URL to the address that this API has for others";

thread_local! {
    static LOGGED_INVALID_RULES: Cell<bool> = const { Cell::new(false) };
}

/// The deployment's time rules. If a variable is invalid, an error is logged once per isolate and the defaults are used: an API
/// that refuses every request because of a typing error would be worse.
pub fn time_rules(env: &Env) -> TimeoutRules {
    let variable = |name| env.var(name).ok().map(|value| value.to_string());
    let preset = variable("CURFEW_PRESET");
    let min_ms = variable("CURFEW_TIMEOUT_MIN_MS");
    let max_ms = variable("CURFEW_TIMEOUT_MAX_MS");
    match TimeoutRules::from_variables(preset.as_deref(), min_ms.as_deref(), max_ms.as_deref()) {
        Ok(rules) => rules,
        Err(message) => {
            if !LOGGED_INVALID_RULES.replace(true) {
                let message = format!("{message}; until then the defaults count");
                platform::log(json!({"level": "error", "event": "invalid_setting", "message": message}));
            }
            TimeoutRules::default()
        }
    }
}

/// Where `npm start` serves the API.
const LOCAL_URL: &str = "http://localhost:8787";

/// The base URL for callbacks. The local URL is a fallback for development only: a service on another machine would send its
/// result to itself.
pub fn public_url(env: &Env) -> Option<String> {
    let set = |name| platform::variable(env, name).filter(|text| !text.trim().is_empty());
    let is_development = auth::is_development(platform::variable(env, "CURFEW_DEV").as_deref());
    set("CURFEW_PUBLIC_URL").or_else(|| is_development.then(|| LOCAL_URL.to_string()))
}

/// For `POST /v1/workflows/:id/runs`.
pub async fn from_request(
    env: &Env,
    workflow: &str,
    body: &Value,
) -> Result<std::result::Result<StartRun, Error>> {
    let rules = time_rules(env);
    match StartBody::read(body, &rules) {
        Ok(body) => prepare(env, workflow, body, &rules).await,
        Err(error) => Ok(Err(error)),
    }
}

pub async fn prepare(
    env: &Env,
    workflow: &str,
    body: StartBody,
    rules: &TimeoutRules,
) -> Result<std::result::Result<StartRun, Error>> {
    match resolved(env, workflow, body.request.version, rules).await? {
        Ok(resolved) => prepare_resolved(env, &resolved, body).await,
        Err(error) => Ok(Err(error)),
    }
}

/// The workflow, if this deployment can run it. Without a version: the newest one.
pub async fn resolved(
    env: &Env,
    workflow: &str,
    version: Option<u64>,
    rules: &TimeoutRules,
) -> Result<std::result::Result<Rc<ResolvedWorkflow>, Error>> {
    let resolved = match version.and_then(|version| cached(workflow, version)) {
        Some(resolved) => resolved,
        None => match resolve(env, workflow, version, rules).await? {
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(error)),
        },
    };
    if resolved.has_async() && public_url(env).is_none() {
        return Ok(Err(Error::new(422, "no_public_url", PUBLIC_URL_ADVICE)));
    }
    Ok(Ok(resolved))
}

pub async fn prepare_resolved(
    env: &Env,
    resolved: &ResolvedWorkflow,
    body: StartBody,
) -> Result<std::result::Result<StartRun, Error>> {
    if limits::depth_of(&body.input) > limits::DEPTH {
        return Ok(Err(Error::too_deep("the input")));
    }
    let run_id = match &body.run_id {
        Some(id) => id.clone(),
        None => platform::random_id()?,
    };
    let callback_secret = callback_secret(env, resolved, &run_id).await?;
    let start = StartRun::new(run_id, body, resolved);
    Ok(start.map(|start| StartRun {
        callback_secret,
        ..start
    }))
}

/// For a run that is to go on with another version of its workflow.
pub async fn version_for_run(
    env: &Env,
    workflow: &str,
    version: u64,
    run_id: &str,
) -> Result<std::result::Result<ResolvedVersion, Error>> {
    let resolved = match resolved(env, workflow, Some(version), &time_rules(env)).await? {
        Ok(resolved) => resolved,
        Err(error) => return Ok(Err(error)),
    };
    let callback_secret = callback_secret(env, &resolved, run_id).await?;
    Ok(Ok(resolved.for_run(callback_secret)))
}

async fn callback_secret(env: &Env, resolved: &ResolvedWorkflow, run_id: &str) -> Result<Option<String>> {
    Ok(match resolved.has_async() {
        true => Some(callback::settings(env).await?.key.secret_of(run_id)),
        false => None,
    })
}

thread_local! {
    /// By id and version.
    static RESOLVED: RefCell<LruCache<ResolvedWorkflow>> = RefCell::default();
}

fn key(workflow: &str, version: u64) -> String {
    format!("{workflow}@{version}")
}

fn cached(workflow: &str, version: u64) -> Option<Rc<ResolvedWorkflow>> {
    RESOLVED.with_borrow_mut(|cache| cache.get(&key(workflow, version)))
}

async fn resolve(
    env: &Env,
    workflow: &str,
    version: Option<u64>,
    rules: &TimeoutRules,
) -> Result<std::result::Result<Rc<ResolvedWorkflow>, Error>> {
    let catalogue = Catalogue::new(env)?;
    let found = catalogue.read(DocumentKind::Workflows, workflow, version).await?;
    let Some(found) = found else {
        let error = catalogue
            .missing(DocumentKind::Workflows, workflow, version)
            .await?;
        return Ok(Err(error));
    };
    if let Some(resolved) = cached(workflow, found.version) {
        return Ok(Ok(resolved));
    }
    let document: Value = serde_json::from_str(&found.content)?;
    let mut library = Library::new();
    let mut stored = loop {
        match snapshot::resolve(&document, found.version, &library, rules) {
            Resolution::Resolved(stored) => break *stored,
            Resolution::Invalid(problems) => return Ok(Err(Error::invalid_document(&problems))),
            Resolution::Missing(references) => catalogue.fetch(references, &mut library).await?,
        }
    };
    let is_cacheable = snapshot::is_cacheable(&stored, &library);
    latencies::add_to(&mut stored, &env.d1("DB")?).await?;
    let resolved = match ResolvedWorkflow::new(stored) {
        Ok(resolved) => Rc::new(resolved),
        Err(error) => return Ok(Err(error)),
    };
    if is_cacheable {
        let key = key(workflow, found.version);
        RESOLVED.with_borrow_mut(|cache| cache.insert(&key, &resolved, resolved.bytes()));
    }
    Ok(Ok(resolved))
}
