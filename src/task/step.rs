//! One step of a task: renders its input, performs its action, checks the result and maps it into the context.

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Limit;
use crate::cel::{Scope, Template};
use crate::definition::action::{Action, ActionKind, Assert};
use crate::definition::event::EmitEvent;
use crate::definition::path::Path;
use crate::definition::step::{Step, StepAction};
use crate::definition::timeouts::TimeoutLayer;
use crate::protocol::task::{ActionTimeouts, Emitted};
use crate::task::call::{Bounds, call_until_final};
use crate::task::context::{TaskContext, check, expression_failure, pay_copies, plain};
use crate::task::emit::emit;
use crate::task::pass::Pass;
use crate::task::retry::Ends;
use crate::task::run_task::Assignment;
use crate::task::runtime::{ActionCall, Runtime, Stopped};
use crate::task::secrets::CallSecrets;
use crate::task::trace::CallNotes;

/// What an action did, before its result is checked and kept.
struct Performed {
    result: Value,
    /// The context before the action wrote to it, if a failure may have to undo that.
    context_before: Option<TaskContext>,
    event: Option<Emitted>,
}

/// What the templates of an action are rendered with, besides the context.
#[derive(Clone, Copy)]
struct Bindings<'a> {
    input: &'a Value,
    secret: Option<&'a Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Bindings<'a> {
    fn scope(self, context: &'a TaskContext) -> Scope<'a> {
        context.scope_with(self.input, self.secret, self.meter)
    }
}

impl From<Value> for Performed {
    fn from(result: Value) -> Performed {
        Performed {
            result,
            context_before: None,
            event: None,
        }
    }
}

impl Pass<'_> {
    pub(super) async fn run_step(
        &mut self,
        runtime: &impl Runtime,
        step: &Step,
        assignment: &Assignment<'_>,
    ) -> Result<(), Stopped> {
        let StepAction::Inline(action) = &step.action else {
            let message = format!("step {} came without its action", step.reference);
            return Err(Failure::permanent("unresolved_action", message).into());
        };
        let meter = runtime.meter();
        let input = self.step_input(step, assignment.input, meter)?;
        let place = format!("input_schema of step {}", step.reference);
        check(action.input_schema.as_ref(), &input, &place, meter)?;
        let bounds = bounds_of(runtime, step, action, assignment);
        let no_time = bounds.ends.cut_at().is_some_and(|at| at <= runtime.now());
        if no_time || bounds.call_limit_ms == Some(0) {
            return Err(Stopped::Deadline { partial: None });
        }
        let secret = self.secrets.scope_of(action)?;
        let bindings = Bindings {
            input: &input,
            secret: secret.as_ref(),
            meter,
        };
        let performed = match &action.kind {
            ActionKind::UpdateContext(writes) => self.update_context(step, action, writes, bindings)?,
            ActionKind::Assert(assert) => self.assert(step, assert, bindings)?.into(),
            ActionKind::EmitEvent(event) => self.emit_event(step, event, bindings)?,
            ActionKind::WorkflowCall(_) => {
                let message = "a workflow_call never reaches an executor";
                return Err(Failure::permanent("invalid_order", message).into());
            }
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_) => {
                if let Some(progress) = runtime.progress() {
                    // An artifact of the step before is needed now. Otherwise it would be made when this step has ended.
                    self.note_finished();
                    let steps_total = assignment.task.steps.len();
                    progress.step_began(&step.reference, self.current, steps_total, self.partial.so_far());
                }
                let mut scope = bindings.scope(&self.context);
                scope.bind("callback", &assignment.callback);
                let notes = CallNotes::default();
                let trace = assignment.trace;
                let traceparent = trace.map(|trace| trace.header_of(&step.reference, self.rounds_before));
                let call = ActionCall {
                    action,
                    scope: &scope,
                    input: &input,
                    deadline_at: None,
                    step_ref: &step.reference,
                    rounds_before: self.rounds_before,
                    callback_url: assignment.callback["url"].as_str().filter(|_| action.is_async()),
                    traceparent: traceparent.as_deref(),
                    notes: &notes,
                    secrets: CallSecrets {
                        store: self.secrets,
                        action,
                        task: assignment.task,
                    },
                };
                let result = call_until_final(runtime, call, bounds, &mut self.calls).await;
                self.calls.gen_ai = notes.into_gen_ai();
                // Redacted before any step can read it and turn a secret into something that is not recognized.
                self.secrets.redactor().value(result?).into()
            }
        };
        self.keep(step, action, assignment.input, performed, meter)?;
        Ok(())
    }

    fn step_input(&self, step: &Step, task_input: &Value, meter: Option<&Meter>) -> Result<Value, Failure> {
        match &step.input_mapping {
            None => {
                let what = format_args!("the input of step {}", step.reference);
                pay_copies(meter, what, [task_input])?;
                Ok(task_input.clone())
            }
            Some(mapping) => mapping
                .render(&self.context.scope(task_input, meter))
                .map_err(|wrong| expression_failure(step, "input_mapping", &wrong)),
        }
    }

    fn update_context(
        &mut self,
        step: &Step,
        action: &Action,
        writes: &[(Path, Template)],
        bindings: Bindings<'_>,
    ) -> Result<Performed, Failure> {
        let mut values = Vec::with_capacity(writes.len());
        for (path, template) in writes {
            let value = template
                .render(&bindings.scope(&self.context))
                .map_err(|wrong| expression_failure(step, "set", &wrong))?;
            values.push((path, value));
        }
        let what = format!("what step {} writes", step.reference);
        let mut context_before = None;
        // The result is checked after the writes. A step that fails the check must leave no writes behind, or an attempt that
        // resumes with it would write twice.
        if action.output_schema.is_some() || step.output_mapping.is_some() {
            pay_copies(bindings.meter, &what, self.context.values())?;
            context_before = Some(self.context.clone());
        }
        let written = values.iter().map(|(_, value)| value);
        pay_copies(bindings.meter, &what, written.chain([&self.context.output]))?;
        self.context.write(values);
        Ok(Performed {
            result: self.context.output.clone(),
            context_before,
            event: None,
        })
    }

    fn assert(&self, step: &Step, assert: &Assert, bindings: Bindings<'_>) -> Result<Value, Failure> {
        let scope = bindings.scope(&self.context);
        let holds = assert
            .condition
            .evaluate_bool(&scope)
            .map_err(|wrong| expression_failure(step, "condition", &wrong))?;
        if holds {
            return Ok(Value::Bool(true));
        }
        let message = match &assert.message {
            None => format!("assertion failed: {}", assert.condition.source()),
            Some(message) => plain(
                message
                    .render(&scope)
                    .map_err(|wrong| expression_failure(step, "message", &wrong))?,
            ),
        };
        Err(Failure::new("assertion_failed", FailureClass::Assertion, message))
    }

    fn emit_event(
        &self,
        step: &Step,
        event: &EmitEvent,
        bindings: Bindings<'_>,
    ) -> Result<Performed, Failure> {
        let scope = bindings.scope(&self.context);
        let event = emit(event, step, &scope, self.secrets.redactor(), &self.context.events)?;
        let what = format!("what step {} emits", step.reference);
        let events = self.context.events.iter().chain([&event]);
        pay_copies(bindings.meter, &what, events.map(|event| &event.payload))?;
        Ok(Performed {
            result: event.payload.clone(),
            context_before: None,
            event: Some(event),
        })
    }

    /// Checks the result and maps it into the context. A step that fails here leaves the context as it was.
    fn keep(
        &mut self,
        step: &Step,
        action: &Action,
        task_input: &Value,
        performed: Performed,
        meter: Option<&Meter>,
    ) -> Result<(), Failure> {
        let result = performed.result;
        let place = format!("output_schema of step {}", step.reference);
        let schema = action.output_schema.as_ref().filter(|_| !action.is_async());
        let kept = check(schema, &result, &place, meter)
            .and_then(|()| self.context.keep(step, action, task_input, &result, meter));
        if let Err(failure) = kept {
            if let Some(before) = performed.context_before {
                self.context = before;
            }
            return Err(failure);
        }
        self.note_finished();
        // A step that fails has emitted nothing, because it may run again.
        self.context.events.extend(performed.event);
        self.context.last_result = result;
        self.last_finished = Some(step.reference.clone());
        Ok(())
    }
}

fn bounds_of(runtime: &impl Runtime, step: &Step, action: &Action, assignment: &Assignment<'_>) -> Bounds {
    let default = default_limit(action.kind.layer(), assignment.action_timeouts);
    let total = action.retry.total_timeout.millis();
    Bounds {
        call_limit_ms: step.call_limit(action, default).millis(),
        ends: Ends {
            total_at: total.map(|millis| runtime.now().saturating_add(millis)),
            attempt_at: assignment.deadline_at,
            run_at: assignment.run_ends_at,
        },
    }
}

/// The limit of a call if neither its step nor its action has one.
fn default_limit(layer: TimeoutLayer, timeouts: ActionTimeouts) -> Limit {
    let millis = match layer {
        TimeoutLayer::Tool => timeouts.tool_ms,
        TimeoutLayer::LlmCall => timeouts.llm_call_ms,
        TimeoutLayer::Step | TimeoutLayer::Flow => None,
    };
    millis.map_or(Limit::Unset, Limit::After)
}
