//! The few JavaScript things the shells need and `worker` does not offer as they need them.

pub mod call;
pub mod deadline;

use crate::model::time::Millis;

/// The platform's clock. It stands still while code runs and moves with I/O.
pub fn now() -> Millis {
    js_sys::Date::now() as Millis
}

/// A variable that is a number.
pub fn variable(env: &worker::Env, name: &str) -> Option<u64> {
    env.var(name).ok()?.to_string().parse().ok()
}

/// 128 random bits as text: unguessable, safe in a URL.
pub fn random_id() -> worker::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| worker::Error::RustError(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One JSON object a line, as the platform's log search wants it. Never an input, an output or a secret.
pub fn log(fields: serde_json::Value) {
    worker::console_log!("{fields}");
}
