//! What the steps of one pass read and write: `state`, `output` and the last result. A checkpoint saves and restores it.

use serde_json::{Map, Value, json};

use crate::base::compute::{Meter, copy_steps};
use crate::base::failure::Failure;
use crate::base::limits::{DEPTH, RESULT_BYTES, depth_of};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::cel::{Error, Scope};
use crate::definition::NOW;
use crate::definition::action::Action;
use crate::definition::path::{Path, Root};
use crate::definition::secret::SECRET;
use crate::definition::step::Step;
use crate::definition::task::Task;
use crate::json_schema::Schema;
use crate::protocol::task::{Checkpoint, Emitted, StepReport};

#[derive(Clone, Debug)]
pub(super) struct TaskContext {
    state: Value,
    pub(super) output: Value,
    pub(super) last_result: Value,
    wrote_output: bool,
    /// The events of the finished steps.
    pub(super) events: Vec<Emitted>,
    /// `now` in expressions: when the step under way began.
    pub(super) now: Millis,
}

impl TaskContext {
    pub(super) fn empty() -> TaskContext {
        TaskContext {
            state: json!({}),
            output: json!({}),
            last_result: Value::Null,
            wrote_output: false,
            events: Vec::new(),
            now: 0,
        }
    }

    /// None for a context that no task can have made: writes to it would be lost.
    pub(super) fn resumed(
        state: Value,
        output: Value,
        last_result: Value,
        wrote_output: bool,
        events: Vec<Emitted>,
    ) -> Option<TaskContext> {
        (state.is_object() && output.is_object()).then_some(TaskContext {
            state,
            output,
            last_result,
            wrote_output,
            events,
            now: 0,
        })
    }

    /// None if it is larger, or nested deeper, than the coordinator accepts: running the steps again costs less than a report
    /// that is refused.
    pub(super) fn into_checkpoint(
        self,
        next: &str,
        steps: Vec<StepReport>,
        rounds_before: u32,
    ) -> Option<Box<Checkpoint>> {
        let parts = [&self.state, &self.output, &self.last_result];
        if parts.into_iter().any(|part| depth_of(part) > DEPTH) {
            return None;
        }
        let checkpoint = Checkpoint {
            next: next.to_string(),
            state: self.state,
            output: self.output,
            wrote_output: self.wrote_output,
            last_result: self.last_result,
            steps,
            events: self.events,
            rounds_before,
        };
        let text = serde_json::to_string(&checkpoint).expect("a checkpoint is JSON");
        (text.len() <= RESULT_BYTES).then(|| Box::new(checkpoint))
    }

    pub(super) fn scope<'a>(&'a self, input: &'a Value, meter: Option<&'a Meter>) -> Scope<'a> {
        let mut scope = Scope::metered(meter);
        scope
            .bind("input", input)
            .bind("state", &self.state)
            .bind("output", &self.output)
            .bind_owned(NOW, self.now.into());
        scope
    }

    /// The scope of an implementation, which has `secret` if it names one.
    pub(super) fn scope_with<'a>(
        &'a self,
        input: &'a Value,
        secret: Option<&'a Value>,
        meter: Option<&'a Meter>,
    ) -> Scope<'a> {
        let mut scope = self.scope(input, meter);
        if let Some(values) = secret {
            scope.bind(SECRET, values);
        }
        scope
    }

    /// The values that a copy of the context copies.
    pub(super) fn values(&self) -> [&Value; 3] {
        [&self.state, &self.output, &self.last_result]
    }

    pub(super) fn write(&mut self, values: Vec<(&Path, Value)>) {
        for (path, value) in values {
            let root = match path.root {
                Root::State => &mut self.state,
                Root::Output => {
                    self.wrote_output = true;
                    &mut self.output
                }
                Root::Branch => unreachable!("a task's targets are parsed without branches"),
            };
            let fields = root.as_object_mut().expect("state and output are always objects");
            path.write(fields, value);
        }
    }

    /// Maps a result into the context; without a mapping it is written to `state.<ref>`.
    pub(super) fn keep(
        &mut self,
        step: &Step,
        action: &Action,
        input: &Value,
        result: &Value,
        meter: Option<&Meter>,
    ) -> Result<(), Failure> {
        match &step.output_mapping {
            Some(mapping) => {
                let mut scope = self.scope(input, meter);
                scope.bind("result", result);
                let mut values = Vec::with_capacity(mapping.len());
                for (path, template) in mapping {
                    let value = template
                        .render(&scope)
                        .map_err(|wrong| expression_failure(step, "output_mapping", &wrong))?;
                    values.push((path, value));
                }
                drop(scope);
                self.write(values);
            }
            // A pure action has no other effect than its writes.
            None if action.is_pure() => {}
            None => {
                let target = Path {
                    root: Root::State,
                    segments: vec![step.reference.clone()],
                };
                self.write(vec![(&target, result.clone())]);
            }
        }
        Ok(())
    }

    pub(super) fn note_error(&mut self, step: &Step, failure: &Failure) {
        let error = json!({
            "ref": step.reference,
            "code": failure.code,
            "class": failure.class,
            "message": failure.message,
        });
        let state = self.state.as_object_mut().expect("state is always an object");
        match state.entry("_errors").or_insert_with(|| json!([])) {
            Value::Array(errors) => errors.push(error),
            other => *other = json!([error]),
        }
    }

    /// The task's output: what was written to `output`, else the last result. It is taken only if it is valid, so that a task
    /// that fails here still has its last result as an artifact.
    pub(super) fn deliver(&mut self, task: &Task, meter: Option<&Meter>) -> Result<Value, Failure> {
        let output = match self.wrote_output {
            true => &mut self.output,
            false => &mut self.last_result,
        };
        check(
            task.output_schema.as_ref(),
            output,
            "output_schema of the task",
            meter,
        )?;
        pay_copies(meter, "the task's output", [&*output])?;
        let bytes = json_bytes(output);
        if bytes > RESULT_BYTES {
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the task's output is {bytes} bytes; the limit is {RESULT_BYTES}"),
            ));
        }
        Ok(std::mem::replace(output, Value::Object(Map::new())))
    }
}

pub(super) fn check(
    schema: Option<&Schema>,
    value: &Value,
    place: &str,
    meter: Option<&Meter>,
) -> Result<(), Failure> {
    match schema {
        None => Ok(()),
        Some(schema) => schema.check(value, meter, "schema_mismatch", &format!("{place}, at")),
    }
}

/// Charges the copies of values to the meter, if there is one.
pub(super) fn pay_copies<'v>(
    meter: Option<&Meter>,
    what: impl std::fmt::Display,
    values: impl IntoIterator<Item = &'v Value>,
) -> Result<(), Failure> {
    let Some(meter) = meter else { return Ok(()) };
    values
        .into_iter()
        .try_for_each(|value| meter.charge_for(&what, copy_steps(value)))
}

pub(super) fn expression_failure(step: &Step, field: &str, wrong: &Error) -> Failure {
    let code = match wrong.is_unit_exhausted {
        true => "limit_exceeded",
        false => "expression_failed",
    };
    Failure::validation(code, format!("{field} of step {}: {wrong}", step.reference))
}

/// Text for a person: a string as it is, anything else as JSON.
pub(super) fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
