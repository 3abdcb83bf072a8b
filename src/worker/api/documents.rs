//! Documents: storing, reading and analyzing them.

use serde_json::{Value, json};
use worker::{Env, Result};

use crate::analysis::{self, Analysis, Deployment};
use crate::api::analyze::{AnalyzeBody, version_of_body};
use crate::api::error::Error;
use crate::api::event;
use crate::api::scope;
use crate::base::limits;
use crate::definition::event::trigger_event;
use crate::definition::snapshot::{self, CheckError, DocumentKind, Library};
use crate::protocol::caller::Caller;
use crate::task::secret_hosts::{SECRETS, parse_setting};
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::fetch::audit;
use crate::worker::api::prepare_start;
use crate::worker::api::respond::ApiResult;
use crate::worker::platform;
use crate::worker::run_object::settings;

pub async fn put(
    env: &Env,
    caller: &Caller,
    kind: DocumentKind,
    id: &str,
    document: Value,
) -> Result<ApiResult> {
    let content = document.to_string();
    if let Some(error) = too_large(&content) {
        return Ok(Err(error));
    }
    let catalogue = Catalogue::new(env)?;
    let warnings = match kind {
        DocumentKind::Workflows => match analysis_of(env, &catalogue, caller, &document).await? {
            Ok(analysis) if analysis.errors.is_empty() => analysis.warnings,
            Ok(analysis) => {
                let problems = [analysis.errors, analysis.warnings].concat();
                return Ok(Err(Error::invalid_document(&problems)));
            }
            Err(error) => return Ok(Err(error)),
        },
        DocumentKind::Tasks | DocumentKind::Actions => {
            let rules = prepare_start::time_rules(env);
            let mut library = Library::new();
            let found = loop {
                match snapshot::check(kind, &document, &library, &rules) {
                    Ok(warnings) => break warnings,
                    Err(CheckError::Invalid(problems)) => {
                        return Ok(Err(Error::invalid_document(&problems)));
                    }
                    Err(CheckError::Missing(references)) => {
                        if let Err(error) = scope::check_references(&references, &caller.workflows) {
                            return Ok(Err(error));
                        }
                        catalogue.fetch(references, &mut library).await?;
                    }
                }
            };
            analysis::warnings_of_part(kind, &document, found)
        }
    };
    if let Some(name) = trigger_event(&document).filter(|_| kind == DocumentKind::Workflows)
        && catalogue.others_triggered(name, id).await? >= limits::WORKFLOWS_PER_EVENT
    {
        return Ok(Err(event::too_many_workflows(name)));
    }
    let by = caller.name.as_deref();
    let (version, is_new) = catalogue.store(kind, id, &content, by).await?;
    if is_new {
        let document = format!("{}/{id}", kind.name());
        audit(
            "put_document",
            caller,
            json!({"document": document, "version": version}),
        );
    }
    let status = if is_new { 201 } else { 200 };
    Ok(Ok((
        status,
        json!({"id": id, "version": version, "warnings": warnings}),
    )))
}

pub async fn read(env: &Env, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<ApiResult> {
    let catalogue = Catalogue::new(env)?;
    let Some(found) = catalogue.read(kind, id, version).await? else {
        return Ok(Err(catalogue.missing(kind, id, version).await?));
    };
    let document: Value = serde_json::from_str(&found.content)?;
    let mut view =
        json!({"id": id, "version": found.version, "created_at": found.created_at, "document": document});
    if let Some(name) = found.created_by {
        view["created_by"] = json!(name);
    }
    Ok(Ok((200, view)))
}

fn too_large(content: &str) -> Option<Error> {
    (content.len() > limits::DOCUMENT_BYTES).then(|| {
        let message = format!(
            "the document is {} bytes; the limit is {}",
            content.len(),
            limits::DOCUMENT_BYTES
        );
        Error::new(422, "limit_exceeded", message)
    })
}

/// For `POST /v1/workflows/:id/analyze`: the stored document, or the one in the body, which is not stored.
pub async fn analyze(
    env: &Env,
    caller: &Caller,
    id: &str,
    version: Option<u64>,
    body: &Value,
) -> Result<ApiResult> {
    let catalogue = Catalogue::new(env)?;
    let document = match (AnalyzeBody::read(body, id), version) {
        (Ok(AnalyzeBody::Document(document)), None) => document,
        (Ok(AnalyzeBody::Document(_)), Some(_)) => return Ok(Err(version_of_body())),
        (Ok(AnalyzeBody::Stored), version) => {
            let kind = DocumentKind::Workflows;
            match catalogue.read(kind, id, version).await? {
                Some(found) => serde_json::from_str(&found.content)?,
                None => return Ok(Err(catalogue.missing(kind, id, version).await?)),
            }
        }
        (Err(error), _) => return Ok(Err(error)),
    };
    if let Some(error) = too_large(&document.to_string()) {
        return Ok(Err(error));
    }
    let analysis = analysis_of(env, &catalogue, caller, &document).await?;
    Ok(analysis.map(|analysis| (200, json!(analysis))))
}

/// Looks up what the document refers to, as far as the caller may reach it.
async fn analysis_of(
    env: &Env,
    catalogue: &Catalogue,
    caller: &Caller,
    document: &Value,
) -> Result<std::result::Result<Analysis, Error>> {
    let deployment = Deployment {
        rules: prepare_start::time_rules(env),
        settings: settings::config(env).settings,
        secrets: listed_secrets(env),
    };
    let mut library = Library::new();
    loop {
        match analysis::analyze(document, &library, &deployment) {
            Ok(analysis) => return Ok(Ok(analysis)),
            Err(references) => {
                if let Err(error) = scope::check_references(&references, &caller.workflows) {
                    return Ok(Err(error));
                }
                catalogue.fetch(references, &mut library).await?;
            }
        }
    }
}

/// The names of secrets, where this Worker is the executor, too. An executor of its own has its own variable.
fn listed_secrets(env: &Env) -> Option<Vec<String>> {
    let variable = platform::json_variable(env, SECRETS)?;
    let listed = parse_setting(&variable).ok()?;
    Some(listed.into_iter().map(|secret| secret.name).collect())
}
