//! The views of runs and gates in the index: those of the API, truncated so that they fit a queue message. The run's object
//! keeps the full values.

use serde_json::{Value, json};

use crate::api::views;
use crate::base::text;
use crate::base::truncate;
use crate::run::{GateState, Header};

/// A page of a thousand gates must fit into the memory of a Worker.
pub const GATE_BYTES: usize = 16 << 10;
const RUN_BYTES: usize = 8 << 10;
/// For ids, codes and other short texts.
const NAME_BYTES: usize = 512;

pub fn run(header: &Header) -> Value {
    let mut view = views::summary(header);
    if text::json_bytes(&view) <= RUN_BYTES {
        return view;
    }
    let mut was_truncated = false;
    if let Some(shorter) = view["tags"]
        .as_array()
        .and_then(|tags| truncate::list(tags, RUN_BYTES))
    {
        view["tags"] = json!(shorter);
        was_truncated = true;
    }
    if let Some(shorter) = view["error"]["message"]
        .as_str()
        .and_then(|message| truncate::text(message, RUN_BYTES / 2))
    {
        view["error"]["message"] = json!(shorter);
        was_truncated = true;
    }
    if let Some(fields) = view.as_object_mut() {
        for (name, field) in fields.iter_mut().filter(|(name, _)| *name != "tags") {
            was_truncated |= match (name.as_str(), field) {
                ("error", Value::Object(error)) => error
                    .iter_mut()
                    .filter(|(name, _)| *name != "message")
                    .fold(false, |was_truncated, (_, field)| {
                        truncate::every_text(field, NAME_BYTES) | was_truncated
                    }),
                (_, field) => truncate::every_text(field, NAME_BYTES),
            };
        }
    }
    mark_truncated(&mut view, was_truncated);
    view
}

/// About `bytes` long.
pub fn gate(run_id: &str, gate: &GateState, bytes: usize) -> Value {
    gate.view_within(run_id, bytes)
}

fn mark_truncated(view: &mut Value, was_truncated: bool) {
    if was_truncated {
        view["truncated"] = json!(true);
    }
}
