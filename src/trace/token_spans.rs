//! The spans of one token: the token itself, its gates, its wait at a join, its attempts as far as its rows tell of them, and the
//! steps of the attempts.

use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::base::trace::SpanId;
use crate::protocol::task::{GenAi, GenAiOperation, StepReport, StepStatus};
use crate::protocol::trace::{TracedError, TracedEvent, TracedKind, TracedStep, TracedToken};
use crate::trace::span::{AttributeValue, Interval, Span, SpanKind, code_of};
use crate::trace::trace_builder::{RunContext, add_events, gate_span};

/// Attempts of a token that become spans, the last ones. A token may have any number of them.
const ATTEMPTS_MAX: usize = 100;

/// Events after which an attempt is over.
const ENDS_OF_ATTEMPTS: &[&str] = &[
    "token_dispatched",
    "token_timed_out",
    "token_retried",
    "attempt_reaped",
];

/// `more` are its events that have rows of their own.
pub(super) fn of(
    context: RunContext,
    run_span: &Span,
    token: &TracedToken,
    more: Vec<TracedEvent>,
) -> Vec<Span> {
    let mut events: Vec<TracedEvent> = token.events.iter().cloned().chain(more).collect();
    sort_by_key(&mut events, |event| event.seq);
    let mut span = token_span(context, run_span, token, &events);
    let mut spans: Vec<Span> = token
        .gates
        .iter()
        .map(|gate| gate_span(context, &span, gate))
        .collect();
    let attempts = attempts_of(&span, token, &events);
    let last = attempts.len().saturating_sub(1);
    let mut attempt_spans: Vec<Span> = Vec::new();
    for (index, attempt) in attempts.iter().enumerate() {
        attempt_spans.push(attempt_span(context, &span, token, attempt, index == last));
    }
    if let Some(joins_at) = &token.joins_at {
        let mut children = events.iter().filter(|event| event.kind == "subworkflow_ended");
        let child_ended_at = children.next_back().map(|event| event.at);
        let attempt_ended_at = attempt_spans.last().map(|attempt| attempt.time.end);
        let from = child_ended_at.or(attempt_ended_at).unwrap_or(span.time.end);
        let id = context.spans.join(token.id);
        let time = Interval::new(from, span.time.end);
        let mut join = span.child(id, format!("join {joins_at}"), time);
        describe(&mut join, context, token);
        spans.push(join);
    }
    spans.extend(step_spans(context, token, &attempt_spans));
    spans.extend(interrupted_steps(
        context,
        token,
        &attempts,
        &attempt_spans,
        &spans,
    ));
    add_events(&mut span, events);
    spans.extend(attempt_spans);
    spans.push(span);
    spans
}

fn token_span(context: RunContext, run_span: &Span, token: &TracedToken, events: &[TracedEvent]) -> Span {
    let node = shown_node(token);
    let name = match token.kind {
        Some(TracedKind::Task) => format!("task {node}"),
        Some(TracedKind::Workflow) => format!("workflow {node}"),
        Some(TracedKind::Gate) => format!("gate {node}"),
        Some(TracedKind::Wait) => format!("wait {node}"),
        Some(TracedKind::Compensation) => format!("compensate {node}"),
        Some(TracedKind::EndHandler) => "on_end".to_string(),
        Some(TracedKind::PassThrough) | None => format!("node {node}"),
    };
    let time = Interval::new(token.created_at, token.ended_at.unwrap_or(run_span.time.end));
    let mut span = run_span.child(context.spans.token(token.id), name, time);
    describe(&mut span, context, token);
    span.text("curfew.token.status", &token.status);
    span.optional_text("curfew.compensates", token.compensates.as_deref());
    if let Some(branch) = &token.branch {
        span.optional_text("curfew.branch.group", branch.group.as_deref());
        span.number("curfew.branch.index", u64::from(branch.index));
    }
    let mut children = events.iter().filter_map(|event| event.child_run_id.as_deref());
    span.optional_text("curfew.child.run.id", children.next_back());
    span.end_as(&token.status, token.error.as_ref());
    span
}

/// The id in the document: a compensation has that of the node whose work it undoes.
fn shown_node(token: &TracedToken) -> &str {
    token.node_id.split('~').next().unwrap_or_default()
}

fn describe(span: &mut Span, context: RunContext, token: &TracedToken) {
    span.text("curfew.run.id", &context.run.run_id);
    span.text("curfew.workflow.id", &context.run.workflow_id);
    span.text("curfew.node.id", shown_node(token));
    span.text("curfew.token.id", format!("t{}", token.id));
}

/// An attempt, and the event that ended it.
struct Attempt<'a> {
    epoch: u64,
    time: Interval,
    end: Option<&'a TracedEvent>,
}

fn attempts_of<'a>(span: &Span, token: &TracedToken, events: &'a [TracedEvent]) -> Vec<Attempt<'a>> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if event.kind != "token_dispatched" {
            continue;
        }
        let epoch = event.epoch.unwrap_or(1);
        // The epoch makes the id of the span: each has one.
        if attempts.iter().any(|attempt| attempt.epoch == epoch) {
            continue;
        }
        let mut later = events[index + 1..].iter();
        let end = later.find(|event| ENDS_OF_ATTEMPTS.contains(&event.kind.as_str()));
        let ended_at = end.map_or_else(|| work_ended_at(span, token), |end| end.at);
        attempts.push(Attempt {
            epoch,
            time: Interval::new(event.at, ended_at),
            end,
        });
    }
    // Rows of earlier builds have no events.
    if attempts.is_empty()
        && let Some(started_at) = token
            .started_at
            .filter(|_| token.epoch > 0 && !token.steps.is_empty())
    {
        attempts.push(Attempt {
            epoch: token.epoch,
            time: Interval::new(started_at, work_ended_at(span, token)),
            end: None,
        });
    }
    let skipped = attempts.len().saturating_sub(ATTEMPTS_MAX);
    attempts.split_off(skipped)
}

/// A token that waits for its siblings ends with them. Its work ended with its last step.
fn work_ended_at(span: &Span, token: &TracedToken) -> Millis {
    if token.joins_at.is_none() {
        return span.time.end;
    }
    let steps = token.steps.iter().filter_map(|step| {
        let started_at = step.report.started_at?;
        Some(started_at.saturating_add(step.report.duration_ms))
    });
    let from_durations = || {
        let durations = token.steps.iter().map(|step| step.report.duration_ms);
        let started_at = token.started_at.unwrap_or(token.created_at);
        durations.fold(started_at, Millis::saturating_add)
    };
    steps.max().unwrap_or_else(from_durations)
}

fn attempt_span(
    context: RunContext,
    token_span: &Span,
    token: &TracedToken,
    attempt: &Attempt,
    is_last: bool,
) -> Span {
    let id = context.spans.attempt(token.id, attempt.epoch);
    let name = format!("attempt {}", shown_node(token));
    let mut span = token_span.child(id, name, attempt.time);
    describe(&mut span, context, token);
    span.number("curfew.attempt", attempt.epoch);
    span.optional_text("curfew.lane", token.lane.as_deref());
    let is_join = token.joins_at.is_some() && token.error.is_none();
    match attempt.end.map(|end| end.kind.as_str()) {
        // A branch that waits for its siblings has done its work, whatever becomes of it then.
        None if is_last && is_join => span.end_as("completed", None),
        _end if is_last => span.end_as(&token.status, token.error.as_ref()),
        Some("token_timed_out") => span.fail("timeout", None),
        Some("attempt_reaped") => span.fail("attempt_reaped", None),
        // Lost, or repeated after a pause or a decision: the rows do not say.
        _repeated => {}
    }
    span
}

/// The steps that the token's row has: those of its last report, and those that an earlier attempt had finished.
fn step_spans(context: RunContext, token: &TracedToken, attempts: &[Span]) -> Vec<Span> {
    let Some(last) = attempts.last() else {
        return Vec::new();
    };
    let mut cursor = last.time.start;
    let mut spans = Vec::new();
    for step in &token.steps {
        let report = &step.report;
        let started_at = report.started_at.unwrap_or(cursor);
        let time = Interval::new(started_at, started_at.saturating_add(report.duration_ms));
        cursor = time.end;
        if report.status == StepStatus::Skipped {
            continue;
        }
        let attempt = attempts
            .iter()
            .rev()
            .find(|it| is_step_of(it, report))
            .unwrap_or(last);
        let id = report
            .span_id
            .unwrap_or_else(|| attempt.span_id.step(&report.reference, 0));
        let mut span = step_span(
            context,
            token,
            attempt,
            id,
            &report.reference,
            step.action.as_deref(),
            time,
        );
        describe_step(&mut span, step, token.error.as_ref());
        spans.push(span);
    }
    spans
}

/// Business retries of a task that are tried to find the attempt of a step.
const ROUNDS_TRIED: u32 = 10;

/// By the id, not by the time: an executor has a clock of its own.
fn is_step_of(attempt: &Span, report: &StepReport) -> bool {
    let id_in = |round| attempt.span_id.step(&report.reference, round);
    report
        .span_id
        .is_some_and(|id| (0..ROUNDS_TRIED).any(|round| id_in(round) == id))
}

fn step_span(
    context: RunContext,
    token: &TracedToken,
    attempt: &Span,
    id: SpanId,
    step_ref: &str,
    action: Option<&str>,
    time: Interval,
) -> Span {
    let name = format!("{} {step_ref}", action.unwrap_or("step"));
    let mut span = attempt.child(id, name, time);
    describe(&mut span, context, token);
    let attempts = attempt.attributes.iter();
    let epoch = attempts.filter(|(name, _)| *name == "curfew.attempt").cloned();
    span.attributes.extend(epoch);
    span.text("curfew.step.ref", step_ref);
    span.optional_text("curfew.action.kind", action);
    span.kind = match action {
        Some("http_request" | "llm_call" | "mcp_tool" | "service_call" | "shell") => SpanKind::Client,
        Some(_) | None => SpanKind::Internal,
    };
    span
}

fn describe_step(span: &mut Span, step: &TracedStep, error: Option<&TracedError>) {
    let report = &step.report;
    span.number("curfew.step.attempts", u64::from(report.attempts));
    if let Some(gen_ai) = &report.gen_ai {
        describe_gen_ai(span, gen_ai);
    }
    let start = span.time.start;
    for retry in &report.retries {
        let class = serde_json::to_value(retry.class).unwrap_or_default();
        let class = class.as_str().unwrap_or_default().to_string();
        let attributes = vec![
            ("error.type", AttributeValue::Text(code_of(&retry.code))),
            ("curfew.error.class", AttributeValue::Text(class)),
            ("curfew.retry.delay_ms", AttributeValue::Number(retry.delay_ms)),
        ];
        let at = start.saturating_add(retry.after_ms.unwrap_or(0));
        span.event(at, "retry".into(), attributes);
    }
    let error = error.filter(|error| error.step_ref.as_deref() == Some(&report.reference));
    match report.status {
        StepStatus::Completed => span.end_as("completed", None),
        StepStatus::Failed => span.end_as("failed", error),
        StepStatus::TimedOut => span.fail("timeout", None),
        StepStatus::Skipped => {}
    }
}

/// By OpenTelemetry's conventions for generative AI.
fn describe_gen_ai(span: &mut Span, call: &GenAi) {
    let operation = call.operation.name();
    let subject = match call.operation {
        GenAiOperation::Chat => call.request_model.as_deref(),
        GenAiOperation::ExecuteTool => call.tool.as_deref(),
    };
    span.rename(&match subject {
        Some(subject) => format!("{operation} {subject}"),
        None => operation.to_string(),
    });
    span.text("gen_ai.operation.name", operation);
    span.optional_text("gen_ai.provider.name", call.provider.as_deref());
    // The name before conventions 1.37, which many backends read.
    span.optional_text("gen_ai.system", call.provider.as_deref());
    span.optional_text("gen_ai.request.model", call.request_model.as_deref());
    span.optional_text("gen_ai.response.model", call.response_model.as_deref());
    span.number("gen_ai.usage.input_tokens", call.input_tokens);
    span.number("gen_ai.usage.output_tokens", call.output_tokens);
    span.optional_text("gen_ai.tool.name", call.tool.as_deref());
}

/// Steps of attempts whose report did not come: a timeout or a callback was faster. Peers of their calls have the ids of the spans.
fn interrupted_steps(
    context: RunContext,
    token: &TracedToken,
    attempts: &[Attempt],
    attempt_spans: &[Span],
    known: &[Span],
) -> Vec<Span> {
    let mut spans = Vec::new();
    for (attempt, attempt_span) in attempts.iter().zip(attempt_spans) {
        let timeout = attempt.end.filter(|end| end.kind == "token_timed_out");
        let was_called_back = attempt.end.is_none() && token.status == "completed" && token.steps.is_empty();
        if timeout.is_none() && !was_called_back {
            continue;
        }
        if known.iter().any(|span| span.parent == Some(attempt_span.span_id)) {
            continue;
        }
        let stopped = timeout.and_then(|timeout| timeout.step_ref.as_deref());
        let (step_ref, action) = match (&token.only_step, stopped) {
            (Some((step_ref, action)), _) => (step_ref.as_str(), Some(action.as_str())),
            (None, Some(step_ref)) => (step_ref, None),
            (None, None) => continue,
        };
        let id = attempt_span.span_id.step(step_ref, 0);
        let time = attempt_span.time;
        let mut span = step_span(context, token, attempt_span, id, step_ref, action, time);
        match timeout {
            Some(_) => span.fail("timeout", None),
            None => span.end_as("completed", None),
        }
        spans.push(span);
    }
    spans
}
