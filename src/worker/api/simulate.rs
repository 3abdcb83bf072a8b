//! `POST /v1/simulate`: looks up the documents of the workflow and runs it in virtual time, in this request.

use serde_json::Value;
use worker::{Env, Result};

use crate::api::error::Error;
use crate::api::scope;
use crate::api::start::ResolvedWorkflow;
use crate::definition::snapshot::DocumentKind;
use crate::protocol::caller::Caller;
use crate::simulate::{Deployment, Resolved, SimulateBody, Source, resolve_document, simulate as run};
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::prepare_start::time_rules;
use crate::worker::api::respond::ApiResult;
use crate::worker::breaker_object;
use crate::worker::index::latencies;
use crate::worker::run_object::settings;

pub async fn simulate(env: &Env, caller: &Caller, body: &Value) -> Result<ApiResult> {
    let rules = time_rules(env);
    let mut body = match SimulateBody::read(body, &rules) {
        Ok(body) => body,
        Err(error) => return Ok(Err(error)),
    };
    let (document, version) = match &body.source {
        Source::Document(document) => (document.clone(), None),
        Source::Stored { id, version } => match read_stored(env, caller, id, *version).await? {
            Ok((document, version)) => (document, Some(version)),
            Err(error) => return Ok(Err(error)),
        },
    };
    let catalogue = Catalogue::new(env)?;
    let mut library = body.documents.clone();
    let mut stored = loop {
        let references = match resolve_document(&document, version, &library, &rules) {
            Ok(Resolved::Workflow(stored)) => break *stored,
            Ok(Resolved::Missing(references)) => references,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = scope::check_references(&references, &caller.workflows) {
            return Ok(Err(error));
        }
        catalogue.fetch(references.clone(), &mut library).await?;
        for reference in references {
            if let Some(None) = library.get(&reference) {
                match body.stand_in_for(&document, &reference) {
                    Ok(stand_in) => library.insert(reference, stand_in),
                    Err(error) => return Ok(Err(error)),
                };
            }
        }
    };
    latencies::add_to(&mut stored, &env.d1("DB")?).await?;
    let config = settings::config(env);
    let deployment = Deployment {
        settings: config.settings,
        silence_ms: config.silence_ms,
        breakers: breaker_object::settings(env),
    };
    let simulated = ResolvedWorkflow::new(stored).and_then(|workflow| run(body, &workflow, &deployment));
    Ok(simulated.map(|answer| (200, answer)))
}

/// The stored document and its version. Without a version: the newest one.
async fn read_stored(
    env: &Env,
    caller: &Caller,
    id: &str,
    version: Option<u64>,
) -> Result<std::result::Result<(Value, u64), Error>> {
    if let Err(error) = scope::check_workflow(id, &caller.workflows) {
        return Ok(Err(error));
    }
    let catalogue = Catalogue::new(env)?;
    Ok(
        match catalogue.read(DocumentKind::Workflows, id, version).await? {
            Some(found) => Ok((serde_json::from_str(&found.content)?, found.version)),
            None => Err(catalogue.missing(DocumentKind::Workflows, id, version).await?),
        },
    )
}
