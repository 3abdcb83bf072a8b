//! The object of one breaker. One row; what it decides is in SQLite before anybody hears of it. It has no alarm: its times
//! are looked at when somebody asks.

use std::cell::RefCell;

use serde_json::{Value, json};
use worker::{
    DurableObject, Env, Method, QueueContentType, RawMessageBuilder, Request, Response, Result, SqlStorage,
    SqlStorageValue, State, durable_object,
};

use crate::api::error::Error;
use crate::breaker::machine::{Breaker, Event, Settings};
use crate::protocol::breaker::{AdmissionResponse, Ask, Report, view};
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
    /// None: not looked for yet.
    held: RefCell<Option<Held>>,
}

/// What this object holds. Without a name nothing was ever saved here.
#[derive(Clone, Default)]
struct Held {
    key: Option<String>,
    breaker: Breaker,
}

impl DurableObject for BreakerObject {
    fn new(state: State, env: Env) -> Self {
        BreakerObject {
            sql: state.storage().sql(),
            settings: settings(&env),
            env,
            held: RefCell::default(),
        }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let answer = self.answer(request).await.unwrap_or_else(|error| {
            platform::log(json!({"level": "error", "event": "request_failed", "message": error.to_string()}));
            Err(Error::internal())
        });
        Ok(respond::response(answer)?.into())
    }
}

impl BreakerObject {
    async fn answer(&self, mut request: Request) -> Result<ApiResult> {
        let path = request.url()?.path().to_string();
        match (request.method(), path.as_str()) {
            (Method::Post, "/ask") => {
                let ask: Ask = serde_json::from_str(&request.text().await?)?;
                let deadline_at = ask.deadline_at;
                self.decide(&ask.key, Event::Asked { deadline_at })
            }
            (Method::Post, "/report") => {
                let report: Report = serde_json::from_str(&request.text().await?)?;
                let (outcome, trial) = (report.outcome, report.trial);
                self.decide(&report.key, Event::Reported { outcome, trial })
            }
            (Method::Get, "/state") => self.shown(),
            (Method::Post, "/reset") => {
                if let Some(key) = self.held()?.key {
                    self.decide(&key, Event::Reset)?.ok();
                }
                self.shown()
            }
            _ => Ok(Err(Error::not_found("this"))),
        }
    }

    fn shown(&self) -> Result<ApiResult> {
        let held = self.held()?;
        Ok(match held.key {
            Some(key) => Ok((200, view(&key, &held.breaker))),
            None => Err(Error::not_found("the breaker")),
        })
    }

    fn held(&self) -> Result<Held> {
        if let Some(held) = &*self.held.borrow() {
            return Ok(held.clone());
        }
        let held = self.load()?;
        *self.held.borrow_mut() = Some(held.clone());
        Ok(held)
    }

    /// Asking about a breaker that never failed leaves no trace.
    fn load(&self) -> Result<Held> {
        let count: Vec<Vec<SqlStorageValue>> =
            self.sql.exec(EXISTS, Vec::new())?.raw().collect::<Result<_>>()?;
        let is_there = match count.first().and_then(|row| row.first()) {
            Some(SqlStorageValue::Integer(count)) => *count > 0,
            Some(SqlStorageValue::Float(count)) => *count > 0.0,
            Some(_) | None => false,
        };
        if !is_there {
            return Ok(Held::default());
        }
        let rows: Vec<Vec<SqlStorageValue>> =
            self.sql.exec(LOAD, Vec::new())?.raw().collect::<Result<_>>()?;
        match rows.first().map(Vec::as_slice) {
            Some([SqlStorageValue::String(key), SqlStorageValue::String(value)]) => Ok(Held {
                key: Some(key.clone()),
                breaker: serde_json::from_str(value)?,
            }),
            Some(_) | None => Ok(Held::default()),
        }
    }

    /// Memory is changed last: if the row could not be saved, nothing has happened.
    fn decide(&self, key: &str, event: Event) -> Result<ApiResult> {
        let Held { mut breaker, .. } = self.held()?;
        let before = breaker.standing();
        let (answer, changed) = breaker.handle(platform::now(), &self.settings, event);
        if changed {
            self.sql.exec(CREATE, Vec::new())?;
            let row = serde_json::to_string(&breaker)?;
            self.sql.exec(SAVE, vec![key.into(), row.into()])?;
            if before != breaker.standing() {
                platform::log(json!({
                    "level": "warn", "event": "breaker_moved", "breaker": key, "state": breaker.standing(),
                    "failures": breaker.failures,
                }));
            }
            self.announce(json!({"breaker": view(key, &breaker), "revision": breaker.revision}));
            *self.held.borrow_mut() = Some(Held {
                key: Some(key.to_string()),
                breaker,
            });
        }
        Ok(Ok((200, json!(AdmissionResponse::from(answer)))))
    }

    /// Tells the index. A lost message costs a stale list until the next one.
    fn announce(&self, message: Value) {
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

fn settings(env: &Env) -> Settings {
    let default = Settings::default();
    let number = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    Settings {
        open_ms: number("CURFEW_BREAKER_OPEN_MS", default.open_ms),
        escalated_ms: number("CURFEW_BREAKER_ESCALATED_MS", default.escalated_ms),
        trial_ms: number("CURFEW_BREAKER_TRIAL_MS", default.trial_ms),
        ..default
    }
}
