//! Chat completions as OpenAI streams them, and whoever speaks like it; Workers AI with its older form
//! (`{"response": "..."}`) too. A chunk holds parts of a message under `delta`, a whole answer the message itself.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::task::llm::reply::{Reply, ToolCall, each_text};

/// The data of the event behind the last chunk.
pub(super) const DONE: &str = "[DONE]";

pub(super) fn fold(reply: &mut Reply, chunk: &Value) -> Result<(), Failure> {
    Reply::note(&mut reply.model, chunk.get("model"));
    // `null` in every chunk but the last.
    if let Some(usage) = chunk.get("usage") {
        Reply::note_count(&mut reply.input_tokens, usage.get("prompt_tokens"));
        Reply::note_count(&mut reply.output_tokens, usage.get("completion_tokens"));
    }
    let choices = chunk.get("choices").and_then(Value::as_array);
    // One answer is asked for; who gives more gives them numbers.
    let first = choices
        .into_iter()
        .flatten()
        .find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or_default() == 0);
    if let Some(choice) = first {
        Reply::note(&mut reply.finish_reason, choice.get("finish_reason"));
        let message = choice.get("delta").or_else(|| choice.get("message"));
        if let Some(message) = message {
            take_message(reply, message)?;
        }
    } else {
        take_plain(reply, chunk)?;
    }
    Ok(())
}

fn take_message(reply: &mut Reply, message: &Value) -> Result<(), Failure> {
    for field in ["content", "refusal"] {
        if let Some(content) = message.get(field) {
            each_text(content, |text| reply.add_text(text))?;
        }
    }
    take_calls(reply, message)
}

/// The older form of Workers AI: the text itself, or, where JSON was asked for, the value itself.
fn take_plain(reply: &mut Reply, chunk: &Value) -> Result<(), Failure> {
    match chunk.get("response") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => reply.add_text(text)?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            reply.add_text(&chunk["response"].to_string())?;
        }
    }
    take_calls(reply, chunk)
}

fn take_calls(reply: &mut Reply, message: &Value) -> Result<(), Failure> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for part in calls.into_iter().flatten() {
        // The older form of Workers AI has no `function` around it.
        let function = part.get("function").unwrap_or(part);
        let text = |value: &Value, field: &str| {
            value
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string()
        };
        let (index, id, name) = (
            part.get("index").and_then(Value::as_u64),
            text(part, "id"),
            text(function, "name"),
        );
        let place = match place_of(reply, index, &id, &name) {
            Some(place) => place,
            None => reply.begin_call(ToolCall {
                index,
                id,
                name,
                arguments: String::new(),
            })?,
        };
        match function.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(part)) => reply.add_arguments(place, part)?,
            Some(whole) => reply.add_arguments(place, &whole.to_string())?,
        }
    }
    Ok(())
}

/// The call that a part belongs to; none if it begins one. Not everybody numbers them.
fn place_of(reply: &Reply, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
    if index.is_some() {
        return reply.calls.iter().position(|call| call.index == index);
    }
    let is_new = !id.is_empty() || !name.is_empty();
    let last = reply.calls.len().checked_sub(1)?;
    (!is_new || (!id.is_empty() && reply.calls[last].id == id)).then_some(last)
}
