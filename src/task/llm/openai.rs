//! Chat completions of OpenAI and of compatible providers, and the older form of Workers AI (`{"response": "..."}`). A chunk holds
//! parts of a message under `delta`; a response that is not streamed holds the message itself.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::task::llm::completion::{Completion, ToolCall, each_text};

/// The data of the last event of a stream.
pub(super) const DONE: &str = "[DONE]";

pub(super) fn fold(completion: &mut Completion, chunk: &Value) -> Result<(), Failure> {
    Completion::set_text(&mut completion.model, chunk.get("model"));
    // It is null in every chunk but the last.
    if let Some(usage) = chunk.get("usage") {
        Completion::set_count(&mut completion.input_tokens, usage.get("prompt_tokens"));
        Completion::set_count(&mut completion.output_tokens, usage.get("completion_tokens"));
    }
    let choices = chunk.get("choices").and_then(Value::as_array);
    // Only one choice is requested. A provider that returns several numbers them.
    let first = choices
        .into_iter()
        .flatten()
        .find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or_default() == 0);
    if let Some(choice) = first {
        Completion::set_text(&mut completion.finish_reason, choice.get("finish_reason"));
        let message = choice.get("delta").or_else(|| choice.get("message"));
        if let Some(message) = message {
            add_message(completion, message)?;
        }
    } else {
        add_legacy(completion, chunk)?;
    }
    Ok(())
}

fn add_message(completion: &mut Completion, message: &Value) -> Result<(), Failure> {
    for field in ["content", "refusal"] {
        if let Some(content) = message.get(field) {
            each_text(content, |text| completion.add_text(text))?;
        }
    }
    add_calls(completion, message)
}

/// The older form of Workers AI: the text, or the JSON value if JSON was requested.
fn add_legacy(completion: &mut Completion, chunk: &Value) -> Result<(), Failure> {
    match chunk.get("response") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => completion.add_text(text)?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            completion.add_text(&chunk["response"].to_string())?;
        }
    }
    add_calls(completion, chunk)
}

fn add_calls(completion: &mut Completion, message: &Value) -> Result<(), Failure> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for part in calls.into_iter().flatten() {
        // The older form of Workers AI has no `function` object.
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
        let position = match position_of(completion, index, &id, &name) {
            Some(position) => position,
            None => completion.begin_call(ToolCall {
                index,
                id,
                name,
                arguments: String::new(),
            })?,
        };
        match function.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(part)) => completion.add_arguments(position, part)?,
            Some(whole) => completion.add_arguments(position, &whole.to_string())?,
        }
    }
    Ok(())
}

/// The call that a part belongs to; none if it starts a new one. Some providers do not number calls.
fn position_of(completion: &Completion, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
    if index.is_some() {
        return completion.calls.iter().position(|call| call.index == index);
    }
    let is_new = !id.is_empty() || !name.is_empty();
    let last = completion.calls.len().checked_sub(1)?;
    (!is_new || (!id.is_empty() && completion.calls[last].id == id)).then_some(last)
}
