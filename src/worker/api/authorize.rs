//! Reads the settings and the headers that decide who sends a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::json;
use web_sys::Request;
use worker::{Env, Url};

use crate::api::auth::{self, Identity, RequestHead, Role, Settings};
use crate::api::error::Error;
use crate::worker::api::fetch::header;
use crate::worker::platform;

thread_local! {
    /// The parsed settings, and the text that they were parsed from.
    static SETTINGS: RefCell<Option<(Option<String>, Rc<Settings>)>> = const { RefCell::new(None) };
    static WARNED: Cell<bool> = const { Cell::new(false) };
}

/// The identity of the sender, if it has the role.
pub fn authorize(request: &Request, url: &Url, env: &Env, needed: Role) -> Result<Identity, Error> {
    let settings = settings(env)?;
    let authorization = header(request, "authorization");
    let head = RequestHead {
        authorization: authorization.as_deref(),
        url_host: url.host_str().unwrap_or_default(),
    };
    auth::authorize(&settings, &head, needed, platform::now())
}

/// Parsed once per isolate. An error is not cached: it is rare, and the next deployment has another isolate.
fn settings(env: &Env) -> Result<Rc<Settings>, Error> {
    let tokens = platform::variable(env, "CURFEW_TOKENS");
    warn_without_tokens(tokens.as_deref());
    SETTINGS.with_borrow_mut(|cached| {
        if let Some((text, settings)) = cached
            && *text == tokens
        {
            return Ok(Rc::clone(settings));
        }
        let settings = Rc::new(Settings::parse(tokens.as_deref())?);
        *cached = Some((tokens, Rc::clone(&settings)));
        Ok(settings)
    })
}

/// Logs a warning once per isolate.
fn warn_without_tokens(tokens: Option<&str>) {
    if tokens.is_none_or(|text| text.trim().is_empty()) && !WARNED.replace(true) {
        platform::log(json!({
            "level": "warn", "event": "auth_not_configured",
            "message": "CURFEW_TOKENS is not set: every request to a loopback host is allowed, every other is refused",
        }));
    }
}
