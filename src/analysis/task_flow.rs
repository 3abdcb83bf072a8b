//! Data flow inside of a task: paths of its own `state` that no step before writes.

use serde_json::Value;

use crate::analysis::uses::{Use, Uses, text_of};
use crate::base::suggest::closest;
use crate::base::text::shorten;
use crate::cel::{Expression, Template};
use crate::definition::action::{Action, ActionKind};
use crate::definition::path::{Path, Root};
use crate::definition::problem::Problems;
use crate::definition::step::{Step, StepAction};
use crate::definition::task::Task;

/// Warns about the steps of a task document. `actions` are those that stand beside it; of others it is not known what they read and
/// write.
pub fn check(document: &Value, pointer: &str, actions: &Value, report: &dyn Fn(&str, &'static str, String)) {
    let Some(task) = Task::read(document, pointer, &Problems::prechecked()) else {
        return;
    };
    // A step may write what the next round of a retried task reads: the context is fresh then, so only earlier steps count.
    let mut written: Vec<Path> = Vec::new();
    for step in &task.steps {
        let place = step_pointer(document, pointer, &step.reference);
        let of_step = document.pointer(place.strip_prefix(pointer).unwrap_or(""));
        let action = &of_step.unwrap_or(&Value::Null)["action"];
        for found in uses_of(step, &place, action) {
            if let Some(message) = problem_of(&found, &written) {
                report(&found.pointer, "unwritten_path", message);
            }
        }
        // From here on anything may be written.
        let Some(of_step) = written_by(step, actions) else {
            return;
        };
        written.extend(of_step);
        if written.len() > 2_000 {
            return;
        }
    }
}

/// What a step writes. None: its action is not known.
fn written_by(step: &Step, actions: &Value) -> Option<Vec<Path>> {
    let referenced;
    let action = match &step.action {
        StepAction::Inline(action) => action,
        StepAction::Reference { version: Some(_), .. } => return None,
        StepAction::Reference { id, version: None } => {
            let mut listed = actions.as_array().into_iter().flatten();
            let document = listed.find(|action| action["id"].as_str() == Some(id))?;
            referenced = Box::new(Action::read(document, "", false, &Problems::prechecked())?);
            &referenced
        }
    };
    let mapped = step.output_mapping.iter().flatten().map(|(path, _)| path.clone());
    let mut written: Vec<Path> = mapped.collect();
    if let ActionKind::UpdateContext(set) = &action.kind {
        written.extend(set.iter().map(|(path, _)| path.clone()));
    }
    if step.output_mapping.is_none() && !action.is_pure() {
        written.push(Path {
            root: Root::State,
            segments: vec![step.reference.clone()],
        });
    }
    Some(written)
}

fn step_pointer(document: &Value, pointer: &str, reference: &str) -> String {
    let steps = document["steps"].as_array().into_iter().flatten();
    let is_meant = |(index, step): &(usize, &Value)| {
        let written = step["ref"].as_str().map(str::to_string);
        written.unwrap_or_else(|| format!("step-{}", index + 1)) == reference
    };
    match steps.enumerate().find(is_meant) {
        Some((index, _)) => format!("{pointer}/steps/{index}"),
        None => format!("{pointer}/steps"),
    }
}

/// What a step reads before its own writes. `action` is null where the step only names one.
fn uses_of(step: &Step, pointer: &str, action: &Value) -> Vec<Use> {
    let mut uses = Vec::new();
    if let Some(condition) = &step.condition {
        uses.extend(Uses::of_expression(
            &condition.when,
            &format!("{pointer}/condition"),
        ));
    }
    if let Some(mapping) = &step.input_mapping {
        uses.extend(Uses::of_template(mapping, &format!("{pointer}/input_mapping")));
    }
    uses.extend(uses_of_implementation(
        action,
        &format!("{pointer}/action/implementation"),
    ));
    uses
}

/// What the implementation of an action reads.
pub(super) fn uses_of_implementation(action: &Value, pointer: &str) -> Vec<Use> {
    let implementation = &action["implementation"];
    let mut uses = Vec::new();
    if let Ok(template) = Template::parse(implementation) {
        uses = Uses::of_template(&template, pointer);
    }
    // The only field that is an expression without `${}`.
    if let ("assert", Some(condition)) = (
        action["kind"].as_str().unwrap_or_default(),
        implementation["condition"].as_str(),
    ) {
        let condition = Expression::new(condition);
        uses.extend(Uses::of_expression(&condition, &format!("{pointer}/condition")));
    }
    uses
}

fn problem_of(found: &Use, written: &[Path]) -> Option<String> {
    if found.is_guarded {
        return None;
    }
    let (first, members) = found.read.path.split_first()?;
    let name = members.first()?;
    // A step that fails with "continue" adds to `state._errors`.
    if first != "state" || name == "_errors" {
        return None;
    }
    let state = || written.iter().filter(|path| path.root == Root::State);
    let overlaps =
        |path: &Path| members.starts_with(&path.segments) || path.segments.as_slice().starts_with(members);
    if state().any(overlaps) {
        return None;
    }
    let text = found.read.path.join(".");
    let known: Vec<String> = state().map(text_of).collect();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let nearest = match (closest(&names, &text), names.as_slice()) {
        (Some(name), _) => format!("did you mean \"{name}\"?"),
        (None, []) => "a task begins with an empty state; data of the run comes as \"input\"".to_string(),
        (None, _) => format!("written before are {}", shorten(&names.join(", "))),
    };
    Some(format!(
        "no step before this one writes \"{}\"; {nearest}",
        shorten(&text)
    ))
}
