//! The one driver of all engine scenarios: a run built from a workflow document is fed events, and everything the
//! engine orders is compared, as one short line per effect, with what the scenario expects.
//!
//! The only place of these tests that matches on effects, so that a new one is a compile error here and nowhere else.

use std::rc::Rc;

use curfew::engine::{Effect, Event, Header, NewRun, Rejection, Run, Settings, StartRequest, Token, TokenId};
use curfew::model::failure::{Failure, FailureClass};
use curfew::model::snapshot::{DocumentKind, Library, Resolution, Snapshot, Stored, check, resolve};
use curfew::model::time::Millis;
use curfew::wire::{ReportStatus, TaskReport};
use serde_json::{Value, json};

/// Short moments, so that expectations are easy to read.
pub const SETTINGS: Settings = Settings {
    workflow_timeout_ms: 1_000_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 5,
    retention_ms: 10_000_000,
};

/// When runs of scenarios start.
pub const START: Millis = 1_000;

/// Adds what every document needs: an id, and the action `work`.
pub fn complete_document(mut document: Value) -> Value {
    let work = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}});
    if let Value::Object(fields) = &mut document {
        fields.entry("id").or_insert_with(|| json!("flow"));
        fields.entry("actions").or_insert_with(|| json!([work]));
    }
    document
}

/// The snapshot a run of `document` keeps; the document must be valid.
pub fn store_document(document: &Value) -> Stored {
    if let Err(refused) = check(DocumentKind::Workflows, document, &Library::new()) {
        panic!("{refused:?} in {document}");
    }
    match resolve(document, 1, &Library::new()) {
        Resolution::Resolved(stored) => *stored,
        Resolution::Missing(references) => panic!("{references:?} is not in {document}"),
        Resolution::Invalid(problems) => panic!("{problems:?} in {document}"),
    }
}

/// A run that starts at `now`.
pub fn create_run(now: Millis, settings: Settings, stored: Stored, input: Value) -> (Run, Vec<Effect>) {
    let snapshot = Snapshot::read(&stored).expect("what was resolved can be read");
    let new = NewRun {
        id: "run-1".into(),
        stored: Rc::new(stored),
        snapshot: Rc::new(snapshot),
        input,
        request: StartRequest::default(),
    };
    Run::create(now, settings, new)
}

pub struct Driver {
    pub run: Run,
    pub now: Millis,
    pub answer: Result<(), Rejection>,
    pub effects: Vec<Effect>,
}

impl Driver {
    pub fn start(document: Value) -> Driver {
        Driver::start_with(SETTINGS, document, json!({"x": 1}))
    }

    pub fn start_with(settings: Settings, document: Value, input: Value) -> Driver {
        let stored = store_document(&complete_document(document));
        let (run, effects) = create_run(START, settings, stored, input);
        Driver {
            run,
            now: START,
            answer: Ok(()),
            effects,
        }
    }

    /// The clock; it may also be set back.
    pub fn at(&mut self, now: Millis) -> &mut Driver {
        self.now = now;
        self
    }

    pub fn feed(&mut self, event: Event) -> &mut Driver {
        (self.answer, self.effects) = self.run.handle(self.now, event);
        self
    }

    pub fn report(&mut self, report: TaskReport) -> &mut Driver {
        self.feed(Event::TaskReported(Box::new(report)))
    }

    /// `attempt` is `t1@1`: token and epoch.
    pub fn succeed(&mut self, attempt: &str, output: Value) -> &mut Driver {
        self.report(succeeded(attempt, output))
    }

    pub fn fail(&mut self, attempt: &str) -> &mut Driver {
        self.report(failed(attempt))
    }

    pub fn time_out(&mut self, attempt: &str) -> &mut Driver {
        self.report(timed_out(attempt))
    }

    pub fn lose(&mut self, attempt: &str) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        self.feed(Event::CallLost {
            token,
            epoch,
            message: "connection refused".into(),
        })
    }

    /// The alarm rings while the calls of `open` (`t1@1 t2@1`) are still there.
    pub fn wake(&mut self, open: &str) -> &mut Driver {
        let open_calls = open.split_whitespace().map(parse_attempt).collect();
        self.feed(Event::Woken { open_calls })
    }

    pub fn load(&mut self) -> &mut Driver {
        self.feed(Event::Loaded)
    }

    pub fn cancel(&mut self, reason: Option<&str>) -> &mut Driver {
        self.feed(Event::CancelRequested {
            reason: reason.map(str::to_string),
        })
    }

    /// Compares all that the last event led to. A rejected event says so in its first line.
    #[track_caller]
    pub fn check(&mut self, expected: &str) -> &mut Driver {
        let mut lines = Vec::new();
        if let Err(rejection) = &self.answer {
            lines.push(format!("rejected {}", render_rejection(rejection)));
        }
        lines.extend(self.effects.iter().map(|effect| render(effect, &self.run)));
        let expected: Vec<&str> = expected
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        assert!(
            expected == lines,
            "at {}: expected\n    {}\nbut the engine said\n    {}\n",
            self.now,
            expected.join("\n    "),
            lines.join("\n    ")
        );
        self
    }

    /// Only the lines that start with `word`: for scenarios whose other effects are another scenario's matter.
    pub fn lines_of(&self, word: &str) -> Vec<String> {
        self.effects
            .iter()
            .map(|effect| render(effect, &self.run))
            .filter(|line| line.split(' ').next() == Some(word))
            .collect()
    }
}

pub fn parse_attempt(text: &str) -> (TokenId, u64) {
    let parts = text.split_once('@').expect("an attempt is t1@1");
    let token = TokenId::parse(parts.0).expect("a token is t1");
    (token, parts.1.parse().expect("an epoch is a number"))
}

fn report_of(attempt: &str, status: ReportStatus) -> TaskReport {
    let (token, epoch) = parse_attempt(attempt);
    TaskReport {
        token_id: token.to_string(),
        epoch,
        status,
        output: None,
        error: None,
        steps: Vec::new(),
    }
}

pub fn succeeded(attempt: &str, output: Value) -> TaskReport {
    TaskReport {
        output: Some(output),
        ..report_of(attempt, ReportStatus::Completed)
    }
}

pub fn failed(attempt: &str) -> TaskReport {
    TaskReport {
        error: Some(Failure::new(
            "peer_failed",
            FailureClass::ServerError,
            "status 500",
        )),
        ..report_of(attempt, ReportStatus::Failed)
    }
}

pub fn timed_out(attempt: &str) -> TaskReport {
    TaskReport {
        error: Some(Failure::new("tool_timeout", FailureClass::Timeout, "too slow")),
        ..report_of(attempt, ReportStatus::TimedOut)
    }
}

fn render_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::StaleAttempt { token, epoch } => format!("stale_attempt {token}@{epoch}"),
        Rejection::RunFinished => "run_finished".into(),
    }
}

pub fn render(effect: &Effect, run: &Run) -> String {
    match effect {
        Effect::SaveSnapshot(_) => "snapshot".into(),
        Effect::SaveInput(input) => format!("input {input}"),
        Effect::SaveRun(header) => render_header(header),
        Effect::SaveContext { key, text } => format!("context {key} = {text}"),
        Effect::SaveToken(token) => render_token(token, run),
        Effect::SetAlarm(at) => format!("alarm {at}"),
        Effect::DeleteStorage => "delete".into(),
        Effect::Dispatch(order) => {
            let deadline = order
                .deadline_at
                .map(|at| format!(" by {at}"))
                .unwrap_or_default();
            format!(
                "dispatch {}@{} {}{deadline}",
                order.token, order.epoch, order.input
            )
        }
        Effect::Abort { token, epoch } => format!("abort {token}@{epoch}"),
        Effect::Announce => "announce".into(),
        Effect::RunEnded => "ended".into(),
    }
}

fn render_header(header: &Header) -> String {
    let mut line = format!("run {}", word(&header.status));
    if let Some(at) = header.timeout_at.filter(|_| header.ended_at.is_none()) {
        line += &format!(" until {at}");
    }
    if let Some(output) = &header.output {
        line += &format!(" {output}");
    }
    if let Some(reason) = &header.reason {
        line += &format!(" ({reason})");
    }
    line + &render_failure(header.error.as_ref())
}

fn render_token(token: &Token, run: &Run) -> String {
    let node = &run.snapshot().workflow.nodes[token.node].id;
    let mut line = format!(
        "token {} {node} {}@{}",
        token.id,
        token.status.name(),
        token.epoch
    );
    if token.retry_count > 0 {
        line += &format!(" retry {}", token.retry_count);
    }
    if token.lost_count > 0 {
        line += &format!(" lost {}", token.lost_count);
    }
    if !token.status.is_terminal() {
        if let Some(at) = token.timeout_at {
            line += &format!(" until {at}");
        }
        if let Some(at) = token.watch_at {
            line += &format!(" watch {at}");
        }
    }
    if let Some(reason) = &token.reason {
        line += &format!(" ({reason})");
    }
    if let Some(output) = &token.output {
        // A result as large as its limit would say nothing but its size.
        let text = output.to_string();
        line += &match text.len() {
            0..=1_000 => format!(" {text}"),
            bytes => format!(" ({bytes} bytes)"),
        };
    }
    line + &render_failure(token.error.as_ref())
}

fn render_failure(failure: Option<&Failure>) -> String {
    match failure {
        None => String::new(),
        Some(failure) => format!(" {}/{}: {}", failure.code, word(&failure.class), failure.message),
    }
}

/// The name an enum goes by on the wire.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        other => panic!("{other:?} is no word"),
    }
}
