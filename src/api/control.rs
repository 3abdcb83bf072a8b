//! Bodies of control requests: cancel, pause, resume, extend, retry, restart and gate decisions. Pure: the API checks a body
//! before it wakes the run's object, and the object reads it by the same rules.

use serde_json::Value;

use crate::api::error::Error;
use crate::base::text::shorten;
use crate::base::time::{Limit, parse_moment};
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::run::{Extension, GateDecision, RetryMode, TokenId};

const RETRY_MODES: &[(&str, RetryMode)] = &[
    ("retry_step", RetryMode::RetryStep),
    ("discard_and_retry", RetryMode::DiscardAndRetry),
    ("escalate", RetryMode::Escalate),
];

/// Checks the body of a control. `path` is the part behind the run's id. The payload of a signal may be any JSON.
pub fn check(path: &str, body: &Value) -> Result<(), Error> {
    let path = path.trim_start_matches('/');
    let (control, _name) = path.split_once('/').unwrap_or((path, ""));
    match control {
        "cancel" => read_cancel(body).map(drop),
        "pause" | "resume" => read_empty(body),
        "extend" => read_extension(body).map(drop),
        "retry" => read_retry(body).map(drop),
        "restart" => read_restart(body).map(drop),
        "gates" => read_decision(body).map(drop),
        "signals" => Ok(()),
        other => Err(Error::not_found(format!("\"{}\"", shorten(other)))),
    }
}

/// `{}`.
pub fn read_empty(body: &Value) -> Result<(), Error> {
    read(body, |_| Some(()))
}

/// `{reason?}`.
pub fn read_cancel(body: &Value) -> Result<Option<String>, Error> {
    read(body, |reader| {
        let reason = reader.string("reason");
        Some(reason.map(str::to_string))
    })
}

/// `{from_node_id?}`.
pub fn read_restart(body: &Value) -> Result<Option<String>, Error> {
    read(body, |reader| {
        Some(reader.string("from_node_id").map(str::to_string))
    })
}

/// `{by_ms}`, `{by}` or `{until}`.
pub fn read_extension(body: &Value) -> Result<Extension, Error> {
    read(body, |reader| {
        let by = reader.limit("by", "by_ms");
        let until = reader.value("until").map(parse_moment);
        if let Some(Err(message)) = &until {
            reader.report("until", "invalid_moment", message.as_str());
        }
        match (by, until) {
            (Limit::After(millis), None) => Some(Extension::By(millis)),
            (Limit::Unset, Some(until)) => until.ok().map(Extension::Until),
            (Limit::After(_) | Limit::Never, Some(_)) => {
                reader.report(
                    "until",
                    "both_forms",
                    "write either \"by_ms\" or \"until\", not both",
                );
                None
            }
            // `limit` has reported the invalid duration.
            (Limit::Unset | Limit::Never, _) if !body["by"].is_null() || !body["by_ms"].is_null() => None,
            (Limit::Unset | Limit::Never, _) => {
                let message = "say how much longer the run may take: {\"by_ms\": 60000}, {\"by\": \"1m\"} or {\"until\": ...}";
                reader.report("by_ms", "missing_field", message);
                None
            }
        }
    })
}

/// `{mode, token_id?}`.
pub fn read_retry(body: &Value) -> Result<(RetryMode, Option<TokenId>), Error> {
    read(body, |reader| {
        reader.required_string("mode");
        let mode = reader.choice("mode", RETRY_MODES);
        let token = reader.string("token_id").map(TokenId::parse);
        if token == Some(None) {
            reader.report("token_id", "invalid_id", "a token's id looks like \"t7\"");
        }
        Some((mode?, token.flatten()))
    })
}

/// `{choice, input?, comment?, by?}`.
pub fn read_decision(body: &Value) -> Result<GateDecision, Error> {
    read(body, |reader| {
        let choice = reader.required_string("choice");
        let input = reader.value("input").cloned();
        let comment = reader.string("comment");
        let by = reader.string("by");
        Some(GateDecision {
            choice: choice?.to_string(),
            input: input.unwrap_or(Value::Null),
            comment: comment.map(str::to_string),
            by: by.map(str::to_string),
            at: 0,
        })
    })
}

fn read<T>(body: &Value, read: impl FnOnce(&Reader) -> Option<T>) -> Result<T, Error> {
    read_with(Problems::default(), body, read)
}

/// Reads an object field by field and refuses fields that `read` does not ask for.
pub(super) fn read_with<T>(
    problems: Problems,
    body: &Value,
    read: impl FnOnce(&Reader) -> Option<T>,
) -> Result<T, Error> {
    let found = Reader::new(body, "", &problems).and_then(|reader| {
        let found = read(&reader);
        reader.finish();
        found
    });
    match found {
        Some(found) if !problems.has_errors() => Ok(found),
        Some(_) | None => Err(Error::invalid_body(problems)),
    }
}
