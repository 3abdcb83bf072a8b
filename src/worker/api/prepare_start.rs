//! What leads to a start, whoever asks for it: the workflow as it is in the catalogue, resolved, and the wish held against it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Value, json};
use worker::{Env, Result};

use crate::api::error::Error;
use crate::api::start::{Command, Ready, StartBody};
use crate::base::limits;
use crate::base::lru_cache::LruCache;
use crate::definition::snapshot::{self, DocumentKind, Library, Resolution};
use crate::definition::timeouts::TimeRules;
use crate::worker::api::catalogue::Catalogue;
use crate::worker::index::latencies;
use crate::worker::platform;

/// What is to be done about runs that are called back and do not know where.
pub const PUBLIC_URL_ADVICE: &str = "an action of the workflow, or of one that it calls, is \"async\" and its result comes by a \
     callback: set the variable CURFEW_PUBLIC_URL to the address that this API has for others";

thread_local! {
    static TOLD_OF_RULES: Cell<bool> = const { Cell::new(false) };
}

/// What this deployment says about time. A variable that makes no sense is told of once per isolate and all of them
/// count as not set: an API that refuses every request because of a slip in a number would be worse.
pub fn time_rules(env: &Env) -> TimeRules {
    let variable = |name| env.var(name).ok().map(|value| value.to_string());
    let preset = variable("CURFEW_PRESET");
    let min_ms = variable("CURFEW_TIMEOUT_MIN_MS");
    let max_ms = variable("CURFEW_TIMEOUT_MAX_MS");
    match TimeRules::from_variables(preset.as_deref(), min_ms.as_deref(), max_ms.as_deref()) {
        Ok(rules) => rules,
        Err(message) => {
            if !TOLD_OF_RULES.replace(true) {
                let message = format!("{message}; until then the defaults count");
                platform::log(json!({"level": "error", "event": "invalid_setting", "message": message}));
            }
            TimeRules::default()
        }
    }
}

/// Where `npm start` serves the API.
const LOCAL_URL: &str = "http://localhost:8787";

/// Where callbacks reach the API. None where nobody says it and this is no development: a peer elsewhere would bring its
/// result to a machine of its own.
pub fn public_url(env: &Env) -> Option<String> {
    let set = |name| platform::variable(env, name).filter(|text| !text.trim().is_empty());
    let is_development = set("CURFEW_TOKENS").is_none();
    set("CURFEW_PUBLIC_URL").or_else(|| is_development.then(|| LOCAL_URL.to_string()))
}

/// A start as a caller of the API asks for it.
pub async fn asked(env: &Env, workflow: &str, body: &Value) -> Result<std::result::Result<Command, Error>> {
    let rules = time_rules(env);
    match StartBody::read(body, &rules) {
        Ok(wish) => prepare(env, workflow, wish, &rules).await,
        Err(error) => Ok(Err(error)),
    }
}

/// Resolves the workflow against the catalogue and checks the wish against it.
pub async fn prepare(
    env: &Env,
    workflow: &str,
    wish: StartBody,
    rules: &TimeRules,
) -> Result<std::result::Result<Command, Error>> {
    if limits::depth_of(&wish.input) > limits::DEPTH {
        return Ok(Err(Error::too_deep("the input")));
    }
    let known = wish.request.version.and_then(|version| known(workflow, version));
    let ready = match known {
        Some(ready) => ready,
        None => match make_ready(env, workflow, wish.request.version, rules).await? {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        },
    };
    if ready.has_async() && public_url(env).is_none() {
        return Ok(Err(Error::new(422, "no_public_url", PUBLIC_URL_ADVICE)));
    }
    let run_id = match &wish.run_id {
        Some(id) => id.clone(),
        None => platform::random_id()?,
    };
    Ok(Command::new(run_id, wish, &ready))
}

thread_local! {
    /// By id and version. A version never changes, so whoever names one that was started before costs no look into the
    /// catalogue.
    static READY: RefCell<LruCache<Ready>> = RefCell::default();
}

fn key(workflow: &str, version: u64) -> String {
    format!("{workflow}@{version}")
}

fn known(workflow: &str, version: u64) -> Option<Rc<Ready>> {
    READY.with_borrow_mut(|ready| ready.get(&key(workflow, version)))
}

/// The workflow out of the catalogue, resolved. Without a version: the newest.
async fn make_ready(
    env: &Env,
    workflow: &str,
    version: Option<u64>,
    rules: &TimeRules,
) -> Result<std::result::Result<Rc<Ready>, Error>> {
    let catalogue = Catalogue::new(env)?;
    let found = catalogue.read(DocumentKind::Workflows, workflow, version).await?;
    let Some(found) = found else {
        let error = catalogue
            .missing(DocumentKind::Workflows, workflow, version)
            .await?;
        return Ok(Err(error));
    };
    if let Some(ready) = known(workflow, found.version) {
        return Ok(Ok(ready));
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
    let is_final = snapshot::is_final(&stored, &library);
    latencies::look_up(&mut stored, &env.d1("DB")?).await?;
    let ready = match Ready::new(stored) {
        Ok(ready) => Rc::new(ready),
        Err(error) => return Ok(Err(error)),
    };
    if is_final {
        let key = key(workflow, found.version);
        READY.with_borrow_mut(|known| known.put(&key, &ready, ready.bytes()));
    }
    Ok(Ok(ready))
}
