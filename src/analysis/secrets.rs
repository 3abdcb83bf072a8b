//! Secrets that actions name and the executor does not have.

use std::collections::BTreeSet;

use crate::analysis::lint::Lint;
use crate::base::suggest::closest;
use crate::definition::step::StepAction;

/// `listed` are the names that the executor may use, where they are known.
pub fn check(lint: &Lint, listed: Option<&[String]>) {
    let Some(listed) = listed else {
        return;
    };
    let known: Vec<&str> = listed.iter().map(String::as_str).collect();
    let mut reported = BTreeSet::new();
    for (node, found) in lint.snapshot.workflow.nodes.iter().enumerate() {
        let Some(task) = lint.snapshot.task_of(node) else {
            continue;
        };
        let actions = task.task.steps.iter().filter_map(|step| match &step.action {
            StepAction::Inline(action) => Some(action),
            StepAction::Reference { .. } => None,
        });
        for name in actions.flat_map(|action| &action.secrets) {
            lint.graph.steps.add(1);
            if known.contains(&name.as_str()) || !reported.insert(name) {
                continue;
            }
            let nearest = closest(&known, name).map(|near| format!("did you mean \"{near}\"? "));
            lint.warn(
                &lint.reference_pointer(node),
                "unknown_secret",
                format!(
                    "\"{}\" uses the secret \"{name}\", which CURFEW_SECRETS does not list; {}add it there, or the call \
                     fails",
                    found.shown_id(),
                    nearest.unwrap_or_default()
                ),
            );
        }
    }
}
