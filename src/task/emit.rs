//! Renders and checks the event of an `emit_event` step. The event is sent when its task has completed, so that no workflow is
//! started by something that did not happen.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::ids;
use crate::base::limits::{DEPTH, EVENTS_PER_ATTEMPT, RESULT_BYTES, depth_of};
use crate::base::text::{json_bytes, shorten};
use crate::cel::Scope;
use crate::definition::event::EmitEvent;

use crate::definition::step::Step;
use crate::protocol::task::Emitted;
use crate::task::context::expression_failure;
use crate::task::redact::Redactor;

/// `before` are the events that the task has emitted so far.
pub(super) fn emit(
    event: &EmitEvent,
    step: &Step,
    scope: &Scope,
    redactor: &Redactor,
    before: &[Emitted],
) -> Result<Emitted, Failure> {
    let name = event.name.render(scope);
    let name = redactor.value(name.map_err(|wrong| expression_failure(step, "name", &wrong))?);
    let payload = match &event.payload {
        None => Value::Null,
        Some(payload) => payload
            .render(scope)
            .map_err(|wrong| expression_failure(step, "payload", &wrong))?,
    };
    let payload = redactor.value(payload);
    let Some(name) = name.as_str().filter(|name| ids::is_name(name)) else {
        let message = format!(
            "step {} cannot emit {}: {}",
            step.reference,
            shorten(&name.to_string()),
            ids::EVENT_NAME_RULE
        );
        return Err(Failure::validation("invalid_event", message));
    };
    if before.len() >= EVENTS_PER_ATTEMPT {
        return Err(exceeded(format!("a task may emit {EVENTS_PER_ATTEMPT} events")));
    }
    if depth_of(&payload) > DEPTH {
        return Err(exceeded(format!(
            "the payload of event {name} is nested deeper than the limit of {DEPTH}"
        )));
    }
    // All events of a task are in one report, and in one checkpoint, so their sizes are limited together.
    let earlier: usize = before.iter().map(|event| json_bytes(&event.payload)).sum();
    let bytes = earlier + json_bytes(&payload);
    if bytes > RESULT_BYTES {
        return Err(exceeded(format!(
            "with event {name} the task has emitted {bytes} bytes; the limit is {RESULT_BYTES}"
        )));
    }
    Ok(Emitted {
        name: name.to_string(),
        payload,
    })
}

fn exceeded(message: String) -> Failure {
    Failure::validation("limit_exceeded", message)
}
