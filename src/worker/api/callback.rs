//! Callbacks: their settings in D1, the check of a capability, and the way of a result to its run.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::json;
use worker::{Env, Error as WorkerError, Result};

use crate::api::callback::{self, CallbackSettings};
use crate::api::error::Error;
use crate::run::Capability;
use crate::worker::platform::{self, deadline};

const READ: &str = "SELECT name, value FROM settings WHERE name IN ('callback_key', 'callback_older_until')";
/// How long D1 may take.
const READ_MS: u64 = 5_000;

thread_local! {
    /// Read once per isolate: a deployment has one key.
    static SETTINGS: RefCell<Option<Rc<CallbackSettings>>> = RefCell::default();
}

#[derive(Deserialize)]
struct Row {
    name: String,
    value: String,
}

pub async fn settings(env: &Env) -> Result<Rc<CallbackSettings>> {
    if let Some(settings) = SETTINGS.with_borrow(Clone::clone) {
        return Ok(settings);
    }
    let read = env.d1("DB")?.prepare(READ);
    let rows = deadline::within(READ_MS, read.all()).await;
    let rows = rows.ok_or_else(|| WorkerError::RustError("D1 did not answer in time".into()))??;
    let rows: Vec<Row> = rows.results()?;
    let value = |name: &str| {
        rows.iter()
            .find(|row| row.name == name)
            .map(|row| row.value.as_str())
    };
    let settings = Rc::new(CallbackSettings::read(value).map_err(WorkerError::RustError)?);
    SETTINGS.set(Some(Rc::clone(&settings)));
    Ok(settings)
}

/// Whether the run's object is to decide about the capability.
pub async fn check(env: &Env, text: &str) -> std::result::Result<(), Error> {
    let capability = Capability::parse(text).ok_or_else(callback::unknown)?;
    let settings = settings(env).await.map_err(|error| {
        let message = error.to_string();
        platform::log(json!({"level": "error", "event": "callback_key_unreadable", "message": message}));
        Error::not_migrated(&message).unwrap_or_else(callback::unchecked)
    })?;
    match settings.admits(&capability, platform::now()) {
        true => Ok(()),
        false => Err(callback::unknown()),
    }
}
