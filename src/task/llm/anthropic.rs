//! Anthropic's Messages API. In a stream a message starts, its blocks start, grow and stop, then the message stops.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::task::llm::completion::{Completion, ToolCall};

/// Applies one event of a stream. Unknown types are ignored: the API adds new ones.
pub(super) fn fold(completion: &mut Completion, event: &Value) -> Result<(), Failure> {
    let index = event.get("index").and_then(Value::as_u64);
    match text_field(event, "type") {
        "message_start" => {
            let message = &event["message"];
            Completion::set_text(&mut completion.model, message.get("model"));
            add_usage(completion, message);
        }
        "content_block_start" => add_block(completion, index, &event["content_block"])?,
        "content_block_delta" => {
            let delta = &event["delta"];
            match text_field(delta, "type") {
                "text_delta" => completion.add_text(text_field(delta, "text"))?,
                "input_json_delta" => {
                    if let Some(place) = completion.calls.iter().position(|call| call.index == index) {
                        completion.add_arguments(place, text_field(delta, "partial_json"))?;
                    }
                }
                _ => {}
            }
        }
        "message_delta" => {
            Completion::set_text(&mut completion.finish_reason, event["delta"].get("stop_reason"));
            add_usage(completion, event);
        }
        "message_stop" => completion.is_done = true,
        _ => {}
    }
    Ok(())
}

/// Applies a message that was not streamed.
pub(super) fn fold_message(completion: &mut Completion, message: &Value) -> Result<(), Failure> {
    Completion::set_text(&mut completion.model, message.get("model"));
    Completion::set_text(&mut completion.finish_reason, message.get("stop_reason"));
    add_usage(completion, message);
    let blocks = message.get("content").and_then(Value::as_array);
    for block in blocks.into_iter().flatten() {
        add_block(completion, None, block)?;
    }
    Ok(())
}

fn add_block(completion: &mut Completion, index: Option<u64>, block: &Value) -> Result<(), Failure> {
    match text_field(block, "type") {
        "text" => completion.add_text(text_field(block, "text")),
        "tool_use" => {
            // A streamed block starts with an empty object; its fields follow in deltas.
            let input = block.get("input").and_then(Value::as_object);
            let input = input.filter(|fields| !fields.is_empty());
            let call = ToolCall {
                index,
                id: text_field(block, "id").into(),
                name: text_field(block, "name").into(),
                arguments: input.map_or_else(String::new, |fields| {
                    serde_json::to_string(fields).expect("an object is JSON")
                }),
            };
            completion.begin_call(call).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn add_usage(completion: &mut Completion, container: &Value) {
    let usage = &container["usage"];
    Completion::set_count(&mut completion.input_tokens, usage.get("input_tokens"));
    Completion::set_count(&mut completion.output_tokens, usage.get("output_tokens"));
}

fn text_field<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
