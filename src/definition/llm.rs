//! Actions of kind `llm_call`: one request to a language model. The document is the same for every provider; the executor
//! translates it.

use serde_json::Value;

use crate::base::text::shorten;
use crate::cel::Template;
use crate::definition::problem::pointer_to;
use crate::definition::reader::{Element, Reader};
use crate::definition::typed::{Mismatch, TypedFields, expected, is_constant};
use crate::json_schema::Schema;

#[derive(Clone, Debug)]
pub struct LlmCall {
    pub provider: Provider,
    /// Absent: the provider's default.
    pub base_url: Option<Template>,
    pub api_key: Option<Template>,
    pub headers: Option<Template>,
    pub model: Template,
    pub system: Option<Template>,
    pub prompt: Prompt,
    pub response_format: ResponseFormat,
    pub max_tokens: Option<Template>,
    pub temperature: Option<Template>,
    pub top_p: Option<Template>,
    pub stop: Option<Template>,
    pub tools: Option<Template>,
    pub tool_choice: Option<Template>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The chat completions API of OpenAI or of a compatible provider.
    OpenAi,
    Anthropic,
    /// The executor's `AI` binding.
    WorkersAi,
}

const PROVIDERS: &[(&str, Provider)] = &[
    ("openai", Provider::OpenAi),
    ("anthropic", Provider::Anthropic),
    ("workers_ai", Provider::WorkersAi),
];

#[derive(Clone, Debug)]
pub enum Prompt {
    Text(Template),
    Messages(Template),
}

/// The required form of the response.
#[derive(Clone, Debug)]
pub enum ResponseFormat {
    Text,
    Json,
    /// JSON that matches a schema: `document` is sent to the provider, `schema` validates the response.
    JsonSchema {
        document: Value,
        schema: Schema,
    },
}

#[derive(Clone, Copy)]
enum FormatName {
    Text,
    JsonObject,
    JsonSchema,
}

const FORMATS: &[(&str, FormatName)] = &[
    ("text", FormatName::Text),
    ("json_object", FormatName::JsonObject),
    ("json_schema", FormatName::JsonSchema),
];

pub const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];

pub const TOOL_CHOICES: &[&str] = &["auto", "none", "required"];

/// `names` are the ones that its templates may use.
pub(super) fn read(reader: &Reader, names: &[&str]) -> Option<LlmCall> {
    reader.required_string("provider");
    let provider = reader.choice("provider", PROVIDERS);
    reader.require("model");
    let fields = TypedFields { reader, names };
    let model = fields.text("model");
    let base_url = fields.url("base_url");
    let prompt = read_prompt(&fields);
    let api_key = match provider {
        Some(Provider::WorkersAi) => None,
        Some(Provider::OpenAi | Provider::Anthropic) | None => read_api_key(&fields),
    };
    let headers = fields.headers("headers");
    if provider == Some(Provider::WorkersAi) {
        report_unsupported_fields(reader);
    }
    let response_format = reader.object("response_format").map(read_format);
    let system = fields.text("system");
    let max_tokens = fields.checked("max_tokens", |value| match value.as_i64() {
        Some(number) if number >= 1 => Ok(()),
        Some(number) => Err(out_of_range(format!("{number} is less than 1"))),
        None => Err(expected("a whole number", value)),
    });
    let temperature = fields.checked("temperature", |value| within(value, 2.0));
    let top_p = fields.checked("top_p", |value| within(value, 1.0));
    let stop = fields.checked("stop", |value| match value {
        Value::String(_) => Ok(()),
        Value::Array(items) if items.iter().all(Value::is_string) => Ok(()),
        other => Err(expected("a string or a list of strings", other)),
    });
    let tools = read_tools(&fields);
    let tool_choice = read_tool_choice(&fields);
    Some(LlmCall {
        provider: provider?,
        base_url,
        api_key,
        headers,
        model: model?,
        system,
        prompt: prompt?,
        response_format: response_format.unwrap_or(Some(ResponseFormat::Text))?,
        max_tokens,
        temperature,
        top_p,
        stop,
        tools,
        tool_choice,
    })
}

/// Everyone who may read the document would see a key that stands in it.
fn read_api_key(fields: &TypedFields) -> Option<Template> {
    fields.checked("api_key", |value| match value {
        // Not quoted: it may be the key itself.
        Value::String(_) => Err((
            "invalid_secret",
            "write \"${secret.NAME}\", and store the key as a secret of the executor; a secret never stands in a document".into(),
        )),
        other => Err(expected("a string", other)),
    })
}

fn read_prompt(fields: &TypedFields) -> Option<Prompt> {
    let reader = fields.reader;
    match (reader.has("prompt"), reader.has("messages")) {
        (true, true) => {
            let message = "write either \"prompt\" or \"messages\", not both";
            reader.report("prompt", "both_forms", message);
            None
        }
        (false, false) => {
            let message = "\"prompt\" (a text) or \"messages\" (a list of {role, content}) is required";
            reader.report("prompt", "missing_field", message);
            None
        }
        (true, false) => fields.text("prompt").map(Prompt::Text),
        (false, true) => {
            let messages = fields.checked("messages", |value| match value {
                Value::Array(items) if items.is_empty() => {
                    Err(out_of_range("there is no message in it".into()))
                }
                Value::Array(_) => Ok(()),
                other => Err(expected("a list of {role, content}", other)),
            });
            if reader.value("messages").is_some_and(Value::is_array) {
                for element in reader.array("messages") {
                    read_message(reader, &element);
                }
            }
            messages.map(Prompt::Messages)
        }
    }
}

/// Only the role is checked. The content may have any form that the provider accepts.
fn read_message(reader: &Reader, element: &Element) {
    let report = |pointer: &str, code, message: String| reader.problems().report(pointer, code, message);
    let message = match element.value {
        Value::Object(message) => message,
        text if contains_expression(text) => return,
        other => {
            let (code, message) = expected("an object {role, content}", other);
            return report(&element.pointer, code, message);
        }
    };
    let pointer = pointer_to(&element.pointer, "role");
    match message.get("role") {
        None | Some(Value::Null) => report(&pointer, "missing_field", "\"role\" is required".into()),
        Some(role) if contains_expression(role) => {}
        Some(Value::String(role)) if ROLES.contains(&role.as_str()) => {}
        Some(Value::String(role)) => {
            let message = format!("\"{}\" is none of {}", shorten(role), ROLES.join(", "));
            report(&pointer, "invalid_choice", message);
        }
        Some(other) => {
            let (code, message) = expected("a string", other);
            report(&pointer, code, message);
        }
    }
    if !message.contains_key("content") && !message.contains_key("tool_calls") {
        let pointer = pointer_to(&element.pointer, "content");
        report(&pointer, "missing_field", "\"content\" is required".into());
    }
}

fn read_format(reader: Reader) -> Option<ResponseFormat> {
    reader.required_string("type");
    let name = reader.choice("type", FORMATS);
    let document = reader.value("schema");
    let schema = reader.schema("schema");
    let format = match name {
        None => None,
        Some(FormatName::JsonSchema) => {
            if document.is_none() {
                reader.report("schema", "missing_field", "\"schema\" is required");
            }
            schema
                .zip(document.cloned())
                .map(|(schema, document)| ResponseFormat::JsonSchema { document, schema })
        }
        Some(FormatName::Text | FormatName::JsonObject) if document.is_some() => {
            reader.report(
                "schema",
                "unsupported",
                "a schema goes with \"type\": \"json_schema\"",
            );
            None
        }
        Some(FormatName::Text) => Some(ResponseFormat::Text),
        Some(FormatName::JsonObject) => Some(ResponseFormat::Json),
    };
    reader.finish();
    format
}

fn read_tools(fields: &TypedFields) -> Option<Template> {
    let reader = fields.reader;
    let tools = fields.checked("tools", |value| match value {
        Value::Array(_) => Ok(()),
        other => Err(expected("a list of {name, description, parameters}", other)),
    });
    if reader.value("tools").is_some_and(Value::is_array) {
        for element in reader.array("tools") {
            if !element.value.is_object() && !contains_expression(element.value) {
                let (code, message) = expected("an object {name, description, parameters}", element.value);
                reader.problems().report(&element.pointer, code, message);
            }
        }
    }
    tools
}

fn read_tool_choice(fields: &TypedFields) -> Option<Template> {
    fields.checked("tool_choice", |value| match value {
        Value::Object(_) => Ok(()),
        Value::String(choice) if TOOL_CHOICES.contains(&choice.as_str()) => Ok(()),
        Value::String(choice) => {
            let choices = TOOL_CHOICES.join(", ");
            let message = format!(
                "\"{}\" is none of {choices}; a tool goes as {{\"name\": ...}}",
                shorten(choice)
            );
            Err(("invalid_choice", message))
        }
        other => Err(expected("a word or {\"name\": ...}", other)),
    })
}

/// The binding determines the endpoint and the account.
fn report_unsupported_fields(reader: &Reader) {
    for field in ["base_url", "api_key", "headers"] {
        if reader.has(field) {
            let message =
                format!("workers_ai is called through the executor's binding AI, without \"{field}\"");
            reader.report(field, "unsupported", message);
        }
    }
}

fn contains_expression(value: &Value) -> bool {
    !is_constant(value)
}

fn within(value: &Value, max: f64) -> Result<(), Mismatch> {
    match value.as_f64() {
        Some(number) if (0.0..=max).contains(&number) => Ok(()),
        Some(number) => Err(out_of_range(format!("{number} is outside 0 to {max}"))),
        None => Err(expected("a number", value)),
    }
}

fn out_of_range(message: String) -> Mismatch {
    ("out_of_range", message)
}
