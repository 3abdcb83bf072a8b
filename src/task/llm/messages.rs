//! Converts messages, tools and tool calls from the form that documents use to that of each provider. What is in a provider's
//! own form already is sent unchanged.

use serde_json::{Map, Value, json};

use crate::base::failure::Failure;
use crate::base::text::shorten;

use crate::task::context::plain;

/// The messages, if the rendered value is a list of them.
pub(super) fn checked(messages: Value) -> Result<Vec<Map<String, Value>>, Failure> {
    let wrong = |why: String| {
        Failure::validation(
            "wrong_type",
            format!("messages must be a list of {{role, content}}: {why}"),
        )
    };
    let Value::Array(items) = messages else {
        return Err(wrong(format!("found {}", shorten(&messages.to_string()))));
    };
    if items.is_empty() {
        return Err(wrong("it is empty".into()));
    }
    let messages = items.into_iter().map(|item| match item {
        Value::Object(message) if message.get("role").is_some_and(Value::is_string) => Ok(message),
        other => Err(wrong(format!("found {}", shorten(&other.to_string())))),
    });
    messages.collect()
}

pub(super) fn message(role: &str, content: &str) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("role".into(), role.into());
    message.insert("content".into(), content.into());
    message
}

/// OpenAI's form: the arguments of tool calls are text.
pub(super) fn for_openai(mut message: Map<String, Value>) -> Value {
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls.iter_mut().filter(|call| call.get("function").is_none()) {
            let arguments = plain(call["arguments"].take());
            *call = json!({
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments},
            });
        }
    }
    if let Some(content) = message.get_mut("content") {
        *content = content_of(content.take());
    }
    Value::Object(message)
}

/// Anthropic's form: tool calls and their results are content blocks. None for a system message, whose text is added to
/// `system`.
pub(super) fn for_anthropic(mut message: Map<String, Value>, system: &mut Vec<String>) -> Option<Value> {
    let content = content_of(message.remove("content").unwrap_or_default());
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    match role {
        "system" | "developer" => {
            system.push(plain(content));
            None
        }
        "tool" => {
            let id = &message["tool_call_id"];
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            Some(json!({"role": "user", "content": [result]}))
        }
        _ => {
            let Some(Value::Array(calls)) = message.remove("tool_calls") else {
                message.insert("content".into(), content);
                return Some(Value::Object(message));
            };
            let mut blocks = match content {
                Value::Array(blocks) => blocks,
                Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
                _ => Vec::new(),
            };
            blocks.extend(calls.into_iter().map(use_of));
            message.insert("content".into(), blocks.into());
            Some(Value::Object(message))
        }
    }
}

fn use_of(call: Value) -> Value {
    let function = call.get("function").unwrap_or(&call);
    let input = match &function["arguments"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
        Value::Null => json!({}),
        other => other.clone(),
    };
    json!({"type": "tool_use", "id": call["id"], "name": function["name"], "input": input})
}

/// Text, or parts in the provider's own form. Any other value becomes JSON text.
fn content_of(content: Value) -> Value {
    match content {
        Value::String(_) | Value::Array(_) | Value::Null => content,
        other => plain(other).into(),
    }
}

/// Name, description and parameters of a tool in any form; none for a tool that is built into its provider.
fn neutral(tool: &Value) -> Option<(Value, Option<Value>, Value)> {
    let inside = match tool.get("type").and_then(Value::as_str) {
        None | Some("custom") => tool,
        Some("function") => tool.get("function").unwrap_or(tool),
        Some(_) => return None,
    };
    let parameters = inside.get("parameters").or_else(|| inside.get("input_schema"));
    let parameters = parameters.cloned();
    Some((
        inside.get("name")?.clone(),
        inside.get("description").cloned(),
        parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    ))
}

pub(super) fn tool_for_openai(tool: Value) -> Value {
    match neutral(&tool) {
        None => tool,
        Some((name, description, parameters)) => {
            let mut function = json!({"name": name, "parameters": parameters});
            if let Some(description) = description {
                function["description"] = description;
            }
            json!({"type": "function", "function": function})
        }
    }
}

pub(super) fn tool_for_anthropic(tool: Value) -> Value {
    match neutral(&tool) {
        None => tool,
        Some((name, description, parameters)) => {
            let mut tool = json!({"name": name, "input_schema": parameters});
            if let Some(description) = description {
                tool["description"] = description;
            }
            tool
        }
    }
}

/// `choice` is a string, `{name}`, or in the provider's own form.
pub(super) fn choice_for_openai(choice: Value) -> Value {
    match named(&choice) {
        Some(name) => json!({"type": "function", "function": {"name": name}}),
        None => choice,
    }
}

pub(super) fn choice_for_anthropic(choice: Value) -> Value {
    match (choice.as_str(), named(&choice)) {
        (Some("required"), _) => json!({"type": "any"}),
        (Some(kind), _) => json!({"type": kind}),
        (None, Some(name)) => json!({"type": "tool", "name": name}),
        (None, None) => choice,
    }
}

fn named(choice: &Value) -> Option<&Value> {
    choice.get("name").filter(|_| choice.get("type").is_none())
}
