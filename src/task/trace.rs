//! The trace context that the calls of a task carry, and what the calls add to the report of their step.

use std::cell::RefCell;

use crate::base::text::shorten_to;
use crate::base::trace::{SpanId, TraceParent};
use crate::definition::llm::Provider;
use crate::protocol::task::{GEN_AI_CHARACTERS, GenAi, GenAiOperation, TaskOrder};
use crate::task::redact::Redactor;

/// The trace context of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTrace {
    parent: TraceParent,
    records_spans: bool,
}

impl TaskTrace {
    pub fn of(order: &TaskOrder) -> Option<TaskTrace> {
        Some(TaskTrace {
            parent: TraceParent::parse(order.traceparent?)?,
            records_spans: order.records_spans,
        })
    }

    /// The span of a step, if steps have their own.
    pub(super) fn span_of(self, step_ref: &str, rounds_before: u32) -> Option<SpanId> {
        let attempt = self.parent.span_id;
        self.records_spans.then(|| attempt.step(step_ref, rounds_before))
    }

    /// The header of a step's calls.
    pub(super) fn header_of(self, step_ref: &str, rounds_before: u32) -> String {
        let own = self.span_of(step_ref, rounds_before);
        let parent = TraceParent {
            span_id: own.unwrap_or(self.parent.span_id),
            ..self.parent
        };
        parent.to_string()
    }
}

/// What is known of the last call of a model or a tool, also after its failure.
#[derive(Debug, Default)]
pub struct CallNotes(RefCell<Option<GenAi>>);

impl CallNotes {
    pub fn model_called(&self, provider: Provider, model: &str, redactor: &Redactor) {
        let provider = match provider {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::WorkersAi => "workers_ai",
        };
        *self.0.borrow_mut() = Some(GenAi {
            provider: Some(provider.into()),
            request_model: Some(bounded(model, redactor)),
            ..empty(GenAiOperation::Chat)
        });
    }

    pub fn model_answered(
        &self,
        model: Option<&str>,
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        redactor: &Redactor,
    ) {
        if let Some(call) = &mut *self.0.borrow_mut() {
            call.response_model = model.map(|model| bounded(model, redactor));
            call.input_tokens = input_tokens;
            call.output_tokens = output_tokens;
        }
    }

    pub fn tool_called(&self, tool: &str, redactor: &Redactor) {
        *self.0.borrow_mut() = Some(GenAi {
            tool: Some(bounded(tool, redactor)),
            ..empty(GenAiOperation::ExecuteTool)
        });
    }

    pub fn into_gen_ai(self) -> Option<Box<GenAi>> {
        self.0.into_inner().map(Box::new)
    }
}

fn empty(operation: GenAiOperation) -> GenAi {
    GenAi {
        operation,
        provider: None,
        request_model: None,
        response_model: None,
        input_tokens: None,
        output_tokens: None,
        tool: None,
    }
}

/// Names come from templates and from peers. Redacted before they are cut: half a secret would not be found.
fn bounded(name: &str, redactor: &Redactor) -> String {
    shorten_to(&redactor.text(name.to_string()), GEN_AI_CHARACTERS)
}
