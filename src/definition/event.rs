//! Events between workflows: what an action of kind `emit_event` says, and the `trigger` of a workflow that is started by one.

use serde_json::Value;

use crate::base::ids;
use crate::cel::Template;
use crate::definition::action::{CONDITION_NAMES, required};
use crate::definition::reader::{Reader, shorten};

#[derive(Clone, Debug)]
pub struct EmitEvent {
    pub name: Template,
    /// Absent: null.
    pub payload: Option<Template>,
}

impl EmitEvent {
    /// Never made of secrets: an event is shown to whoever may read the runs that it starts.
    pub(super) fn read(reader: &Reader) -> Option<EmitEvent> {
        required(reader, "name");
        let written = reader.string("name");
        let payload = reader.template("payload", CONDITION_NAMES);
        let text = written?;
        if !text.contains("${") && !ids::is_name(text) {
            report_name(reader, "name", text);
            return None;
        }
        Some(EmitEvent {
            name: reader.template("name", CONDITION_NAMES)?,
            payload,
        })
    }
}

/// What starts runs of a workflow by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub event: String,
}

impl Trigger {
    pub(super) fn read(reader: Reader) -> Option<Trigger> {
        reader.unsupported(&["cron"]);
        reader.any("timezone");
        if !reader.has("cron") {
            required(&reader, "event");
        }
        let event = reader.string("event");
        if let Some(name) = event.filter(|name| !ids::is_name(name)) {
            report_name(&reader, "event", name);
        }
        reader.finish();
        Some(Trigger {
            event: event?.to_string(),
        })
    }
}

/// The event that starts runs of a workflow, from its document; the document was checked when it was stored.
pub fn trigger_event(document: &Value) -> Option<&str> {
    document["trigger"]["event"].as_str()
}

fn report_name(reader: &Reader, field: &'static str, name: &str) {
    let message = format!("\"{}\" is no name: {}", shorten(name), ids::EVENT_NAME_RULE);
    reader.report(field, "invalid_id", message);
}
