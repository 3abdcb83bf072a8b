//! `GET /v1/runs/:id/export` and `POST /v1/runs/:id/what-if`: collects what a run's object and the catalogue have of a run, and
//! plays it again in this request.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use worker::{Env, Result};

use crate::api::error::Error;
use crate::api::scope;
use crate::definition::snapshot::{DocumentKind, Reference};
use crate::protocol::caller::Caller;
use crate::protocol::run::{PageRequest, RunRequest, RunResponse};
use crate::replay::{Export, LISTS, Page, Parts, Resolved, WhatIf, WhatIfBody, export_text, from_version};
use crate::worker::api::catalogue::Catalogue;
use crate::worker::api::fetch::{OBJECT_MS, call_error};
use crate::worker::api::prepare_start::{self, time_rules};
use crate::worker::api::respond::ApiResult;
use crate::worker::run_client::RunClient;

/// Items of one page.
const PAGE: u64 = 1_000;

type Checked<T> = std::result::Result<T, Error>;

pub async fn export(env: &Env, caller: &Caller, run: &str, is_redacted: bool) -> Result<Checked<String>> {
    let collected = match collect(env, caller, run).await? {
        Ok(collected) => collected,
        Err(error) => return Ok(Err(error)),
    };
    // It has the documents of called workflows, too.
    let SnapshotOfRecording { snapshot } = serde_json::from_str(&collected.recording)?;
    let called = snapshot.children.into_iter().map(|child| Reference {
        kind: DocumentKind::Workflows,
        id: child.workflow.id,
        version: None,
    });
    if let Err(error) = scope::check_references(&called.collect::<Vec<_>>(), &caller.workflows) {
        return Ok(Err(error));
    }
    Ok(export_text(&collected, is_redacted))
}

pub async fn what_if(env: &Env, caller: &Caller, run: &str, body: &Value) -> Result<ApiResult> {
    let body = match WhatIfBody::read(body) {
        Ok(body) => body,
        Err(error) => return Ok(Err(error)),
    };
    let collected = match collect(env, caller, run).await? {
        Ok(collected) => collected,
        Err(error) => return Ok(Err(error)),
    };
    let export = match export_text(&collected, false).and_then(|text| Export::parse(&text)) {
        Ok(export) => export,
        Err(error) => return Ok(Err(error)),
    };
    drop(collected);
    let catalogue = Catalogue::new(env)?;
    let other_version = match body.version.filter(|version| *version != export.snapshot.version) {
        None => None,
        Some(version) => {
            let id = &export.run.workflow_id;
            match catalogue.read(DocumentKind::Workflows, id, Some(version)).await? {
                Some(found) => Some(serde_json::from_str(&found.content)?),
                None => {
                    return Ok(Err(catalogue
                        .missing(DocumentKind::Workflows, id, Some(version))
                        .await?));
                }
            }
        }
    };
    let mut what_if = match WhatIf::new(export, body, other_version) {
        Ok(what_if) => what_if,
        Err(error) => return Ok(Err(error)),
    };
    let rules = time_rules(env);
    loop {
        let references = match what_if.resolve(&rules) {
            Ok(Resolved::Workflow(stored)) => return Ok(what_if.run(*stored).map(|answer| (200, answer))),
            Ok(Resolved::Missing(references)) => references,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = scope::check_references(&references, &caller.workflows) {
            return Ok(Err(error));
        }
        let mut found = BTreeMap::new();
        catalogue.fetch(references, &mut found).await?;
        what_if.add(found);
    }
}

/// What the rest is looked up by.
#[derive(Deserialize)]
struct RunOfRecording {
    run: WorkflowOfRun,
}

#[derive(Deserialize)]
struct WorkflowOfRun {
    workflow_id: String,
    version: u64,
}

#[derive(Deserialize)]
struct SnapshotOfRecording {
    snapshot: CalledWorkflows,
}

#[derive(Deserialize)]
struct CalledWorkflows {
    #[serde(default)]
    children: Vec<CalledWorkflow>,
}

#[derive(Deserialize)]
struct CalledWorkflow {
    workflow: NamedWorkflow,
}

#[derive(Deserialize)]
struct NamedWorkflow {
    id: String,
}

/// Asks the run's object for everything, and the catalogue for the documents.
async fn collect(env: &Env, caller: &Caller, run: &str) -> Result<Checked<Parts>> {
    let mut parts = Parts::default();
    match ask(env, caller, run, RunRequest::ReadRecording).await {
        Ok(text) => parts.add_recording(text),
        Err(error) => return Ok(Err(error)),
    }
    let mut versions = BTreeSet::new();
    for (name, list) in LISTS {
        let mut after = 0;
        loop {
            let text = match ask(env, caller, run, list(PageRequest { after, limit: PAGE })).await {
                Ok(text) => text,
                Err(error) => return Ok(Err(error)),
            };
            let page: Page = serde_json::from_str(&text)?;
            versions.extend(page.items.iter().filter_map(|item| from_version(item.get())));
            if let Err(error) = parts.add_page(name, &page) {
                return Ok(Err(error));
            }
            match page.next_cursor.and_then(|next| next.parse().ok()) {
                Some(next) => after = next,
                None => break,
            }
        }
    }
    let RunOfRecording { run: of_run } = serde_json::from_str(&parts.recording)?;
    let WorkflowOfRun { workflow_id, version } = of_run;
    let catalogue = Catalogue::new(env)?;
    let document = catalogue
        .read(DocumentKind::Workflows, &workflow_id, Some(version))
        .await?;
    if let Some(document) = document {
        parts.document = RawValue::from_string(document.content).ok();
    }
    versions.remove(&version);
    for version in versions {
        // One that is gone is missing in the export, and a replay says so.
        if let Ok(resolved) = prepare_start::version_for_run(env, &workflow_id, version, run).await? {
            parts.versions.insert(version, resolved.stored);
        }
    }
    Ok(Ok(parts))
}

async fn ask(env: &Env, caller: &Caller, run: &str, request: RunRequest) -> Checked<String> {
    let client = RunClient::new(env, run, OBJECT_MS).on_behalf_of(Some(caller));
    match client.send(&request).await {
        Ok(RunResponse::Done(text)) => Ok(text),
        Ok(other) => {
            let (status, body) = other.into_parts();
            Err(Error::of_response(status, &body))
        }
        Err(error) => Err(call_error(error)),
    }
}
