//! The views of runs and gates in the index: those of the API, truncated so that they fit a queue message. The run's object
//! keeps the full values.

use serde_json::{Value, json};

use crate::api::views;
use crate::base::text;
use crate::index::truncate;
use crate::run::{GateState, Header};

/// A page of a thousand gates must fit into the memory of a Worker.
pub const GATE_BYTES: usize = 16 << 10;
const RUN_BYTES: usize = 8 << 10;
const PROMPT_BYTES_MIN: usize = 200;
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

/// About `bytes` long: the fields that are not texts are never truncated.
pub fn gate(run_id: &str, gate: &GateState, bytes: usize) -> Value {
    let mut view = views::gate(run_id, gate);
    if text::json_bytes(&view) <= bytes {
        return view;
    }
    let quarter = bytes / 4;
    let mut was_truncated = false;
    let mut shorten = |field: &mut Value, shorter: Option<Value>| {
        if let Some(shorter) = shorter {
            *field = shorter;
            was_truncated = true;
        }
    };
    let choices = view["choices"]
        .as_array()
        .and_then(|choices| truncate::list(choices, quarter));
    shorten(&mut view["choices"], choices.map(Value::Array));
    let schema = truncate::schema(&view["input_schema"], quarter);
    shorten(&mut view["input_schema"], schema);
    for (_, field) in view["decision"].as_object_mut().into_iter().flatten() {
        let shorter = truncate::value(field, quarter / 4);
        shorten(field, shorter);
    }
    let without_prompt = text::json_bytes(&view) - text::json_bytes(&view["prompt"]);
    let left = bytes.saturating_sub(without_prompt).max(PROMPT_BYTES_MIN);
    let prompt = truncate::value(&view["prompt"], left);
    shorten(&mut view["prompt"], prompt);
    mark_truncated(&mut view, was_truncated);
    view
}

fn mark_truncated(view: &mut Value, was_truncated: bool) {
    if was_truncated {
        view["truncated"] = json!(true);
    }
}
