//! Connects a client to the object of the run that it watches; `live_stream.mjs` passes the events on.

use js_sys::Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};
use worker::Env;

use crate::api::live::Watch;
use crate::base::text::to_json;
use crate::protocol::caller::Caller;
use crate::protocol::run::{RunCall, RunRequest};
use crate::worker::api::request::header;
use crate::worker::platform::http_client::Peer;
use crate::worker::platform::{deadline, message_of};
use crate::worker::run_client::{self, CallError};

#[wasm_bindgen(module = "/src/worker/platform/live_stream.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = watchRun)]
    fn watch_run(object: &Peer, call: &str, kinds: &Array, form: &str) -> js_sys::Promise;
}

/// How long the object may take to accept the client.
const ACCEPT_MS: u64 = 10_000;

pub async fn watch(
    request: &Request,
    env: &Env,
    caller: &Caller,
    run: &str,
    watch: Watch,
) -> Result<Response, CallError> {
    let call = RunCall {
        caller: Some(caller.clone()),
        operation: None,
        request: RunRequest::ReadLive { after: watch.after },
    };
    let call = to_json(&call).map_err(|error| CallError::Failed(error.to_string()))?;
    let kinds: Array = watch.kinds.iter().map(|kind| JsValue::from_str(kind)).collect();
    let is_upgrade = header(request, "upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let form = match (request.method().as_str(), is_upgrade) {
        ("HEAD", _) => "head",
        (_, true) => "socket",
        (_, false) => "events",
    };
    let stub = run_client::stub(env, run)?;
    let response = JsFuture::from(watch_run(&stub, &call, &kinds, form));
    match deadline::within(ACCEPT_MS, response).await {
        Some(Ok(response)) => Ok(response.unchecked_into()),
        Some(Err(error)) => Err(CallError::Failed(message_of(&error))),
        None => Err(CallError::TimedOut),
    }
}
