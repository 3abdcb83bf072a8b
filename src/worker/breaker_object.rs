//! The Durable Object of one circuit breaker: one row, which is saved before a response is sent. It has no alarm, because a
//! breaker only compares times when a request comes.

use std::cell::RefCell;

use serde_json::{Value, json};
use worker::{
    DurableObject, Env, Method, QueueContentType, RawMessageBuilder, Request, Response, Result, SqlStorage,
    SqlStorageValue, State, durable_object,
};

use crate::api::error::Error;
use crate::base::from_json::from_json;
use crate::breaker::machine::{AdmissionDecision, Breaker, BreakerEvent, Settings};
use crate::protocol::breaker::{self, AdmissionRequest, AdmissionResponse, OutcomeReport};
use crate::worker::api::respond::{self, ApiResult};
use crate::worker::platform;

const EXISTS: &str = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'breaker'";
const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS breaker (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID";
const LOAD: &str = "SELECT key, value FROM breaker";
const SAVE: &str = "INSERT INTO breaker (key, value) VALUES (?, ?) \
     ON CONFLICT (key) DO UPDATE SET value = excluded.value";

#[durable_object]
pub struct BreakerObject {
    sql: SqlStorage,
    env: Env,
    settings: Settings,
    /// None until it is loaded.
    stored: RefCell<Option<StoredBreaker>>,
}

/// The state of this object. It has no key until something was saved.
#[derive(Clone, Default)]
struct StoredBreaker {
    key: Option<String>,
    breaker: Breaker,
}

impl DurableObject for BreakerObject {
    fn new(state: State, env: Env) -> Self {
        BreakerObject {
            sql: state.storage().sql(),
            settings: settings(&env),
            env,
            stored: RefCell::default(),
        }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let result = self.respond(request).await.unwrap_or_else(|error| {
            platform::log(json!({"level": "error", "event": "request_failed", "message": error.to_string()}));
            Err(Error::internal())
        });
        Ok(respond::response(result)?.into())
    }
}

impl BreakerObject {
    async fn respond(&self, mut request: Request) -> Result<ApiResult> {
        let path = request.url()?.path().to_string();
        match (request.method(), path.as_str()) {
            (Method::Post, "/ask") => {
                let asked: AdmissionRequest = from_json(&request.text().await?)?;
                let deadline_at = asked.deadline_at;
                self.admission(&asked.key, BreakerEvent::AdmissionRequested { deadline_at })
            }
            (Method::Post, "/report") => {
                let report: OutcomeReport = from_json(&request.text().await?)?;
                let (outcome, trial) = (report.outcome, report.trial);
                self.admission(&report.key, BreakerEvent::CallEnded { outcome, trial })
            }
            (Method::Get, "/state") => self.view(),
            (Method::Post, "/reset") => {
                if let Some(key) = self.stored()?.key {
                    self.decide(&key, BreakerEvent::Reset)?;
                }
                self.view()
            }
            _ => Ok(Err(Error::not_found("this"))),
        }
    }

    fn admission(&self, key: &str, event: BreakerEvent) -> Result<ApiResult> {
        let decision = self.decide(key, event)?;
        Ok(Ok((200, json!(AdmissionResponse::from(decision)))))
    }

    fn view(&self) -> Result<ApiResult> {
        let stored = self.stored()?;
        Ok(match stored.key {
            Some(key) => Ok((200, breaker::view(&key, &stored.breaker))),
            None => Err(Error::not_found("the breaker")),
        })
    }

    fn stored(&self) -> Result<StoredBreaker> {
        if let Some(stored) = &*self.stored.borrow() {
            return Ok(stored.clone());
        }
        let stored = self.load()?;
        *self.stored.borrow_mut() = Some(stored.clone());
        Ok(stored)
    }

    /// Creates no table: a breaker that never failed stores nothing.
    fn load(&self) -> Result<StoredBreaker> {
        let count: Vec<Vec<SqlStorageValue>> =
            self.sql.exec(EXISTS, Vec::new())?.raw().collect::<Result<_>>()?;
        let is_there = match count.first().and_then(|row| row.first()) {
            Some(SqlStorageValue::Integer(count)) => *count > 0,
            Some(SqlStorageValue::Float(count)) => *count > 0.0,
            Some(_) | None => false,
        };
        if !is_there {
            return Ok(StoredBreaker::default());
        }
        let rows: Vec<Vec<SqlStorageValue>> =
            self.sql.exec(LOAD, Vec::new())?.raw().collect::<Result<_>>()?;
        match rows.first().map(Vec::as_slice) {
            Some([SqlStorageValue::String(key), SqlStorageValue::String(value)]) => Ok(StoredBreaker {
                key: Some(key.clone()),
                breaker: from_json(value)?,
            }),
            None => Ok(StoredBreaker::default()),
            Some(_) => Err("the row of the breaker is not two texts".into()),
        }
    }

    /// Memory changes last, so that a failed save changes nothing.
    fn decide(&self, key: &str, event: BreakerEvent) -> Result<AdmissionDecision> {
        let StoredBreaker { mut breaker, .. } = self.stored()?;
        let before = breaker.state();
        let (decision, changed) = breaker.handle(platform::now(), &self.settings, event);
        if changed {
            self.sql.exec(CREATE, Vec::new())?;
            let row = serde_json::to_string(&breaker)?;
            self.sql.exec(SAVE, vec![key.into(), row.into()])?;
            if before != breaker.state() {
                platform::log(json!({
                    "level": "warn", "event": "breaker_moved", "breaker": key, "state": breaker.state(),
                    "failures": breaker.failures,
                }));
            }
            self.publish(json!({"breaker": breaker::view(key, &breaker), "revision": breaker.revision}));
            *self.stored.borrow_mut() = Some(StoredBreaker {
                key: Some(key.to_string()),
                breaker,
            });
        }
        Ok(decision)
    }

    /// Sends the state to the index. If the message is lost, the list is stale until the next one.
    fn publish(&self, message: Value) {
        // A deployment without an index has no queue.
        let Ok(queue) = self.env.queue("INDEX_QUEUE") else {
            return;
        };
        let message = RawMessageBuilder::new(message.to_string().into());
        wasm_bindgen_futures::spawn_local(async move {
            let message = message.build_with_content_type(QueueContentType::Text);
            if let Err(error) = queue.send_raw(message).await {
                platform::log(json!({
                    "level": "error", "event": "queue_failed", "message": error.to_string(),
                }));
            }
        });
    }
}

pub fn settings(env: &Env) -> Settings {
    let default = Settings::default();
    let number = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    Settings {
        open_ms: number("CURFEW_BREAKER_OPEN_MS", default.open_ms),
        escalated_ms: number("CURFEW_BREAKER_ESCALATED_MS", default.escalated_ms),
        trial_ms: number("CURFEW_BREAKER_TRIAL_MS", default.trial_ms),
        ..default
    }
}
