//! The catalogue in D1: workflows, tasks and actions. Versions are immutable; changed content is stored as the next version.

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, Result};

use crate::api::cursor;
use crate::api::error::Error;
use crate::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};
use crate::protocol::caller::WorkflowScope;
use crate::worker::index::page::{Page, page_of_some};
use crate::worker::platform;

/// Stores `content` unless it equals the newest version. One statement, so that concurrent writers cannot create the same version.
/// Content of an older version may be stored again as the newest.
const STORE: &str = "INSERT INTO definitions (kind, id, version, content, created_at, created_by) \
    SELECT ?1, ?2, coalesce(max(version), 0) + 1, ?3, ?4, ?5 FROM definitions WHERE kind = ?1 AND id = ?2 \
    HAVING coalesce((SELECT content FROM definitions WHERE kind = ?1 AND id = ?2 ORDER BY version DESC LIMIT 1), '') <> ?3 \
    RETURNING version";
const NEWEST: &str = "SELECT version, content, created_at, created_by FROM definitions WHERE kind = ?1 AND id = ?2 \
    ORDER BY version DESC LIMIT 1";
const EXACT: &str = "SELECT version, content, created_at, created_by FROM definitions WHERE kind = ?1 AND id = ?2 AND version = ?3";
/// The other columns are those of the newest version.
const LIST: &str = "SELECT id, max(version) AS version, created_at, created_by FROM definitions \
    WHERE kind = ?1 AND id > ?2 GROUP BY id ORDER BY id LIMIT ?3";

/// The newest version decides which event triggers a workflow: `DELETE_TRIGGER` removes the row of another event,
/// `INSERT_TRIGGER` adds the current one.
const DELETE_TRIGGER: &str = "DELETE FROM triggers WHERE workflow_id = ?1 AND event IS NOT (\
    SELECT content ->> '$.trigger.event' FROM definitions WHERE kind = 'workflows' AND id = ?1 \
    ORDER BY version DESC LIMIT 1)";
const INSERT_TRIGGER: &str = "INSERT INTO triggers (event, workflow_id) SELECT event, ?1 FROM (\
    SELECT content ->> '$.trigger.event' AS event FROM definitions WHERE kind = 'workflows' AND id = ?1 \
    ORDER BY version DESC LIMIT 1) WHERE event IS NOT NULL ON CONFLICT DO NOTHING";
const TRIGGERED: &str = "SELECT workflow_id FROM triggers WHERE event = ?1 AND workflow_id > ?2 \
    ORDER BY workflow_id LIMIT ?3";
const OTHERS_TRIGGERED: &str =
    "SELECT count(*) AS count FROM triggers WHERE event = ?1 AND workflow_id <> ?2";

/// Documents that a list examines for a caller that does not reach all workflows.
const EXAMINED_ROWS: u64 = 450;

#[derive(Deserialize)]
pub struct Document {
    pub version: u64,
    pub content: String,
    pub created_at: u64,
    pub created_by: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

#[derive(Deserialize)]
struct Count {
    count: u64,
}

#[derive(Deserialize)]
struct Triggered {
    workflow_id: String,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    version: u64,
    created_at: u64,
    created_by: Option<String>,
}

impl Listed {
    fn view(self) -> Value {
        let mut view = json!({"id": self.id, "version": self.version, "created_at": self.created_at});
        if let Some(name) = self.created_by {
            view["created_by"] = json!(name);
        }
        view
    }
}

pub struct Catalogue {
    database: D1Database,
}

impl Catalogue {
    pub fn new(env: &worker::Env) -> Result<Catalogue> {
        Ok(Catalogue {
            database: env.d1("DB")?,
        })
    }

    /// The version, and whether it is new. `by` is the name of the caller.
    pub async fn store(
        &self,
        kind: DocumentKind,
        id: &str,
        content: &str,
        by: Option<&str>,
    ) -> Result<(u64, bool)> {
        let store = self.database.prepare(STORE).bind(&[
            kind.name().into(),
            id.into(),
            content.into(),
            JsValue::from_f64(platform::now() as f64),
            by.map_or(JsValue::NULL, JsValue::from),
        ])?;
        let mut statements = vec![store];
        match kind {
            DocumentKind::Workflows => {
                for statement in [DELETE_TRIGGER, INSERT_TRIGGER] {
                    statements.push(self.database.prepare(statement).bind(&[id.into()])?);
                }
            }
            DocumentKind::Actions | DocumentKind::Tasks => {}
        }
        // One transaction, so that readers never see a workflow without its trigger.
        let results = self.database.batch(statements).await?;
        let stored: Vec<Version> = match results.first() {
            Some(result) => result.results()?,
            None => Vec::new(),
        };
        if let Some(stored) = stored.first() {
            return Ok((stored.version, true));
        }
        match self.read(kind, id, None).await? {
            Some(document) => Ok((document.version, false)),
            None => Err(worker::Error::RustError(
                "a document vanished from the catalogue".into(),
            )),
        }
    }

    pub async fn read(&self, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<Option<Document>> {
        self.select(kind, id, version)?.first(None).await
    }

    /// The error for a document that does not exist. It names the newest version if there is one.
    pub async fn missing(&self, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<Error> {
        let newest = match version {
            Some(_) => self.read(kind, id, None).await?.map(|document| document.version),
            None => None,
        };
        Ok(Error::no_document(kind, id, version, newest))
    }

    fn select(&self, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<D1PreparedStatement> {
        match version {
            None => self
                .database
                .prepare(NEWEST)
                .bind(&[kind.name().into(), id.into()]),
            Some(version) => self.database.prepare(EXACT).bind(&[
                kind.name().into(),
                id.into(),
                JsValue::from_f64(version as f64),
            ]),
        }
    }

    /// At most `most` workflows that `event` starts, sorted by id, after the id `after`.
    pub async fn triggered(&self, event: &str, after: &str, most: u32) -> Result<Vec<String>> {
        let rows: Vec<Triggered> = self
            .database
            .prepare(TRIGGERED)
            .bind(&[event.into(), after.into(), JsValue::from_f64(most.into())])?
            .all()
            .await?
            .results()?;
        Ok(rows.into_iter().map(|row| row.workflow_id).collect())
    }

    /// How many workflows the event starts, without `workflow`.
    pub async fn others_triggered(&self, event: &str, workflow: &str) -> Result<u64> {
        let row: Option<Count> = self
            .database
            .prepare(OTHERS_TRIGGERED)
            .bind(&[event.into(), workflow.into()])?
            .first(None)
            .await?;
        Ok(row.map_or(0, |row| row.count))
    }

    /// By id. Tasks and actions are listed to callers that reach all workflows only; `reached` is about workflows.
    pub async fn list(
        &self,
        kind: DocumentKind,
        after: &str,
        limit: u64,
        reached: &WorkflowScope,
    ) -> Result<Page> {
        let rows_max = match reached.is_unlimited() {
            true => limit + 1,
            false => EXAMINED_ROWS,
        };
        let statement = self.database.prepare(LIST).bind(&[
            kind.name().into(),
            after.into(),
            JsValue::from_f64(rows_max as f64),
        ])?;
        let cursor = |row: &Listed| cursor::write(kind.name(), &[&row.id]);
        page_of_some(statement, limit, rows_max, cursor, |row: Listed| {
            let is_reached = reached.contains(&row.id);
            Ok(is_reached.then(|| row.view()))
        })
        .await
    }

    /// Adds each reference to the library: its document, or the fact that it does not exist.
    pub async fn fetch(&self, references: Vec<Reference>, library: &mut Library) -> Result<()> {
        let statements = references
            .iter()
            .map(|reference| self.select(reference.kind, &reference.id, reference.version));
        let results = self.database.batch(statements.collect::<Result<_>>()?).await?;
        for (reference, result) in references.into_iter().zip(results) {
            let content = match result.results::<Document>()?.pop() {
                Some(document) => Some(CatalogueDocument {
                    version: document.version,
                    content: serde_json::from_str(&document.content)?,
                }),
                None => None,
            };
            library.insert(reference, content);
        }
        Ok(())
    }
}
