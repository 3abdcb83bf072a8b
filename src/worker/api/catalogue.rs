//! The catalogue in D1: documents are immutable, a changed one is the next version.

use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, Result};

use crate::api::cursor;
use crate::api::error::Error;
use crate::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};
use crate::worker::index::page::{Page, page, rows_of};
use crate::worker::platform;

/// Stores `content` unless the newest version is the same; both in one statement, so that two writers at once
/// cannot make the same version. Comparing with the newest only lets an older content be stored again on top.
const STORE: &str = "INSERT INTO definitions (kind, id, version, content, created_at) \
    SELECT ?1, ?2, coalesce(max(version), 0) + 1, ?3, ?4 FROM definitions WHERE kind = ?1 AND id = ?2 \
    HAVING coalesce((SELECT content FROM definitions WHERE kind = ?1 AND id = ?2 ORDER BY version DESC LIMIT 1), '') <> ?3 \
    RETURNING version";
const NEWEST: &str = "SELECT version, content, created_at FROM definitions WHERE kind = ?1 AND id = ?2 \
    ORDER BY version DESC LIMIT 1";
const EXACT: &str =
    "SELECT version, content, created_at FROM definitions WHERE kind = ?1 AND id = ?2 AND version = ?3";
const LIST: &str = "SELECT id, max(version) AS version, max(created_at) AS created_at FROM definitions \
    WHERE kind = ?1 AND id > ?2 GROUP BY id ORDER BY id LIMIT ?3";

/// The newest version decides which event starts a workflow. Two statements, because the row of another event goes.
const UNTRIGGER: &str = "DELETE FROM triggers WHERE workflow_id = ?1 AND event IS NOT (\
    SELECT content ->> '$.trigger.event' FROM definitions WHERE kind = 'workflows' AND id = ?1 \
    ORDER BY version DESC LIMIT 1)";
const TRIGGER: &str = "INSERT INTO triggers (event, workflow_id) SELECT event, ?1 FROM (\
    SELECT content ->> '$.trigger.event' AS event FROM definitions WHERE kind = 'workflows' AND id = ?1 \
    ORDER BY version DESC LIMIT 1) WHERE event IS NOT NULL ON CONFLICT DO NOTHING";
const TRIGGERED: &str = "SELECT workflow_id FROM triggers WHERE event = ?1 AND workflow_id > ?2 \
    ORDER BY workflow_id LIMIT ?3";
const OTHERS_TRIGGERED: &str =
    "SELECT count(*) AS count FROM triggers WHERE event = ?1 AND workflow_id <> ?2";

#[derive(Deserialize)]
pub struct Document {
    pub version: u64,
    pub content: String,
    pub created_at: u64,
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

    /// The version, and whether it is new.
    pub async fn store(&self, kind: DocumentKind, id: &str, content: &str) -> Result<(u64, bool)> {
        let store = self.database.prepare(STORE).bind(&[
            kind.name().into(),
            id.into(),
            content.into(),
            JsValue::from_f64(platform::now() as f64),
        ])?;
        let mut statements = vec![store];
        match kind {
            DocumentKind::Workflows => {
                for follow in [UNTRIGGER, TRIGGER] {
                    statements.push(self.database.prepare(follow).bind(&[id.into()])?);
                }
            }
            DocumentKind::Actions | DocumentKind::Tasks => {}
        }
        // One transaction: a workflow and what triggers it are never seen apart.
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
        self.reading(kind, id, version)?.first(None).await
    }

    /// Says that a document is not there, after a look at whether another version is.
    pub async fn missing(&self, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<Error> {
        let newest = match version {
            Some(_) => self.read(kind, id, None).await?.map(|document| document.version),
            None => None,
        };
        Ok(Error::no_document(kind, id, version, newest))
    }

    fn reading(&self, kind: DocumentKind, id: &str, version: Option<u64>) -> Result<D1PreparedStatement> {
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

    /// Workflows that `event` starts, in the order of their ids: `most` of those behind `after`.
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

    /// How many workflows other than `workflow` the event starts.
    pub async fn others_triggered(&self, event: &str, workflow: &str) -> Result<u64> {
        let row: Option<Count> = self
            .database
            .prepare(OTHERS_TRIGGERED)
            .bind(&[event.into(), workflow.into()])?
            .first(None)
            .await?;
        Ok(row.map_or(0, |row| row.count))
    }

    pub async fn list(&self, kind: DocumentKind, after: &str, limit: u64) -> Result<Page> {
        let statement =
            self.database
                .prepare(LIST)
                .bind(&[kind.name().into(), after.into(), rows_of(limit)])?;
        let shown = |row: Listed| json!({"id": row.id, "version": row.version, "created_at": row.created_at});
        page(
            statement,
            limit,
            |row: &Listed| cursor::write(kind.name(), &[&row.id]),
            |row| Ok(shown(row)),
        )
        .await
    }

    /// Looks the references up and adds what was found, or that nothing was.
    pub async fn fetch(&self, references: Vec<Reference>, library: &mut Library) -> Result<()> {
        let statements = references
            .iter()
            .map(|reference| self.reading(reference.kind, &reference.id, reference.version));
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
