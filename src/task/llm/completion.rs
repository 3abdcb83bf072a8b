//! What has arrived of a model's response. Its size is limited to that of a result.

use serde_json::{Map, Value, json};

use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::task::llm::provider_error::too_large;

const TOOL_CALLS_MAX: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Completion {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub finish_reason: Option<String>,
    pub model: Option<String>,
    /// The provider has sent its last event.
    pub is_done: bool,
    /// The size of text and calls together.
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct ToolCall {
    /// The number by which later chunks refer to this call.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    /// The part of the JSON text that has arrived.
    pub arguments: String,
}

impl Completion {
    pub fn add_text(&mut self, text: &str) -> Result<(), Failure> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a call and returns its position.
    pub fn begin_call(&mut self, call: ToolCall) -> Result<usize, Failure> {
        if self.calls.len() == TOOL_CALLS_MAX {
            return Err(too_large(format!(
                "the answer has more than {TOOL_CALLS_MAX} tool calls"
            )));
        }
        self.grow(call.id.len() + call.name.len() + call.arguments.len())?;
        self.calls.push(call);
        Ok(self.calls.len() - 1)
    }

    pub fn add_arguments(&mut self, position: usize, part: &str) -> Result<(), Failure> {
        self.grow(part.len())?;
        self.calls[position].arguments.push_str(part);
        Ok(())
    }

    /// Sets a field if the value is a string.
    pub fn set_text(field: &mut Option<String>, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            *field = Some(text.to_string());
        }
    }

    pub fn set_count(field: &mut Option<u64>, value: Option<&Value>) {
        *field = value.and_then(Value::as_u64).or(*field);
    }

    pub fn into_fields(self, asked_model: &str) -> Map<String, Value> {
        let calls: Vec<Value> = self.calls.into_iter().map(ToolCall::into_value).collect();
        let mut fields = Map::new();
        fields.insert("text".into(), self.text.into());
        fields.insert("tool_calls".into(), calls.into());
        let usage = json!({"input_tokens": self.input_tokens, "output_tokens": self.output_tokens});
        fields.insert("usage".into(), usage);
        fields.insert("finish_reason".into(), self.finish_reason.into());
        let model = self.model.unwrap_or_else(|| asked_model.to_string());
        fields.insert("model".into(), model.into());
        fields
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes += bytes;
        match self.bytes > RESULT_BYTES {
            true => Err(too_large(format!(
                "the answer is larger than the limit of {RESULT_BYTES} bytes"
            ))),
            false => Ok(()),
        }
    }
}

impl ToolCall {
    fn into_value(self) -> Value {
        let arguments = match self.arguments.trim().is_empty() {
            // A tool without parameters may be called without arguments.
            true => json!({}),
            false => serde_json::from_str(&self.arguments).unwrap_or(Value::String(self.arguments)),
        };
        json!({"id": self.id, "name": self.name, "arguments": arguments})
    }
}

/// Calls `take` with the text of a string, or of each part of a list.
pub(super) fn each_text<'a>(
    content: &'a Value,
    mut take: impl FnMut(&'a str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match content {
        Value::String(text) => take(text),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .try_for_each(take),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Ok(()),
    }
}
