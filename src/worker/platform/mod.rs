//! What the shells need of the platform and `worker` does not offer, or not fast enough.

pub mod ai;
pub mod background;
pub mod concurrent;
pub mod deadline;
pub mod executor_client;
pub mod executor_stream;
pub mod http_client;
pub mod inline_executor;
mod js_operation;
pub mod rate_limit;
pub mod rs256;
pub mod watchers;

use wasm_bindgen::prelude::*;

use crate::base::time::Millis;

/// The JavaScript files of this folder import it. wasm-bindgen copies only files that Rust names.
#[wasm_bindgen(module = "/src/worker/platform/wasm_call.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = nextId)]
    fn _next_id() -> u32;
}

/// The platform's clock. It only advances with I/O, never while code runs.
pub fn now() -> Millis {
    js_sys::Date::now() as Millis
}

/// 128 random bits as text: unguessable, safe in a URL.
pub fn random_id() -> worker::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| worker::Error::RustError(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Uniform in 0..1. For delays, not for secrets.
pub fn random() -> f64 {
    js_sys::Math::random()
}

/// A binding of the Worker, if it has a function named `method`.
fn binding<T: JsCast>(env: &worker::Env, name: &str, method: &str) -> Option<T> {
    let binding = js_sys::Reflect::get(env, &name.into()).ok()?;
    // Each request asks for some that most deployments do not have. To look into nothing throws, which a development build logs.
    if binding.is_null_or_undefined() {
        return None;
    }
    let method = js_sys::Reflect::get(&binding, &method.into()).ok()?;
    method.is_function().then(|| binding.unchecked_into())
}

/// The text of a JavaScript error.
pub fn message_of(error: &JsValue) -> String {
    match error.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| "unknown error".into()),
    }
}

/// A variable or secret of the Worker as text; an array is its JSON. None for any other binding.
pub fn variable(env: &worker::Env, name: &str) -> Option<String> {
    let value = js_sys::Reflect::get(env, &name.into()).ok()?;
    if js_sys::Array::is_array(&value) {
        return js_sys::JSON::stringify(&value).ok().map(String::from);
    }
    value.as_string()
}

/// A variable that may be JSON, as text: wrangler files may hold objects, too.
pub fn json_variable(env: &worker::Env, name: &str) -> Option<String> {
    let value = js_sys::Reflect::get(env, &name.into()).ok()?;
    match value.is_object() {
        true => js_sys::JSON::stringify(&value).ok().map(String::from),
        false => value.as_string(),
    }
}

/// A variable that is a number.
pub fn number(env: &worker::Env, name: &str) -> Option<u64> {
    variable(env, name)?.parse().ok()
}

/// Logs one JSON object a line, which the platform's log search indexes. Inputs, outputs and secrets are never logged.
pub fn log(fields: serde_json::Value) {
    worker::console_log!("{fields}");
}

/// `message` must quote no input, output or secret.
pub fn log_error(event: &str, message: &str) {
    log(serde_json::json!({"level": "error", "event": event, "message": message}));
}
