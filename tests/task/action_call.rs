//! Builds the call of an action, for tests of the request it sends.

use curfew::base::time::Millis;
use curfew::cel::Scope;
use curfew::definition::step::StepAction;
use curfew::task::runtime::ActionCall;
use curfew::task::secrets::{CallSecrets, SecretStore};
use curfew::task::task_cache::TaskCache;
use curfew::task::trace::CallNotes;
use serde_json::{Value, json};

/// Calls `use_it` with the call of an action over `input`.
pub fn calling<T>(
    kind: &str,
    implementation: Value,
    input: Value,
    deadline_at: Option<Millis>,
    use_it: impl FnOnce(&ActionCall) -> T,
) -> T {
    let store = SecretStore::default();
    calling_with(&store, kind, implementation, input, deadline_at, use_it)
}

/// Like `calling`, in an executor with these secrets.
pub fn calling_with<T>(
    store: &SecretStore,
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
    let secret = store.scope_of(action).expect("its secrets are listed and set");
    let mut scope = Scope::new();
    scope
        .bind("input", &input)
        .bind("state", &empty)
        .bind("output", &empty);
    if let Some(secret) = &secret {
        scope.bind("secret", secret);
    }
    use_it(&ActionCall {
        action,
        scope: &scope,
        input: &input,
        deadline_at,
        step_ref: "a",
        rounds_before: 0,
        callback_url: None,
        traceparent: None,
        notes: &CallNotes::default(),
        secrets: CallSecrets {
            store,
            action,
            task: &task,
        },
    })
}
