//! The few JavaScript things the shells need and `worker` does not offer as they need them.

pub mod ai;
pub mod call;
pub mod deadline;
pub mod exchange;
pub mod executor_client;
pub mod inline_executor;

use crate::base::time::Millis;

/// The platform's clock. It stands still while code runs and moves with I/O.
pub fn now() -> Millis {
    js_sys::Date::now() as Millis
}

/// 128 random bits as text: unguessable, safe in a URL.
pub fn random_id() -> worker::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| worker::Error::RustError(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// In 0..1, evenly. For delays, not for secrets.
pub fn random() -> f64 {
    js_sys::Math::random()
}

/// A variable or secret of the Worker as text. One that was written as JSON is that JSON; a binding is none.
pub fn variable(env: &worker::Env, name: &str) -> Option<String> {
    let value = js_sys::Reflect::get(env, &name.into()).ok()?;
    if js_sys::Array::is_array(&value) {
        return js_sys::JSON::stringify(&value).ok().map(String::from);
    }
    value.as_string()
}

/// A variable that is a number.
pub fn number(env: &worker::Env, name: &str) -> Option<u64> {
    variable(env, name)?.parse().ok()
}

/// One JSON object a line, as the platform's log search wants it. Never an input, an output or a secret.
pub fn log(fields: serde_json::Value) {
    worker::console_log!("{fields}");
}
