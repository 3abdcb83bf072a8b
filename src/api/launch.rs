//! What leads to a start, whoever asks for it: the workflow as it is in the catalogue, resolved, and the wish held against it.

use std::cell::Cell;

use serde_json::{Value, json};
use worker::{Env, Result};

use super::catalogue::Catalogue;
use super::error::Error;
use super::start::{Command, Wish};
use crate::model::limits;
use crate::model::snapshot::{self, DocumentKind, Library, Resolution, Stored};
use crate::model::timeouts::TimeRules;
use crate::platform;
use crate::watch::latencies;

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

/// A start as a caller of the API asks for it.
pub async fn asked(env: &Env, workflow: &str, body: &Value) -> Result<std::result::Result<Command, Error>> {
    let rules = time_rules(env);
    match Wish::read(body, &rules) {
        Ok(wish) => prepare(env, workflow, wish, &rules).await,
        Err(error) => Ok(Err(error)),
    }
}

/// Resolves the workflow against the catalogue and checks the wish against it.
pub async fn prepare(
    env: &Env,
    workflow: &str,
    wish: Wish,
    rules: &TimeRules,
) -> Result<std::result::Result<Command, Error>> {
    if limits::depth_of(&wish.input) > limits::DEPTH {
        return Ok(Err(Error::too_deep("the input")));
    }
    let catalogue = Catalogue::new(env)?;
    let found = catalogue
        .read(DocumentKind::Workflows, workflow, wish.request.version)
        .await?;
    let Some(found) = found else {
        return Ok(Err(Error::not_found(format!("workflow \"{workflow}\""))));
    };
    let document: Value = serde_json::from_str(&found.content)?;
    let mut stored = match resolve(&catalogue, &document, found.version, rules).await? {
        Ok(stored) => stored,
        Err(error) => return Ok(Err(error)),
    };
    latencies::look_up(&mut stored, &env.d1("DB")?).await?;
    let run_id = match &wish.run_id {
        Some(id) => id.clone(),
        None => platform::random_id()?,
    };
    Ok(Command::new(run_id, wish, stored))
}

async fn resolve(
    catalogue: &Catalogue,
    document: &Value,
    version: u64,
    rules: &TimeRules,
) -> Result<std::result::Result<Stored, Error>> {
    let mut library = Library::new();
    loop {
        match snapshot::resolve(document, version, &library, rules) {
            Resolution::Resolved(stored) => return Ok(Ok(*stored)),
            Resolution::Invalid(problems) => return Ok(Err(Error::invalid_document(&problems))),
            Resolution::Missing(references) => catalogue.fetch(references, &mut library).await?,
        }
    }
}
