//! Bodies of control requests: cancel, pause, resume, extend, retry, restart and gate decisions. Pure: the API checks a body
//! before it wakes the run's object.

use serde_json::Value;

use crate::api::auth::Role;
use crate::api::auth::is_caller_name;
use crate::api::error::Error;
use crate::base::time::{Limit, parse_moment};
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::protocol::run::RunRequest;
use crate::run::{Extension, GateDecision, RetryMode, TokenId};

const RETRY_MODES: &[(&str, RetryMode)] = &[
    ("retry_step", RetryMode::RetryStep),
    ("discard_and_retry", RetryMode::DiscardAndRetry),
    ("escalate", RetryMode::Escalate),
];

/// What a caller may ask of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    Cancel,
    Pause,
    Resume,
    Extend,
    Retry,
    Restart,
    Signal { name: String },
    Gate { id: String },
}

impl Control {
    /// The last segment of the path, for those that have no name of their own.
    pub fn named(name: &str) -> Option<Control> {
        Some(match name {
            "cancel" => Control::Cancel,
            "pause" => Control::Pause,
            "resume" => Control::Resume,
            "extend" => Control::Extend,
            "retry" => Control::Retry,
            "restart" => Control::Restart,
            _ => return None,
        })
    }

    /// Those of `POST /v1/runs:{name}`, for many runs.
    pub fn named_for_many(name: &str) -> Option<Control> {
        Control::named(name).filter(|control| *control != Control::Restart)
    }

    /// The role that it needs.
    pub fn role(&self) -> Role {
        match self {
            Control::Signal { .. } => Role::Start,
            Control::Gate { .. } => Role::Decide,
            Control::Cancel
            | Control::Pause
            | Control::Resume
            | Control::Extend
            | Control::Retry
            | Control::Restart => Role::Operate,
        }
    }

    /// Checks the body. The payload of a signal may be any JSON.
    pub fn check(&self, body: &Value) -> Result<(), Error> {
        match self {
            Control::Cancel => read_cancel(body).map(drop),
            Control::Pause | Control::Resume => read_empty(body),
            Control::Extend => read_extension(body).map(drop),
            Control::Retry => read_retry(body).map(drop),
            Control::Restart => read_restart(body).map(drop),
            Control::Gate { .. } => read_decision(body).map(drop),
            Control::Signal { .. } => Ok(()),
        }
    }

    /// The name that the body gives to its sender.
    pub fn name_in(&self, body: &Value) -> Option<String> {
        match self {
            Control::Cancel
            | Control::Pause
            | Control::Resume
            | Control::Retry
            | Control::Restart
            | Control::Gate { .. } => name_in(body),
            // There `by` is the length of the extension, or whatever the sender of a signal wants.
            Control::Extend | Control::Signal { .. } => None,
        }
    }

    /// The number of the version that the run is to go on with. Its snapshot is added to the request (`RunRequest::on_version`).
    pub fn version(&self, body: &Value) -> Result<Option<u64>, Error> {
        match self {
            Control::Retry => Ok(read_retry(body)?.version),
            Control::Restart => Ok(read_restart(body)?.version),
            Control::Cancel
            | Control::Pause
            | Control::Resume
            | Control::Extend
            | Control::Signal { .. }
            | Control::Gate { .. } => Ok(None),
        }
    }

    /// The request to the run's object.
    pub fn request(self, body: Value) -> Result<RunRequest, Error> {
        Ok(match self {
            Control::Cancel => RunRequest::Cancel {
                reason: read_cancel(&body)?,
            },
            Control::Pause => RunRequest::Pause,
            Control::Resume => RunRequest::Resume,
            Control::Extend => RunRequest::Extend(read_extension(&body)?),
            Control::Retry => {
                let retry = read_retry(&body)?;
                RunRequest::Retry {
                    mode: retry.mode,
                    token_id: retry.token.map(|token| token.to_string()),
                    version: None,
                }
            }
            Control::Restart => RunRequest::Restart {
                from_node_id: read_restart(&body)?.from_node_id,
                version: None,
            },
            Control::Gate { id } => RunRequest::DecideGate {
                gate_id: id,
                decision: read_decision(&body)?,
            },
            Control::Signal { name } => RunRequest::Signal { name, payload: body },
        })
    }
}

/// `{by?}`.
pub fn read_empty(body: &Value) -> Result<(), Error> {
    read(body, |reader| {
        read_by(reader);
        Some(())
    })
}

/// `{reason?, by?}`.
pub fn read_cancel(body: &Value) -> Result<Option<String>, Error> {
    read(body, |reader| {
        read_by(reader);
        let reason = reader.string("reason");
        Some(reason.map(str::to_string))
    })
}

/// The body of a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartBody {
    pub from_node_id: Option<String>,
    pub version: Option<u64>,
}

/// `{from_node_id?, version?, by?}`.
pub fn read_restart(body: &Value) -> Result<RestartBody, Error> {
    read(body, |reader| {
        read_by(reader);
        Some(RestartBody {
            from_node_id: reader.string("from_node_id").map(str::to_string),
            version: read_version(reader),
        })
    })
}

/// The number of a version, as in the body of a start.
pub fn read_version(reader: &Reader) -> Option<u64> {
    let version = reader.integer("version", 1, i64::MAX);
    version.map(|number| number as u64)
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

/// The body of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBody {
    pub mode: RetryMode,
    pub token: Option<TokenId>,
    pub version: Option<u64>,
}

/// `{mode, token_id?, version?, by?}`.
pub fn read_retry(body: &Value) -> Result<RetryBody, Error> {
    read(body, |reader| {
        read_by(reader);
        reader.required_string("mode");
        let mode = reader.choice("mode", RETRY_MODES);
        let token = reader.string("token_id").map(TokenId::parse);
        if token == Some(None) {
            reader.report("token_id", "invalid_id", "a token's id looks like \"t7\"");
        }
        let version = read_version(reader);
        Some(RetryBody {
            mode: mode?,
            token: token.flatten(),
            version,
        })
    })
}

/// `{choice, input?, comment?, by?}`.
pub fn read_decision(body: &Value) -> Result<GateDecision, Error> {
    read(body, |reader| {
        let choice = reader.required_string("choice");
        let input = reader.value("input").cloned();
        let comment = reader.string("comment");
        read_by(reader);
        Some(GateDecision {
            choice: choice?.to_string(),
            input: input.unwrap_or(Value::Null),
            comment: comment.map(str::to_string),
            // The run's object writes the name of the caller.
            by: None,
            at: 0,
        })
    })
}

/// Checks the name that a body gives to its sender. `name_in` reads it.
pub fn read_by(reader: &Reader) {
    if reader.string("by").is_some_and(|name| !is_caller_name(name)) {
        reader.report(
            "by",
            "out_of_range",
            "a name is 1-256 characters without control characters",
        );
    }
}

/// The name that a body gives to its sender, for a sender without a name of its own.
pub fn name_in(body: &Value) -> Option<String> {
    body["by"].as_str().map(str::to_string)
}

pub fn read<T>(body: &Value, read: impl FnOnce(&Reader) -> Option<T>) -> Result<T, Error> {
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
