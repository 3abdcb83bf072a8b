//! An action as its step would call it, for tests of what it sends.

use curfew::executor::redact::Redactor;
use curfew::executor::task::ActionCall;
use curfew::executor::task_cache::TaskCache;
use curfew::model::expression::Scope;
use curfew::model::task::StepAction;
use curfew::model::time::Millis;
use serde_json::{Value, json};

/// Hands `use_it` the call of an action over `input`.
pub fn calling<T>(
    kind: &str,
    implementation: Value,
    input: Value,
    deadline_at: Option<Millis>,
    use_it: impl FnOnce(&ActionCall) -> T,
) -> T {
    let step = json!({"ref": "a", "action": {"kind": kind, "implementation": implementation}});
    let text = json!({"id": "t", "steps": [step]}).to_string();
    let task = TaskCache::default().task(&text).expect("the task can be read");
    let StepAction::Inline(action) = &task.steps[0].action else {
        panic!("it is written inline");
    };
    let empty = json!({});
    let mut scope = Scope::new();
    scope
        .bind("input", &input)
        .bind("state", &empty)
        .bind("output", &empty);
    use_it(&ActionCall {
        action,
        scope: &scope,
        input: &input,
        deadline_at,
        step_ref: "a",
        rounds_before: 0,
        callback_url: None,
        redactor: &Redactor::default(),
    })
}
