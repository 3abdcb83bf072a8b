//! The export of a run: everything that its history has, in one JSON value. It is made from what the API shows, so a program
//! may also put one together; a replay reads it again.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::api::error::Error;
use crate::base::failure::{Failure, FailureClass};
use crate::base::text::{shorten_to, to_json};
use crate::base::time::{Millis, parse_moment};
use crate::definition::snapshot::StoredSnapshot;
use crate::protocol::run::{GateDecision, PageRequest, RunRequest};
use crate::protocol::start::{ParentLink, StartRequest, TriggeredBy};
use crate::protocol::task::StepReport;
use crate::replay::export_bounds;
use crate::run::{GateKind, Lane, RunStatus, Settings};

/// The value of `format`. Another shape gets another number.
pub const FORMAT: &str = "curfew-export/1";

/// What a replay reads of an export.
#[derive(Clone, Debug, Deserialize)]
pub struct Export {
    pub format: String,
    /// Values were left out.
    #[serde(default)]
    pub redacted: bool,
    pub run: RunView,
    pub start: Start,
    /// The workflow with its tasks, actions and called workflows, as the run has them.
    pub snapshot: StoredSnapshot,
    /// Other versions that the run went on from, by their numbers.
    #[serde(default)]
    pub versions: BTreeMap<u64, StoredSnapshot>,
    /// The document as it was stored.
    #[serde(default)]
    pub document: Value,
    pub settings: Settings,
    #[serde(default)]
    pub gates: Vec<GateView>,
    /// Signals that no node has waited for, by name.
    #[serde(default)]
    pub signals: BTreeMap<String, Vec<Value>>,
    pub tokens: Vec<TokenView>,
    pub events: Vec<EventView>,
    #[serde(default)]
    pub timeouts: Vec<TimeoutView>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RunView {
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub input: Value,
    #[serde(default)]
    pub output: Value,
    #[serde(default)]
    pub error: Option<Failure>,
    pub started_at: Millis,
    #[serde(default)]
    pub ended_at: Option<Millis>,
    pub duration_ms: u64,
    /// Its limit, as it was last.
    #[serde(default)]
    pub timeout_at: Option<Millis>,
    #[serde(default)]
    pub started_by: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Start {
    pub request: StartRequest,
    #[serde(default)]
    pub parent: Option<ParentLink>,
    #[serde(default)]
    pub triggered_by: Option<TriggeredBy>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct GateView {
    pub id: String,
    #[serde(default)]
    pub node_id: Option<String>,
    pub kind: GateKind,
    pub opened_at: Millis,
    #[serde(default)]
    pub decision: Option<GateDecision>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct TokenView {
    pub id: String,
    pub node_id: String,
    pub status: String,
    pub epoch: u64,
    #[serde(default)]
    pub retry_count: u32,
    #[serde(default)]
    pub lane: Option<Lane>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub timeout_at: Option<Millis>,
    pub created_at: Millis,
    #[serde(default)]
    pub branch: Option<BranchView>,
    #[serde(default)]
    pub dispatched_at: Option<Millis>,
    #[serde(default)]
    pub started_at: Option<Millis>,
    #[serde(default)]
    pub ended_at: Option<Millis>,
    /// Shared, because the recording may have many attempts of one token.
    #[serde(default)]
    pub output: Rc<Value>,
    #[serde(default)]
    pub error: Option<Failure>,
    #[serde(default)]
    pub steps: Rc<[StepReport]>,
    #[serde(default)]
    pub compensation: bool,
    #[serde(default)]
    pub on_end: bool,
}

/// The node of a token, apart from the work of an end that belongs to the same node.
pub fn node_key(node_id: &str, is_of_end: bool) -> String {
    match is_of_end {
        true => format!("{node_id}~"),
        false => node_id.to_string(),
    }
}

impl TokenView {
    pub fn node_key(&self) -> String {
        node_key(&self.node_id, self.compensation || self.on_end)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct BranchView {
    pub index: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub struct EventView {
    pub seq: u64,
    pub at: Millis,
    pub kind: String,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl EventView {
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    pub fn token(&self) -> Option<&str> {
        self.text("token_id")
    }

    /// The failure of a token that failed, as far as its event has it.
    pub fn failure(&self) -> Failure {
        let class = self.text("class").and_then(FailureClass::parse);
        let code = self.text("code").unwrap_or("task_failed");
        Failure::new(
            code,
            class.unwrap_or(FailureClass::Unknown),
            "recorded without its text",
        )
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct TimeoutView {
    pub timeout_event: RecordedTimeout,
    #[serde(default)]
    pub last_known_state: Place,
    pub final_action: String,
    #[serde(default)]
    pub error: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RecordedTimeout {
    #[serde(deserialize_with = "moment")]
    pub timestamp: Millis,
    pub scope: String,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    pub due_at: Millis,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Place {
    #[serde(default)]
    pub node_id: Option<String>,
    #[serde(default)]
    pub token_id: Option<String>,
    #[serde(default)]
    pub step_ref: Option<String>,
}

/// Unix milliseconds, or ISO 8601 as the API shows it.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
    let value = Value::deserialize(deserializer)?;
    parse_moment(&value).map_err(D::Error::custom)
}

impl Export {
    /// The version that the run began with.
    pub fn first_version(&self) -> u64 {
        let mut changes = self
            .events
            .iter()
            .filter_map(|event| event.number("from_version"));
        changes.next().unwrap_or(self.snapshot.version)
    }

    pub fn snapshot_of(&self, version: u64) -> Result<&StoredSnapshot, Error> {
        if version == self.snapshot.version {
            return Ok(&self.snapshot);
        }
        self.versions.get(&version).ok_or_else(|| {
            let message = format!(
                "the run had version {version}, which the export does not have; write a change or a version, and the whole run is played with that"
            );
            Error::new(422, "not_replayable", message)
        })
    }

    pub fn parse(text: &str) -> Result<Export, Error> {
        Export::read(serde_json::from_str(text).map_err(|_| Error::internal())?)
    }

    /// An export that a replay can use.
    pub fn read(value: Value) -> Result<Export, Error> {
        let format = value["format"].as_str().unwrap_or_default();
        if format != FORMAT {
            let message = format!("this is no export of a run: \"format\" is not \"{FORMAT}\"");
            return Err(Error::invalid_request("/format", message));
        }
        if value["redacted"] == Value::Bool(true) {
            let message =
                "the export has no values, so no route can be followed; export the run without `redact`";
            return Err(Error::invalid_request("/redacted", message));
        }
        let is_first = |event: &Value| event["kind"] == "run_started";
        if !value["events"]
            .as_array()
            .is_some_and(|events| events.iter().any(is_first))
        {
            let message = "the history of the run does not have its beginning: an earlier build of Curfew began it, or the export is not whole";
            return Err(Error::new(422, "not_replayable", message));
        }
        let mut export: Export = serde_json::from_value(value).map_err(|error| {
            let error = shorten_to(&error.to_string(), 200);
            Error::invalid_request(
                "",
                format!("the export cannot be read: {error}; export the run again"),
            )
        })?;
        export_bounds::check(&export)?;
        export.settings = export_bounds::settings(&export.settings);
        Ok(export)
    }
}

/// A page of a list, as an object answers it.
#[derive(Deserialize)]
pub struct Page<'a> {
    #[serde(borrow)]
    pub items: Vec<&'a RawValue>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A request for a page of a list.
pub type ListRequest = fn(PageRequest) -> RunRequest;

/// The lists of an export.
pub const LISTS: [(&str, ListRequest); 3] = [
    ("tokens", RunRequest::ListTokens),
    ("events", RunRequest::ListEvents),
    ("timeouts", RunRequest::ListTimeouts),
];

/// The version that an event says the run had before. Most events are not even parsed for it.
pub fn from_version(event: &str) -> Option<u64> {
    if !event.contains("\"from_version\"") {
        return None;
    }
    let event: Value = serde_json::from_str(event).ok()?;
    event["from_version"].as_u64()
}

/// An export has at most so many bytes.
pub const EXPORT_BYTES: usize = 16 << 20;

/// What an export is put together from, as texts.
#[derive(Default)]
pub struct Parts {
    /// The answer to `RunRequest::ReadRecording`.
    pub recording: String,
    /// The items of each list, with commas between them.
    lists: BTreeMap<&'static str, String>,
    pub document: Option<Box<RawValue>>,
    pub versions: BTreeMap<u64, Rc<RawValue>>,
    bytes: usize,
}

impl Parts {
    pub fn add_recording(&mut self, text: String) {
        self.bytes += text.len();
        self.recording = text;
    }

    pub fn add_page(&mut self, name: &'static str, page: &Page<'_>) -> Result<(), Error> {
        let list = self.lists.entry(name).or_default();
        for item in &page.items {
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(item.get());
            self.bytes += item.get().len() + 1;
        }
        match self.bytes > EXPORT_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

fn too_large() -> Error {
    let message = format!(
        "the run has more than {EXPORT_BYTES} bytes of history, the limit of an export; read its lists page by page"
    );
    Error::new(422, "limit_exceeded", message)
}

/// The text of an export.
pub fn export_text(parts: &Parts, is_redacted: bool) -> Result<String, Error> {
    let unreadable = |_| Error::internal();
    let fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(&parts.recording).map_err(unreadable)?;
    let mut text = format!("{{\"format\":\"{FORMAT}\",\"redacted\":{is_redacted}");
    let mut add = |name: &str, value: &str, may_redact: bool| {
        let redacted = match is_redacted && may_redact {
            true => Some(redacted(value).map_err(unreadable)?),
            false => None,
        };
        let value = redacted.as_ref().map_or(value, |redacted| redacted.get());
        text.push_str(&format!(",\"{name}\":{value}"));
        Ok::<(), Error>(())
    };
    if let Some(document) = &parts.document {
        add("document", document.get(), false)?;
    }
    if !parts.versions.is_empty() {
        add("versions", &to_json(&parts.versions).map_err(unreadable)?, false)?;
    }
    let is_shown = |name: &str| !(is_redacted && name == "signals");
    for (name, value) in fields.iter().filter(|(name, _)| is_shown(name)) {
        // Documents are no data of a run.
        add(name, value.get(), name != "snapshot")?;
    }
    for (name, items) in &parts.lists {
        add(name, &format!("[{items}]"), true)?;
    }
    text.push('}');
    match text.len() > EXPORT_BYTES {
        true => Err(too_large()),
        false => Ok(text),
    }
}

fn redacted(text: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut value: Value = serde_json::from_str(text)?;
    without_values(&mut value);
    serde_json::value::to_raw_value(&value)
}

/// Fields that hold data of a run. Texts of errors stay: they say what happened.
const VALUES: &[&str] = &[
    "input",
    "output",
    "state",
    "context",
    "payload",
    "partial_artifacts",
    "context_for_resume",
    "result",
    "partial",
    "comment",
    "reason",
    "item",
    "prompt",
];

/// Sets every value of a run to null.
fn without_values(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_values),
        Value::Object(fields) => {
            for (name, field) in fields {
                match VALUES.contains(&name.as_str()) {
                    true => *field = Value::Null,
                    false => without_values(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
