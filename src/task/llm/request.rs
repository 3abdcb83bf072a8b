//! The request to a provider, with all templates rendered and everything checked.

use serde_json::{Map, Value, json};
use url::Url;

use crate::base::failure::Failure;
use crate::base::text::shorten;
use crate::cel::{Scope, Template};
use crate::definition::llm::{LlmCall, Prompt, Provider, ResponseFormat};

use crate::task::context::plain;
use crate::task::llm::messages;
use crate::task::request::{Outgoing, parse_url, render, text};
use crate::task::runtime::ActionCall;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Anthropic requires a limit.
const ANTHROPIC_MAX_TOKENS: u64 = 4_096;

/// OpenAI requires a name for the schema of a response.
const SCHEMA_NAME: &str = "answer";

#[derive(Debug)]
pub enum LlmRequest {
    Http(Outgoing),
    /// To the executor's `AI` binding.
    Binding {
        model: String,
        inputs: Value,
    },
}

/// The request, and the model it is for.
pub fn of(llm: &LlmCall, call: &ActionCall, key: &str) -> Result<(LlmRequest, String), Failure> {
    let scope = call.scope;
    let rendered = RenderedCall::of(llm, scope)?;
    let model = rendered.model.clone();
    call.notes
        .model_called(llm.provider, &model, call.secrets.redactor());
    let (base_url, path) = match llm.provider {
        Provider::OpenAi => (OPENAI_URL, "chat/completions"),
        Provider::Anthropic => (ANTHROPIC_URL, "messages"),
        Provider::WorkersAi => {
            let inputs = rendered.into_workers_ai(&llm.response_format);
            return Ok((
                LlmRequest::Binding {
                    model: model.clone(),
                    inputs,
                },
                model,
            ));
        }
    };
    let base_url = match &llm.base_url {
        Some(base_url) => text(base_url, scope, "base_url")?,
        None => base_url.to_string(),
    };
    let base_url = parse_url(&base_url)?;
    let body = match llm.provider {
        Provider::OpenAi | Provider::WorkersAi => rendered.into_openai(&llm.response_format, &base_url),
        Provider::Anthropic => rendered.into_anthropic(&llm.response_format),
    };
    let url = endpoint(base_url, llm.provider, path);
    let mut request = Outgoing::new(url, "POST", None, body, scope, key)?;
    if llm.provider == Provider::Anthropic {
        request.set_header("anthropic-version", ANTHROPIC_VERSION)?;
    }
    if let Some(api_key) = optional(llm.api_key.as_ref(), scope, "api_key")? {
        let api_key = plain(api_key);
        match llm.provider {
            Provider::OpenAi | Provider::WorkersAi => {
                request.set_header("authorization", &format!("Bearer {api_key}"))?;
            }
            Provider::Anthropic => request.set_header("x-api-key", &api_key)?,
        }
    }
    request.set_headers(llm.headers.as_ref(), scope)?;
    Ok((LlmRequest::Http(request.traced_by(call)?), model))
}

/// `path` below the base URL, whose query stays. Anthropic's base URL may be written with or without `/v1`.
fn endpoint(mut base_url: Url, provider: Provider, path: &str) -> Url {
    let base = base_url.path().trim_end_matches('/').to_string();
    let version = match provider {
        Provider::Anthropic if !base.ends_with("/v1") => "v1/",
        Provider::Anthropic | Provider::OpenAi | Provider::WorkersAi => "",
    };
    base_url.set_path(&format!("{base}/{version}{path}"));
    base_url
}

/// The implementation with its templates rendered.
struct RenderedCall {
    model: String,
    system: Option<String>,
    messages: Vec<Map<String, Value>>,
    max_tokens: Option<Value>,
    temperature: Option<Value>,
    top_p: Option<Value>,
    stop: Option<Vec<Value>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
}

impl RenderedCall {
    fn of(llm: &LlmCall, scope: &Scope) -> Result<RenderedCall, Failure> {
        let messages = match &llm.prompt {
            Prompt::Text(prompt) => {
                vec![messages::message(
                    "user",
                    &plain(render(prompt, scope, "prompt")?),
                )]
            }
            Prompt::Messages(list) => messages::checked(render(list, scope, "messages")?)?,
        };
        let number = |template: &Option<Template>, field: &str| -> Result<Option<Value>, Failure> {
            match optional(template.as_ref(), scope, field)? {
                Some(value) if !value.is_number() => Err(wrong_type(field, "a number", &value)),
                other => Ok(other),
            }
        };
        let list = |template: &Option<Template>, field: &str| -> Result<Option<Vec<Value>>, Failure> {
            match optional(template.as_ref(), scope, field)? {
                None => Ok(None),
                Some(Value::Array(items)) => Ok(Some(items)),
                Some(other) => Err(wrong_type(field, "a list", &other)),
            }
        };
        let stop = match optional(llm.stop.as_ref(), scope, "stop")? {
            None => None,
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => Some(items),
            Some(text @ Value::String(_)) => Some(vec![text]),
            Some(other) => return Err(wrong_type("stop", "a string or a list of strings", &other)),
        };
        Ok(RenderedCall {
            model: text(&llm.model, scope, "model")?,
            system: optional(llm.system.as_ref(), scope, "system")?.map(plain),
            messages,
            max_tokens: number(&llm.max_tokens, "max_tokens")?,
            temperature: number(&llm.temperature, "temperature")?,
            top_p: number(&llm.top_p, "top_p")?,
            stop,
            tools: list(&llm.tools, "tools")?,
            tool_choice: optional(llm.tool_choice.as_ref(), scope, "tool_choice")?,
        })
    }

    fn into_openai(self, answer: &ResponseFormat, base_url: &Url) -> Value {
        // OpenAI's newer models accept only the new name of the limit. All other providers accept the old one.
        let limit = match base_url.host_str() {
            Some("api.openai.com") => "max_completion_tokens",
            Some(_) | None => "max_tokens",
        };
        let format = match answer {
            ResponseFormat::Text => None,
            ResponseFormat::Json => Some(json!({"type": "json_object"})),
            ResponseFormat::JsonSchema { document, .. } => Some(json!({
                "type": "json_schema",
                "json_schema": {"name": SCHEMA_NAME, "schema": document},
            })),
        };
        let model = self.model.clone();
        let mut body = self.into_chat(limit, format);
        body["model"] = model.into();
        body["stream"] = true.into();
        // A stream has no token counts without it.
        body["stream_options"] = json!({"include_usage": true});
        body
    }

    fn into_workers_ai(self, answer: &ResponseFormat) -> Value {
        let format = match answer {
            ResponseFormat::Text => None,
            ResponseFormat::Json => Some(json!({"type": "json_object"})),
            ResponseFormat::JsonSchema { document, .. } => {
                Some(json!({"type": "json_schema", "json_schema": document}))
            }
        };
        // Workers AI does not stream a response with a response_format.
        let stream = format.is_none();
        let mut inputs = self.into_chat("max_tokens", format);
        inputs["stream"] = stream.into();
        inputs
    }

    fn into_chat(self, limit: &str, format: Option<Value>) -> Value {
        let system = self.system.map(|text| messages::message("system", &text));
        let messages_sent = system.into_iter().chain(self.messages);
        let mut body = json!({"messages": messages_sent.map(messages::for_openai).collect::<Vec<_>>()});
        let tools = self
            .tools
            .map(|tools| tools.into_iter().map(messages::tool_for_openai).collect());
        for (field, value) in [
            (limit, self.max_tokens),
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("stop", self.stop.map(Value::Array)),
            ("tools", tools),
            ("tool_choice", self.tool_choice.map(messages::choice_for_openai)),
            ("response_format", format),
        ] {
            if let Some(value) = value {
                body[field] = value;
            }
        }
        body
    }

    fn into_anthropic(self, answer: &ResponseFormat) -> Value {
        let mut system: Vec<String> = self.system.into_iter().collect();
        let messages_sent = self.messages.into_iter();
        let messages_sent: Vec<Value> = messages_sent
            .filter_map(|message| messages::for_anthropic(message, &mut system))
            .collect();
        system.extend(instruction(answer));
        let mut body = json!({
            "model": self.model,
            "max_tokens": self.max_tokens.unwrap_or_else(|| ANTHROPIC_MAX_TOKENS.into()),
            "messages": messages_sent,
            "stream": true,
        });
        let tools = self
            .tools
            .map(|tools| tools.into_iter().map(messages::tool_for_anthropic).collect());
        let system = (!system.is_empty()).then(|| system.join("\n\n").into());
        for (field, value) in [
            ("system", system),
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("stop_sequences", self.stop.map(Value::Array)),
            ("tools", tools),
            (
                "tool_choice",
                self.tool_choice.map(messages::choice_for_anthropic),
            ),
        ] {
            if let Some(value) = value {
                body[field] = value;
            }
        }
        body
    }
}

/// Asks for the response format in the prompt, for a provider without a parameter for it.
fn instruction(answer: &ResponseFormat) -> Option<String> {
    let plainly = "Answer with one JSON value and nothing else: no words around it and no code fence.";
    match answer {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(plainly.to_string()),
        ResponseFormat::JsonSchema { document, .. } => {
            Some(format!("{plainly} It must fit this JSON Schema:\n{document}"))
        }
    }
}

/// None if the value is null or an empty string.
fn optional(template: Option<&Template>, scope: &Scope, field: &str) -> Result<Option<Value>, Failure> {
    let Some(template) = template else {
        return Ok(None);
    };
    let value = render(template, scope, field)?;
    Ok(Some(value).filter(|value| !value.is_null() && value.as_str() != Some("")))
}

fn wrong_type(field: &str, expected: &str, found: &Value) -> Failure {
    let found = shorten(&found.to_string());
    Failure::validation("wrong_type", format!("{field} must be {expected}, found {found}"))
}
