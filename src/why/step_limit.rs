//! The limit of an attempt, of a call or of a wait: which of the documents has it.

use serde_json::Value;

use crate::base::time::{Limit as Length, format_duration};
use crate::definition::action::Action;
use crate::definition::node::{NodeKind, NodeRole};
use crate::definition::step::{Step, StepAction};
use crate::definition::timeouts::TimeoutLayer;
use crate::run::LimitSource;
use crate::why::Asked;
use crate::why::limit::{Layer, Limit, Source, default_of};
use crate::why::place::Place;

pub(super) fn of_step(asked: Asked) -> Limit {
    let Some(node) = asked.node() else {
        return Limit::new(Layer::Execution, Source::Unknown)
            .because("the version that the run has now has no such node");
    };
    let snapshot = asked.run.snapshot();
    let (document, declared) = (&snapshot.stored.workflow, &snapshot.workflow.nodes[node]);
    let at_node = (declared.role == NodeRole::Declared)
        .then(|| Place::of(document, &format!("/nodes/{node}"), "timeout"));
    match asked.record.error.as_ref().map(|error| error.code.as_str()) {
        Some("attempt_reaped") => {
            return Limit::new(Layer::Heartbeat, Source::Deployment).because(
                "how long an attempt of the queue may be silent (CURFEW_HEARTBEAT_MS); a longer limit of the node changes nothing",
            );
        }
        // An adaptive limit without enough samples is none.
        Some("tool_timeout")
            if declared.timeout == Length::Unset
                && !(declared.adaptive && snapshot.execution_limit(node).limit.millis().is_some()) =>
        {
            return of_callback(asked, node).replaced_at(at_node);
        }
        Some(_) | None => {}
    }
    if let NodeKind::Wait(_) = declared.kind {
        return Limit::new(Layer::Wait, Source::Wait).at(Place::of(
            document,
            &format!("/nodes/{node}/wait"),
            "timeout",
        ));
    }
    let token = asked.token().and_then(|id| asked.facts.tokens.get(&id));
    let limit = snapshot.execution_limit(node);
    let limit = match token.and_then(|token| token.lane) {
        Some(lane) => limit.in_lane(lane),
        None => limit,
    };
    let step_ref = asked.record.last_known_state.step_ref.as_deref();
    if limit.limit.millis() != asked.limit_ms() || asked.limit_ms().is_none() {
        return inside_attempt(asked, node, step_ref).unwrap_or_else(|| {
            Limit::new(Layer::Execution, Source::Unknown)
                .because("no limit of the run's document has this length")
        });
    }
    let found = match limit.source {
        LimitSource::Node => match at_node.clone() {
            Some(place) => Limit::new(Layer::Execution, Source::Node).at(place),
            None => Limit::new(Layer::Execution, Source::Node),
        },
        LimitSource::Adaptive => match at_node.clone() {
            Some(place) => Limit::new(Layer::Execution, Source::Adaptive).at(place),
            None => Limit::new(Layer::Execution, Source::Adaptive),
        },
        LimitSource::Task => of_task(asked, node),
        // A longer limit of the node would leave the call with the one it has.
        LimitSource::Action => of_call(asked, node, None).map_or_else(
            || Limit::new(Layer::Execution, Source::Action),
            |call| call.of_layer(Layer::Execution),
        ),
        LimitSource::Preset => of_preset(asked, node, at_node),
    };
    match limit.reason {
        Some(reason) => found.because(reason),
        None => found,
    }
}

/// The default of a step, or of the only call.
fn of_preset(asked: Asked, node: usize, at_node: Option<Place>) -> Limit {
    let snapshot = asked.run.snapshot();
    let of_step = snapshot.default_limit(TimeoutLayer::Step).millis();
    match of_step == asked.limit_ms() {
        true => default_of(asked, Layer::Execution, TimeoutLayer::Step).replaced_at(at_node),
        false => default_of(asked, Layer::Execution, snapshot.layer_of(node)),
    }
}

/// The step of a task whose call was cut: the one that the record names, else the only one.
fn step_of<'a>(
    asked: &Asked<'a>,
    node: usize,
    step_ref: Option<&str>,
) -> Option<(usize, &'a Step, &'a Action)> {
    let task = &asked.run.snapshot().task_of(node)?.task;
    let mut steps = task.steps.iter().enumerate();
    let (index, step) = match step_ref {
        Some(reference) => steps.find(|(_, step)| step.reference == reference)?,
        None => steps.next().filter(|_| task.steps.len() == 1)?,
    };
    match &step.action {
        StepAction::Inline(action) => Some((index, step, action)),
        StepAction::Reference { .. } => None,
    }
}

/// The limit of the only call of an attempt.
pub(super) fn call_ms(asked: Asked, node: usize) -> Option<u64> {
    let (_, step, action) = step_of(&asked, node, None)?;
    asked.run.snapshot().call_limit(step, action).millis()
}

/// A limit inside the attempt, which passed before the attempt's own.
fn inside_attempt(asked: Asked, node: usize, step_ref: Option<&str>) -> Option<Limit> {
    let snapshot = asked.run.snapshot();
    let of_step = step_of(&asked, node, step_ref).is_some_and(|(_, step, action)| {
        let limits = [snapshot.call_limit(step, action), action.retry.total_timeout];
        limits.iter().any(|limit| limit.millis() == asked.limit_ms())
    });
    let of_whole_task = snapshot.task_of(node).and_then(|task| task.task.timeout.millis());
    match of_step {
        true => of_call(asked, node, step_ref),
        false if of_whole_task == asked.limit_ms() => Some(of_task(asked, node)),
        false => None,
    }
}

/// The executor keeps it beside a longer one of the node, which would change nothing.
fn of_task(asked: Asked, node: usize) -> Limit {
    let (id, task) = task_document(asked, node);
    let place = Place::of(&task, "", "timeout");
    Limit::new(Layer::Execution, Source::Task).in_document("tasks", &id, &place)
}

/// The limit of a call, or of all calls of a step.
fn of_call(asked: Asked, node: usize, step_ref: Option<&str>) -> Option<Limit> {
    let (index, step, action) = step_of(&asked, node, step_ref)?;
    let (_, task) = task_document(asked, node);
    let action_document = task
        .pointer(&format!("/steps/{index}/action"))
        .cloned()
        .unwrap_or_default();
    let call_ms = asked.run.snapshot().call_limit(step, action).millis();
    let total_ms = action.retry.total_timeout.millis();
    if let Some(total) = total_ms.filter(|_| total_ms == asked.limit_ms() || call_ms.is_none()) {
        let place = Place::of(&action_document, "/execution/retry_policy", "total_timeout");
        let limit = Limit::new(Layer::Call, Source::Action).in_document("actions", &action.id, &place);
        return Some(limit.because(format!(
            "all calls of the step together: {}",
            format_duration(total)
        )));
    }
    if step.timeout_override != Length::Unset {
        let place = Place::of(&task, &format!("/steps/{index}"), "timeout_override");
        let (id, _) = task_document(asked, node);
        return Some(Limit::new(Layer::Call, Source::Step).in_document("tasks", &id, &place));
    }
    if action.timeout != Length::Unset {
        let place = Place::of(&action_document, "/execution", "timeout");
        return Some(Limit::new(Layer::Call, Source::Action).in_document("actions", &action.id, &place));
    }
    match action.kind.layer() {
        layer @ (TimeoutLayer::LlmCall | TimeoutLayer::Tool) => {
            call_ms.map(|_| default_of(asked, Layer::Call, layer))
        }
        TimeoutLayer::Step | TimeoutLayer::Flow => None,
    }
}

fn of_callback(asked: Asked, node: usize) -> Limit {
    let action = step_of(&asked, node, None).map(|(_, _, action)| action.timeout.millis());
    match action
        .flatten()
        .filter(|millis| Some(*millis) == asked.limit_ms())
    {
        Some(_) => of_call(asked, node, None).map_or_else(
            || Limit::new(Layer::Callback, Source::Action),
            |call| call.of_layer(Layer::Callback),
        ),
        None => Limit::new(Layer::Callback, Source::Deployment)
            .because("an action waits for its callback at least as long as CURFEW_SUSPEND_MS says"),
    }
}

/// The id of the task of a node and its document, as the run keeps it: with its actions inside.
fn task_document(asked: Asked, node: usize) -> (String, Value) {
    let stored = &asked.run.snapshot().stored;
    let index = stored.node_tasks.get(node).copied().flatten();
    let task = index
        .and_then(|index| stored.tasks.get(index))
        .cloned()
        .unwrap_or_default();
    (task["id"].as_str().unwrap_or_default().to_string(), task)
}
