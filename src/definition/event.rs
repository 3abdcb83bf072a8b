//! Events between workflows: actions of kind `emit_event`, and the `trigger` of a workflow that an event starts.

use serde_json::Value;

use crate::base::ids;
use crate::base::text::shorten;
use crate::cel::Template;
use crate::definition::action::CONDITION_NAMES;
use crate::definition::problem::UNKNOWN_FIELD;
use crate::definition::reader::Reader;

#[derive(Clone, Debug)]
pub struct EmitEvent {
    pub name: Template,
    /// Absent: null.
    pub payload: Option<Template>,
}

impl EmitEvent {
    /// Secrets are not in scope, because events are visible in the runs that they start.
    pub(super) fn read(reader: &Reader) -> Option<EmitEvent> {
        reader.require("name");
        let name = reader.string("name");
        let payload = reader.template("payload", CONDITION_NAMES);
        let text = name?;
        if !text.contains("${") && !ids::is_name(text) {
            report_name(reader, "name", text);
            return None;
        }
        reader.problems().report_dots(&reader.pointer_of("name"), text);
        Some(EmitEvent {
            name: reader.template("name", CONDITION_NAMES)?,
            payload,
        })
    }
}

/// What starts runs of a workflow in addition to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub event: String,
}

impl Trigger {
    pub(super) fn read(reader: Reader) -> Option<Trigger> {
        reader.unsupported(&["cron"]);
        reader.value("timezone");
        if !reader.has("cron") {
            reader.require("event");
            // Earlier builds ignored it.
            if reader.has("timezone") && !reader.problems().is_prechecked() {
                let message = "\"timezone\" means nothing here: it is reserved for schedules, which are not supported yet";
                reader.report("timezone", UNKNOWN_FIELD, message);
            }
        }
        let event = reader.string("event");
        if let Some(name) = event.filter(|name| !ids::is_name(name)) {
            report_name(&reader, "event", name);
        }
        reader
            .problems()
            .report_dots(&reader.pointer_of("event"), event.unwrap_or_default());
        reader.finish();
        Some(Trigger {
            event: event?.to_string(),
        })
    }
}

/// The event that triggers a workflow, from its document, which was checked when it was stored.
pub fn trigger_event(document: &Value) -> Option<&str> {
    document["trigger"]["event"].as_str()
}

fn report_name(reader: &Reader, field: &'static str, name: &str) {
    let message = format!("\"{}\" is no name: {}", shorten(name), ids::EVENT_NAME_RULE);
    reader.report(field, "invalid_id", message);
}
