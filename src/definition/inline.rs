//! Checks tasks with `"dispatch": "inline"`, which run inside the coordinator: they may use nothing but their own context.
//! The check needs the resolved actions.

use serde_json::Value;

use crate::definition::problem::{Problems, pointer_to};
use crate::definition::task::{Dispatch, Task};

const CODE: &str = "inline_not_pure";
const MESSAGE: &str = "only a task of update_context, assert and emit_event steps, without secrets and without a wait \
                       between its attempts, can run inside the coordinator; leave \"dispatch\" out and it does where it can";

/// Checks a task whose node requests inline dispatch.
pub(super) fn check_node(resolved: &Value, pointer: &str, problems: &Problems) {
    if impure_task(resolved, problems).is_some() {
        problems.report(&pointer_to(pointer, "dispatch"), CODE, MESSAGE);
    }
}

/// Checks a task that is part of the current document.
pub(super) fn check_task(resolved: &Value, pointer: &str, problems: &Problems) {
    if is_wrongly_inline(resolved, problems) {
        problems.report(&pointer_to(pointer, "dispatch"), CODE, MESSAGE);
    }
}

/// Checks a task of the catalogue. It can only be invalid because one of its actions changed after it was stored.
pub(super) fn check_named_task(resolved: &Value, pointer: &str, problems: &Problems) {
    if is_wrongly_inline(resolved, problems) {
        let id = resolved["id"].as_str().unwrap_or_default();
        problems.report(pointer, CODE, format!("in task \"{id}\" at /dispatch: {MESSAGE}"));
    }
}

fn is_wrongly_inline(resolved: &Value, problems: &Problems) -> bool {
    impure_task(resolved, problems).is_some_and(|task| task.dispatch == Dispatch::Inline)
}

/// The task, if it cannot run inside the coordinator. `None` for a document that was checked before, and for a task that
/// does not resolve, which is reported elsewhere.
fn impure_task(resolved: &Value, problems: &Problems) -> Option<Task> {
    let steps = resolved["steps"].as_array()?;
    if problems.is_prechecked() || steps.iter().any(|step| !step["action_id"].is_null()) {
        return None;
    }
    let task = Task::read(resolved, "", &Problems::prechecked())?;
    let is_whole = task.steps.len() == steps.len();
    Some(task).filter(|task| is_whole && !task.is_pure())
}
