//! Where the platform comes in. One wasm serves both Workers; the variable `CURFEW_ROLE` says which one this is.

use serde_json::Value;
use worker::{Context, Env, MessageBatch, Request, Response, Result, event};

use crate::{api, executor, watch};

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    match env
        .var("CURFEW_ROLE")
        .map(|role| role.to_string())
        .as_deref()
    {
        Ok("executor") => executor::worker::fetch(request, env).await,
        _ => api::worker::fetch(request, env).await,
    }
}

#[event(queue)]
async fn queue(batch: MessageBatch<Value>, env: Env, _context: Context) -> Result<()> {
    watch::index::save(batch, &env.d1("DB")?).await
}
