//! What a caller may reach whose credential is bound to workflows. Pure. The API checks a route before it reads anything; a run's
//! object checks its run, because only the object knows the run's workflow. Lists leave out what is not reached.

use crate::api::error::Error;
use crate::api::routes::Route;
use crate::definition::snapshot::{DocumentKind, Reference};
use crate::protocol::caller::{Caller, WorkflowScope};

/// Before anything is read.
pub fn check_route(route: &Route, reached: &WorkflowScope) -> Result<(), Error> {
    match route {
        Route::StartRun { workflow } | Route::AnalyzeWorkflow { workflow } => {
            check_workflow(workflow, reached)
        }
        Route::PutDocument { kind, id } | Route::ReadDocument { kind, id } => match kind {
            DocumentKind::Workflows => check_workflow(id, reached),
            DocumentKind::Tasks | DocumentKind::Actions => check_shared(kind.name(), reached),
        },
        Route::ListDocuments { kind } => match kind {
            DocumentKind::Workflows => Ok(()),
            DocumentKind::Tasks | DocumentKind::Actions => check_shared(kind.name(), reached),
        },
        Route::ListBreakers | Route::ResetBreaker { .. } => check_shared("breakers", reached),
        Route::Metrics => check_shared("metrics", reached),
        // The object of the run checks.
        Route::ReadRun { .. }
        | Route::ListTokens { .. }
        | Route::ListEvents { .. }
        | Route::WatchRun { .. }
        | Route::ListTimeouts { .. }
        | Route::ListNotifications { .. }
        | Route::ReadTimeout { .. }
        | Route::ReadDeliverable { .. }
        | Route::ReadResumeOptions { .. }
        | Route::ExportRun { .. }
        | Route::WhatIf { .. }
        | Route::Control { .. } => Ok(()),
        // `RunList::within` and `check_event` follow, when the filter and the workflows are known.
        Route::ListRuns | Route::ListGates | Route::PublishEvent { .. } => Ok(()),
        // The workflow and those that it calls are checked before they are read.
        Route::Simulate => Ok(()),
        // Each item of a batch is checked, and each run of an operation by its object.
        Route::StartBatch | Route::StartOperation { .. } => Ok(()),
        // `check_operation` follows, when its creator is known.
        Route::ReadOperation { .. } => Ok(()),
        // The answer is about the credential itself.
        Route::ReadIdentity => Ok(()),
        // Not bound to a credential.
        Route::Health | Route::ReadContract | Route::ReadSchema { .. } | Route::Callback { .. } => Ok(()),
    }
}

/// `workflows` are all that the event starts. Starting some of them would be half an event.
pub fn check_event(event: &str, workflows: &[String], reached: &WorkflowScope) -> Result<(), Error> {
    match workflows.iter().all(|workflow| reached.contains(workflow)) {
        true => Ok(()),
        false => {
            let message = format!(
                "event {event} starts workflows outside of those that this credential may reach; nothing was started"
            );
            Err(Error::new(403, "forbidden", message))
        }
    }
}

/// Documents of the catalogue that a document refers to, before they are read. A workflow returns the results of those that it
/// calls. Tasks and actions may be used by every workflow.
pub fn check_references(references: &[Reference], reached: &WorkflowScope) -> Result<(), Error> {
    let outside = references.iter().find(|reference| match reference.kind {
        DocumentKind::Workflows => !reached.contains(&reference.id),
        DocumentKind::Tasks | DocumentKind::Actions => false,
    });
    match outside {
        None => Ok(()),
        Some(reference) => Err(Error::out_of_scope(format!(
            "workflow \"{}\", which the document calls,",
            reference.id
        ))),
    }
}

/// An operation names runs, so a caller that reaches some workflows only sees the operations that it has started.
pub fn check_operation(caller: &Caller, created_by: Option<&str>) -> Result<(), Error> {
    match caller.workflows.is_unlimited() || (created_by.is_some() && caller.name.as_deref() == created_by) {
        true => Ok(()),
        false => Err(Error::out_of_scope("the operation")),
    }
}

/// The run of an object. Callers without a binding, and requests from inside, reach every run.
pub fn check_run(caller: Option<&Caller>, workflow_id: &str) -> Result<(), Error> {
    match caller.is_none_or(|caller| caller.workflows.contains(workflow_id)) {
        true => Ok(()),
        false => Err(Error::out_of_scope("the run")),
    }
}

pub fn check_workflow(id: &str, reached: &WorkflowScope) -> Result<(), Error> {
    match reached.contains(id) {
        true => Ok(()),
        false => Err(Error::out_of_scope(format!("workflow \"{id}\""))),
    }
}

fn check_shared(what: &str, reached: &WorkflowScope) -> Result<(), Error> {
    match reached.is_unlimited() {
        true => Ok(()),
        false => {
            let message = format!(
                "{what} belong to all workflows, and this credential may reach some of them only; use one without \"workflows\""
            );
            Err(Error::new(403, "forbidden", message))
        }
    }
}
