//! The workflow of a simulation with its tasks, actions and children: from the body, and from a catalogue if there is one.

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::api::start::ResolvedWorkflow;
use crate::definition::snapshot::{
    CatalogueDocument, CheckError, DocumentKind, Library, Reference, Resolution, StoredSnapshot, check,
    resolve,
};
use crate::definition::timeouts::TimeoutRules;
use crate::simulate::body::{Mock, SimulateBody, Source};
use crate::simulate::calls::no_mock_for_child;
use crate::simulate::simulation::{Deployment, simulate};

/// The version of a document that is not stored.
const VERSION: u64 = 1;

/// What is known of the workflow so far.
pub enum Resolved {
    Workflow(Box<StoredSnapshot>),
    /// These must be looked up in the catalogue and added to the library.
    Missing(Vec<Reference>),
}

/// Resolves a document. A stored one was checked when it was stored.
pub fn resolve_document(
    document: &Value,
    stored_version: Option<u64>,
    library: &Library,
    rules: &TimeoutRules,
) -> Result<Resolved, Error> {
    if stored_version.is_none() {
        match check(DocumentKind::Workflows, document, library, rules) {
            Ok(_) => {}
            Err(CheckError::Missing(references)) => return Ok(Resolved::Missing(references)),
            Err(CheckError::Invalid(problems)) => return Err(Error::invalid_document(&problems)),
        }
    }
    match resolve(document, stored_version.unwrap_or(VERSION), library, rules) {
        Resolution::Resolved(stored) => Ok(Resolved::Workflow(stored)),
        Resolution::Missing(references) => Ok(Resolved::Missing(references)),
        Resolution::Invalid(problems) => Err(Error::invalid_document(&problems)),
    }
}

impl SimulateBody {
    /// What to take for a reference that no catalogue has. A workflow whose callers are mocked is never started, so its document
    /// need not exist.
    pub fn stand_in_for(
        &mut self,
        document: &Value,
        reference: &Reference,
    ) -> Result<Option<CatalogueDocument>, Error> {
        let nodes = document["nodes"].as_array().into_iter().flatten();
        let calls = |node: &&Value| node["workflow_id"] == json!(reference.id);
        let callers = nodes.filter(calls).filter_map(|node| node["id"].as_str());
        let callers: Vec<&str> = callers.collect();
        // The document says what is wrong with any other reference.
        if callers.is_empty() || reference.kind != DocumentKind::Workflows {
            return Ok(None);
        }
        for node in callers {
            let names = |mock: &Mock| mock.node.as_deref() == Some(node);
            if !self.mocks.iter().any(names) {
                return Err(no_mock_for_child(node));
            }
            self.stand_ins.insert(node.to_string());
        }
        Ok(Some(CatalogueDocument {
            version: VERSION,
            content: json!({"id": reference.id, "nodes": [{"id": "mocked"}], "transitions": []}),
        }))
    }
}

/// Simulates without a catalogue: every document is in the body.
pub fn simulate_alone(body: &Value, rules: &TimeoutRules, deployment: &Deployment) -> Result<Value, Error> {
    let (body, workflow) = read_alone(body, rules)?;
    simulate(body, &workflow, deployment)
}

/// Reads a body that has every document that its workflow refers to.
pub fn read_alone(body: &Value, rules: &TimeoutRules) -> Result<(SimulateBody, ResolvedWorkflow), Error> {
    let mut body = SimulateBody::read(body, rules)?;
    let document = match &body.source {
        Source::Document(document) => document.clone(),
        Source::Stored { id, version } => stored_in_body(&body.documents, id, *version)?,
    };
    let mut library = body.documents.clone();
    loop {
        match resolve_document(&document, None, &library, rules)? {
            Resolved::Workflow(stored) => {
                return Ok((body, ResolvedWorkflow::new(*stored)?));
            }
            Resolved::Missing(references) => {
                for reference in references {
                    let found = body.stand_in_for(&document, &reference)?;
                    library.insert(reference, found);
                }
            }
        }
    }
}

fn stored_in_body(documents: &Library, id: &str, version: Option<u64>) -> Result<Value, Error> {
    let reference = Reference {
        kind: DocumentKind::Workflows,
        id: id.to_string(),
        version,
    };
    match documents.get(&reference) {
        Some(Some(document)) => Ok(document.content.clone()),
        Some(None) | None => {
            let message = format!(
                "workflow \"{id}\" is not among the \"workflows\" of \"documents\"; add it there, or write it as \"workflow\""
            );
            Err(Error::new(404, "not_found", message))
        }
    }
}
