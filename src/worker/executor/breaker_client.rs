//! Requests to the objects of circuit breakers. If one fails, the call it is about is made all the same.

use std::cell::{Cell, RefCell};

use serde::Serialize;
use serde_json::json;
use worker::Env;

use crate::base::from_json::from_json;
use crate::base::time::{Millis, SECOND};
use crate::breaker::machine::CallOutcome;
use crate::protocol::breaker::{AdmissionRequest, AdmissionResponse, OutcomeReport};
use crate::task::breaker::{Admission, AdmissionCache, Permit};
use crate::worker::platform::http_client::{Peer, Request};
use crate::worker::platform::{self, deadline, now};

/// How long a call waits for its breaker.
const TIMEOUT_MS: u64 = 3 * SECOND;

thread_local! {
    static CACHE: RefCell<AdmissionCache> = RefCell::default();
    static HAS_LOGGED_MISSING: Cell<bool> = const { Cell::new(false) };
}

pub async fn admit(env: &Env, key: &str, deadline_at: Option<Millis>) -> Admission {
    if CACHE.with_borrow(|cache| cache.is_healthy(key, now())) {
        return Admission::Call(Permit::Healthy);
    }
    let request = AdmissionRequest {
        key: key.to_string(),
        deadline_at,
    };
    match request_and_cache(env, key, "/ask", &request, deadline_at).await {
        Some(response) => response.into(),
        None => Admission::Call(Permit::Blind),
    }
}

/// Reports the outcome of a call, also after its deadline: a deadline that passed is an outcome.
pub async fn report(env: &Env, key: &str, permit: Permit, outcome: CallOutcome) {
    if !CACHE.with_borrow_mut(|cache| cache.must_report(key, permit, outcome)) {
        return;
    }
    let report = OutcomeReport {
        key: key.to_string(),
        outcome,
        trial: match permit {
            Permit::Trial(number) => Some(number),
            Permit::Healthy | Permit::Watched | Permit::Blind => None,
        },
    };
    request_and_cache(env, key, "/report", &report, None).await;
}

/// None if there was no response.
async fn request_and_cache(
    env: &Env,
    key: &str,
    path: &str,
    body: &impl Serialize,
    deadline_at: Option<Millis>,
) -> Option<AdmissionResponse> {
    let response = match send(env, key, path, body, deadline_at).await {
        Ok(response) => response?,
        Err(message) => {
            platform::log(json!({
                "level": "error", "event": "breaker_unreachable", "breaker": key, "message": message,
            }));
            return None;
        }
    };
    CACHE.with_borrow_mut(|cache| cache.store(key, response, now()));
    Some(response)
}

/// None if the executor has no binding for breakers.
async fn send(
    env: &Env,
    key: &str,
    path: &str,
    body: &impl Serialize,
    deadline_at: Option<Millis>,
) -> Result<Option<AdmissionResponse>, String> {
    let Ok(breakers) = env.durable_object("BREAKERS") else {
        if !HAS_LOGGED_MISSING.replace(true) {
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
    let url = format!("http://breaker{path}");
    let exchange = async {
        let response = Request::post(&url, &body).send(&stub).await?;
        match response.status() {
            200 => Ok(response.text().await?),
            status => Err(format!("{path} answered with status {status}")),
        }
    };
    let left_ms = deadline_at.map_or(TIMEOUT_MS, |at| at.saturating_sub(now()).min(TIMEOUT_MS));
    let text = deadline::within(left_ms, exchange)
        .await
        .ok_or("no answer in time")??;
    from_json(&text).map(Some).map_err(|error| error.to_string())
}
