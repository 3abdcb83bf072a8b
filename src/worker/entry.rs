//! The platform's events. One wasm is coordinator and executor: `entry.mjs` sends a coordinator's requests here and an executor's
//! orders to `executor::execute`.
//!
//! No handler returns an error: the glue around it would panic, and a panic ends every call in the same memory.

use serde_json::json;
use wasm_bindgen::prelude::*;
use web_sys::{Request, Response};
use worker::{Context, Env, MessageBatch, Result, ScheduleContext, ScheduledEvent, event};

use crate::api::auth::Roles;
use crate::api::error::Error;

use super::{api, index, platform, sweep, task_consumer};

/// The queue of attempts. Every other queue belongs to the index.
const TASKS: &str = "curfew-tasks";

#[event(start)]
fn start() {
    if cfg!(debug_assertions) {
        return console_error_panic_hook::set_once();
    }
    // Without the message, which may quote an input. The stack follows with the trap (`wasm_instance.mjs`).
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        platform::log(json!({"level": "error", "event": "panicked", "location": location}));
    }));
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    answer(request, env, None).await
}

/// A request of a Worker that is bound to this one; `worker` is its name. No request from outside comes here.
#[wasm_bindgen(js_name = fetchBound)]
pub async fn fetch_bound(
    request: Request,
    env: Env,
    worker: String,
) -> std::result::Result<Response, JsError> {
    let answer = answer(request, env, Some(worker)).await;
    answer.map_err(|_| JsError::new("no response could be made"))
}

async fn answer(request: Request, env: Env, bound: Option<String>) -> Result<Response> {
    api::fetch::fetch(request, env, bound).await.or_else(|error| {
        platform::log(json!({"level": "error", "event": "request_failed", "message": error.to_string()}));
        let response = api::respond::response(Err(Error::internal()))?;
        Ok(api::respond::finish(&response, Roles::NONE))
    })
}

#[event(queue)]
async fn queue(batch: MessageBatch<()>, env: Env, _context: Context) -> Result<()> {
    if batch.queue() == TASKS {
        task_consumer::consume(batch, &env).await;
        return Ok(());
    }
    match env.d1("DB") {
        Ok(database) => index::consumer::save(batch, &env, &database).await,
        Err(error) => {
            platform::log(json!({"level": "error", "event": "index_missing", "message": error.to_string()}));
            batch.retry_all();
        }
    }
    Ok(())
}

#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    sweep::sweep(&env).await;
}
