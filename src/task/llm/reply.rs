//! What a model has said so far. Bounded: a reply that would not fit into a result is not collected.

use serde_json::{Map, Value, json};

use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::task::llm::provider_error::too_large;

/// More calls than this are no question to anybody.
const TOOL_CALLS: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Reply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub finish_reason: Option<String>,
    pub model: Option<String>,
    /// The provider has said that nothing follows.
    pub is_done: bool,
    /// Of text and calls together.
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct ToolCall {
    /// Which of the calls the provider means by that number.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    /// JSON, as far as it has arrived.
    pub arguments: String,
}

impl Reply {
    pub fn add_text(&mut self, text: &str) -> Result<(), Failure> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Begins another call and gives its place.
    pub fn begin_call(&mut self, call: ToolCall) -> Result<usize, Failure> {
        if self.calls.len() == TOOL_CALLS {
            return Err(too_large(format!(
                "the answer has more than {TOOL_CALLS} tool calls"
            )));
        }
        self.grow(call.id.len() + call.name.len() + call.arguments.len())?;
        self.calls.push(call);
        Ok(self.calls.len() - 1)
    }

    pub fn add_arguments(&mut self, place: usize, part: &str) -> Result<(), Failure> {
        self.grow(part.len())?;
        if let Some(call) = self.calls.get_mut(place) {
            call.arguments.push_str(part);
        }
        Ok(())
    }

    /// A text that is said once; what came before stays where this is none.
    pub fn note(field: &mut Option<String>, said: Option<&Value>) {
        if let Some(text) = said.and_then(Value::as_str) {
            *field = Some(text.to_string());
        }
    }

    pub fn note_count(field: &mut Option<u64>, said: Option<&Value>) {
        *field = said.and_then(Value::as_u64).or(*field);
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
            // A tool without parameters is called with none.
            true => json!({}),
            false => serde_json::from_str(&self.arguments).unwrap_or(Value::String(self.arguments)),
        };
        json!({"id": self.id, "name": self.name, "arguments": arguments})
    }
}

/// Text that may be a string or a list of parts with text in them.
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
