//! What the index shows of a run and of a gate: their views, cut to what a message of the queue has room for. The whole of it
//! stays in the run's object.

use serde_json::{Value, json};

use crate::api::views;
use crate::base::text;
use crate::index::truncate;
use crate::run::{GateState, Header};

/// A gate, prompt and all. A page of a thousand must still fit into the memory of a Worker.
pub const GATE_BYTES: usize = 16 << 10;
/// A run: its texts are a sentence or two, unless a caller is hostile.
const RUN_BYTES: usize = 8 << 10;
/// The least that a person is shown of a prompt.
const PROMPT_BYTES_MIN: usize = 200;
/// A name, or any text in the place of one.
const NAME_BYTES: usize = 512;

pub fn run(header: &Header) -> Value {
    let mut view = views::summary(header);
    if text::json_bytes(&view) <= RUN_BYTES {
        return view;
    }
    let mut was_cut = false;
    if let Some(kept) = view["tags"]
        .as_array()
        .and_then(|tags| truncate::list(tags, RUN_BYTES))
    {
        view["tags"] = json!(kept);
        was_cut = true;
    }
    if let Some(kept) = view["error"]["message"]
        .as_str()
        .and_then(|message| truncate::text(message, RUN_BYTES / 2))
    {
        view["error"]["message"] = json!(kept);
        was_cut = true;
    }
    // Tags are names already. What else there is comes from many places.
    if let Some(fields) = view.as_object_mut() {
        for (name, field) in fields.iter_mut().filter(|(name, _)| *name != "tags") {
            was_cut |= match (name.as_str(), field) {
                ("error", Value::Object(error)) => error
                    .iter_mut()
                    .filter(|(name, _)| *name != "message")
                    .fold(false, |was_cut, (_, field)| {
                        truncate::every_text(field, NAME_BYTES) | was_cut
                    }),
                (_, field) => truncate::every_text(field, NAME_BYTES),
            };
        }
    }
    mark(&mut view, was_cut);
    view
}

/// In about `bytes`: what little there is beside the texts comes on top of a small number.
pub fn gate(run_id: &str, gate: &GateState, bytes: usize) -> Value {
    let mut view = views::gate(run_id, gate);
    if text::json_bytes(&view) <= bytes {
        return view;
    }
    let quarter = bytes / 4;
    let mut was_cut = false;
    let mut put = |place: &mut Value, kept: Option<Value>| {
        if let Some(kept) = kept {
            *place = kept;
            was_cut = true;
        }
    };
    let choices = view["choices"]
        .as_array()
        .and_then(|choices| truncate::list(choices, quarter));
    put(&mut view["choices"], choices.map(Value::Array));
    let schema = truncate::schema(&view["input_schema"], quarter);
    put(&mut view["input_schema"], schema);
    for (_, field) in view["decision"].as_object_mut().into_iter().flatten() {
        let kept = truncate::value(field, quarter / 4);
        put(field, kept);
    }
    let whole = text::json_bytes(&view);
    let of_prompt = text::json_bytes(&view["prompt"]);
    let left = bytes.saturating_sub(whole - of_prompt).max(PROMPT_BYTES_MIN);
    let prompt = truncate::value(&view["prompt"], left);
    put(&mut view["prompt"], prompt);
    mark(&mut view, was_cut);
    view
}

fn mark(view: &mut Value, was_cut: bool) {
    if was_cut {
        view["truncated"] = json!(true);
    }
}
