//! The way to the objects of breakers. Whatever goes wrong with it, the call it is about is made.

use std::cell::{Cell, RefCell};

use serde::Serialize;
use serde_json::json;
use worker::Env;

use crate::base::time::{Millis, SECOND};
use crate::breaker::machine::Outcome;
use crate::protocol::breaker::{AdmissionResponse, Ask, Report};
use crate::task::breaker::{Admission, Memory, Permit};
use crate::worker::platform::http_client::{Peer, Request};
use crate::worker::platform::{self, deadline, now};

/// How long a breaker may keep a call waiting.
const OBJECT_MS: u64 = 3 * SECOND;

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

pub async fn admit(env: &Env, key: &str, deadline_at: Option<Millis>) -> Admission {
    if MEMORY.with_borrow(|memory| memory.is_healthy(key, now())) {
        return Admission::Call(Permit::Healthy);
    }
    let ask = Ask {
        key: key.to_string(),
        deadline_at,
    };
    match knock(env, key, "/ask", &ask, deadline_at).await {
        Some(said) => said.into(),
        None => Admission::Call(Permit::Blind),
    }
}

/// Reports also after the call's own deadline: that it passed is the news.
pub async fn tell(env: &Env, key: &str, pass: Permit, word: Outcome) {
    if !MEMORY.with_borrow_mut(|memory| memory.is_news(key, pass, word)) {
        return;
    }
    let report = Report {
        key: key.to_string(),
        outcome: word,
        trial: match pass {
            Permit::Trial(number) => Some(number),
            Permit::Healthy | Permit::Watched | Permit::Blind => None,
        },
    };
    knock(env, key, "/report", &report, None).await;
}

async fn knock(
    env: &Env,
    key: &str,
    door: &str,
    body: &impl Serialize,
    deadline_at: Option<Millis>,
) -> Option<AdmissionResponse> {
    let said = match send(env, key, door, body, deadline_at).await {
        Ok(said) => said?,
        Err(message) => {
            platform::log(json!({
                "level": "error", "event": "breaker_unreachable", "breaker": key, "message": message,
            }));
            return None;
        }
    };
    MEMORY.with_borrow_mut(|memory| memory.hear(key, said, now()));
    Some(said)
}

/// `None`: this executor has no breakers.
async fn send(
    env: &Env,
    key: &str,
    door: &str,
    body: &impl Serialize,
    deadline_at: Option<Millis>,
) -> Result<Option<AdmissionResponse>, String> {
    let Ok(breakers) = env.durable_object("BREAKERS") else {
        if !TOLD.replace(true) {
            platform::log(json!({
                "level": "error", "event": "breakers_off",
                "message": "no Durable Object binding BREAKERS is configured: every call is made",
            }));
        }
        return Ok(None);
    };
    let stub: Peer = breakers
        .get_by_name(key)
        .map_err(|error| error.to_string())?
        .into_rpc();
    let body = serde_json::to_string(body).map_err(|error| error.to_string())?;
    let url = format!("http://breaker{door}");
    let talk = async {
        let answer = Request::post(&url, &body).send(&stub).await?;
        match answer.status() {
            200 => Ok(answer.text().await?),
            status => Err(format!("{door} answered with status {status}")),
        }
    };
    let left_ms = deadline_at.map_or(OBJECT_MS, |at| at.saturating_sub(now()).min(OBJECT_MS));
    let text = deadline::within(left_ms, talk)
        .await
        .ok_or("no answer in time")??;
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| error.to_string())
}
