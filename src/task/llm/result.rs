//! The step's result of a complete response, or the failure of one that is not in the requested format.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::definition::llm::ResponseFormat;
use crate::json_schema::Schema;
use crate::task::llm::provider_error::unreadable;
use crate::task::llm::response_decoder::ResponseDecoder;
use crate::task::runtime::Stopped;

/// `{text, tool_calls, usage, finish_reason, model}`, and `json` if JSON was requested.
pub fn of(
    mut decoder: ResponseDecoder,
    format: &ResponseFormat,
    asked_model: &str,
) -> Result<Value, Stopped> {
    decoder.redact_cut_text();
    let completion = &decoder.completion;
    // A model that calls a tool first has not produced its JSON yet.
    let calls_tool_first = completion.text.trim().is_empty() && !completion.calls.is_empty();
    let json = match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json | ResponseFormat::JsonSchema { .. } if calls_tool_first => Some(Ok(Value::Null)),
        ResponseFormat::Json => Some(parse(&completion.text, completion.finish_reason.as_deref())),
        ResponseFormat::JsonSchema { schema, .. } => {
            let parsed = parse(&completion.text, completion.finish_reason.as_deref());
            Some(parsed.and_then(|json| fit(json, schema)))
        }
    };
    match json {
        None => Ok(Value::Object(decoder.completion.into_fields(asked_model))),
        Some(Ok(json)) => {
            let mut fields = decoder.completion.into_fields(asked_model);
            fields.insert("json".into(), json);
            Ok(Value::Object(fields))
        }
        Some(Err(failure)) => Err(decoder.stopped(failure)),
    }
}

fn parse(text: &str, finish_reason: Option<&str>) -> Result<Value, Failure> {
    serde_json::from_str(unfenced(text)).map_err(|error| {
        let reason = finish_reason.unwrap_or("unknown");
        unreadable(format!(
            "the model was asked for JSON and answered something else (finish_reason {reason}): {error}"
        ))
    })
}

fn fit(json: Value, schema: &Schema) -> Result<Value, Failure> {
    match schema.validate(&json).first() {
        None => Ok(json),
        Some(problem) => Err(Failure::validation(
            "schema_mismatch",
            format!(
                "the model's answer does not fit the schema of response_format, at \"{}\": {}",
                problem.pointer, problem.message
            ),
        )),
    }
}

/// Removes the Markdown fence that models put around JSON, even if they are told not to.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|inside| inside.split_once('\n'));
    match inside {
        Some((language, inside)) if language.trim().is_empty() || language.trim() == "json" => inside,
        Some(_) | None => text,
    }
}
