//! Work that outlives the response of its invocation.

use std::future::Future;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::worker::platform::deadline;

#[wasm_bindgen(module = "cloudflare:workers")]
extern "C" {
    #[wasm_bindgen(js_name = waitUntil)]
    fn wait_until(promise: &Promise);
}

/// Runs `work` for at most `millis`, also after the invocation has responded.
pub fn run_in_background(millis: u64, work: impl Future<Output = ()> + 'static) {
    let bounded = async move {
        deadline::within(millis, work).await;
        Ok(JsValue::UNDEFINED)
    };
    wait_until(&future_to_promise(bounded));
}
