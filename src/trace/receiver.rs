//! The receiver of traces: its address and headers, and what its responses mean.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;
use url::Url;

use crate::base::time::{MINUTE, SECOND};

/// The path of the OTLP/HTTP standard.
const TRACES_PATH: &str = "/v1/traces";

/// Headers of a request at most, and the size of each value.
const HEADERS_MAX: usize = 32;
const HEADER_BYTES: usize = 8 << 10;

/// How old the message of an end may become before its trace is dropped.
pub const GIVE_UP_MS: u64 = 40 * MINUTE;
/// The first delay before a trace is sent again.
pub const REPEAT_MS: u64 = 10 * SECOND;
const REPEAT_MAX_MS: u64 = 10 * MINUTE;
/// How long nothing is sent at most after a receiver did not answer.
pub const PAUSE_MAX_MS: u64 = MINUTE;
/// Ends that `RecentExports` remembers.
const RECENT_MAX: usize = 1_000;

/// The address that traces are posted to: the URL itself if it names the path, else the path below it.
pub fn traces_url(setting: &str) -> Result<String, String> {
    let mut url = Url::parse(setting.trim()).map_err(|error| format!("it is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{} is neither http nor https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user or a password; write a header \"authorization\" instead".into());
    }
    let path = url.path().trim_end_matches('/').to_string();
    if !path.ends_with(TRACES_PATH) {
        url.set_path(&format!("{path}{TRACES_PATH}"));
    }
    Ok(url.into())
}

/// Headers of every request, from a JSON object of strings. The message of an error quotes no value.
pub fn headers(setting: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let mut headers = vec![("content-type".to_string(), "application/json".to_string())];
    let Some(setting) = setting.filter(|text| !text.trim().is_empty()) else {
        return Ok(headers);
    };
    let Ok(Value::Object(fields)) = serde_json::from_str(setting) else {
        return Err("it is no JSON object".into());
    };
    if fields.len() > HEADERS_MAX {
        return Err(format!("it has more than {HEADERS_MAX} headers"));
    }
    for (name, value) in fields {
        let name = name.to_ascii_lowercase();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("the name of a header is invalid".into());
        }
        let value = value.as_str().filter(|value| {
            value.len() <= HEADER_BYTES && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        });
        let Some(value) = value else {
            return Err(format!("the value of header \"{name}\" is no text of one line"));
        };
        headers.retain(|(other, _)| *other != name);
        headers.push((name, value.to_string()));
    }
    Ok(headers)
}

/// What a response means for the spans of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportOutcome {
    Accepted,
    /// The receiver took some of them and says that the rest would be refused again.
    AcceptedInPart {
        rejected: u64,
    },
    /// To be sent again; the receiver may say when.
    Retry {
        after_ms: Option<u64>,
    },
    /// Sending them again would not help.
    Refused,
}

/// By the rules of OTLP/HTTP: of all failures only 429, 502, 503 and 504 are retried.
pub fn outcome(status: u16, body: &[u8], retry_after_ms: Option<u64>) -> ExportOutcome {
    match status {
        200..=299 => match rejected_spans(body) {
            0 => ExportOutcome::Accepted,
            rejected => ExportOutcome::AcceptedInPart { rejected },
        },
        429 | 502 | 503 | 504 => ExportOutcome::Retry {
            after_ms: retry_after_ms,
        },
        _failed => ExportOutcome::Refused,
    }
}

/// A response without a body, or with one that is not JSON, rejects nothing.
fn rejected_spans(body: &[u8]) -> u64 {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let rejected = &body["partialSuccess"]["rejectedSpans"];
    let text = rejected.as_str().and_then(|text| text.parse().ok());
    rejected.as_u64().or(text).unwrap_or(0)
}

/// The delay before a message whose traces could not be sent is delivered again: as long as it has been on its way, so that
/// delays double, or as long as the receiver asks for. `None`: it is too old, and the traces are dropped.
pub fn retry_delay_seconds(age_ms: u64, asked_ms: Option<u64>, first_ms: u64) -> Option<u32> {
    let delay_ms = age_ms.max(asked_ms.unwrap_or(0)).max(first_ms).min(REPEAT_MAX_MS);
    let seconds = delay_ms.div_ceil(SECOND) as u32;
    (age_ms < GIVE_UP_MS).then_some(seconds)
}

/// The ends that were exported last. A message may come twice, and one that is retried tells of other runs, too.
#[derive(Debug, Default)]
pub struct RecentExports {
    keys: BTreeSet<String>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl RecentExports {
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    pub fn add(&mut self, key: String) {
        if !self.keys.insert(key.clone()) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}
