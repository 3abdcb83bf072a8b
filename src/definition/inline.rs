//! Tasks that are to run inside the coordinator: only those may that touch nothing but their own context. Whether one does
//! is known when its actions are written into its steps.

use serde_json::Value;

use crate::definition::problem::{Problems, pointer_to};
use crate::definition::task::{Dispatch, Task};

const CODE: &str = "inline_not_pure";
const MESSAGE: &str = "only a task of update_context, assert and emit_event steps, without secrets and without a wait \
                       between its attempts, can run inside the coordinator; leave \"dispatch\" out and it does where it can";

/// A node's word on the task it runs.
pub(super) fn check_node(resolved: &Value, pointer: &str, problems: &Problems) {
    if calls_out(resolved, problems).is_some() {
        problems.report(&pointer_to(pointer, "dispatch"), CODE, MESSAGE);
    }
}

/// A task's own word.
pub(super) fn check_task(resolved: &Value, pointer: &str, problems: &Problems) {
    if says_inline(resolved, problems) {
        problems.report(&pointer_to(pointer, "dispatch"), CODE, MESSAGE);
    }
}

/// The word of a task that is only named here: an action of it has changed since it was stored.
pub(super) fn check_named_task(resolved: &Value, pointer: &str, problems: &Problems) {
    if says_inline(resolved, problems) {
        let id = resolved["id"].as_str().unwrap_or_default();
        problems.report(pointer, CODE, format!("in task \"{id}\" at /dispatch: {MESSAGE}"));
    }
}

fn says_inline(resolved: &Value, problems: &Problems) -> bool {
    calls_out(resolved, problems).is_some_and(|task| task.dispatch == Dispatch::Inline)
}

/// The task, if it is known that it cannot run inside. What was accepted once is not judged again, and what does not
/// resolve is wrong for another reason.
fn calls_out(resolved: &Value, problems: &Problems) -> Option<Task> {
    let steps = resolved["steps"].as_array()?;
    if problems.is_prechecked() || steps.iter().any(|step| !step["action_id"].is_null()) {
        return None;
    }
    let task = Task::read(resolved, "", &Problems::prechecked())?;
    let is_whole = task.steps.len() == steps.len();
    Some(task).filter(|task| is_whole && !task.is_pure())
}
