//! Anthropic's messages: a message begins, its blocks begin, grow and end, then the message does.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::task::llm::reply::{Reply, ToolCall};

/// One event of a stream. Kinds that are not known are left out: more are promised for the future.
pub(super) fn fold(reply: &mut Reply, event: &Value) -> Result<(), Failure> {
    let index = event.get("index").and_then(Value::as_u64);
    match word(event, "type") {
        "message_start" => {
            let message = &event["message"];
            Reply::note(&mut reply.model, message.get("model"));
            take_usage(reply, message);
        }
        "content_block_start" => begin_block(reply, index, &event["content_block"])?,
        "content_block_delta" => {
            let delta = &event["delta"];
            match word(delta, "type") {
                "text_delta" => reply.add_text(word(delta, "text"))?,
                "input_json_delta" => {
                    if let Some(place) = reply.calls.iter().position(|call| call.index == index) {
                        reply.add_arguments(place, word(delta, "partial_json"))?;
                    }
                }
                _ => {}
            }
        }
        "message_delta" => {
            Reply::note(&mut reply.finish_reason, event["delta"].get("stop_reason"));
            take_usage(reply, event);
        }
        "message_stop" => reply.is_done = true,
        _ => {}
    }
    Ok(())
}

/// A whole message.
pub(super) fn fold_message(reply: &mut Reply, message: &Value) -> Result<(), Failure> {
    Reply::note(&mut reply.model, message.get("model"));
    Reply::note(&mut reply.finish_reason, message.get("stop_reason"));
    take_usage(reply, message);
    let blocks = message.get("content").and_then(Value::as_array);
    for block in blocks.into_iter().flatten() {
        begin_block(reply, None, block)?;
    }
    Ok(())
}

fn begin_block(reply: &mut Reply, index: Option<u64>, block: &Value) -> Result<(), Failure> {
    match word(block, "type") {
        "text" => reply.add_text(word(block, "text")),
        "tool_use" => {
            // In a stream it begins with an empty object, and what it holds comes in parts.
            let input = block.get("input").and_then(Value::as_object);
            let input = input.filter(|fields| !fields.is_empty());
            let call = ToolCall {
                index,
                id: word(block, "id").into(),
                name: word(block, "name").into(),
                arguments: input
                    .and_then(|fields| serde_json::to_string(fields).ok())
                    .unwrap_or_default(),
            };
            reply.begin_call(call).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn take_usage(reply: &mut Reply, holder: &Value) {
    let usage = &holder["usage"];
    Reply::note_count(&mut reply.input_tokens, usage.get("input_tokens"));
    Reply::note_count(&mut reply.output_tokens, usage.get("output_tokens"));
}

fn word<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
