//! The driver of the engine tests. It creates a run from a workflow document, handles events, and compares each decision
//! with the expected lines: one short line per write and command.

use std::rc::Rc;

use curfew::base::failure::{Failure, FailureClass};
use curfew::base::time::Millis;
use curfew::definition::snapshot::{
    CatalogueDocument, CheckError, DocumentKind, Library, Reference, Resolution, Snapshot, StoredSnapshot,
    check, resolve,
};
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{
    CallbackKey, CallbackSecret, ChildReport, Command, Decision, Event, GateDecision, Message, NeededRows,
    NewRun, NotifySettings, ParentLink, ReadRows, Rejection, Routes, Run, RunStatus, Settings, StartRequest,
    TokenId, TriggeredBy,
};
use curfew::storage::commit::Commit;
use serde_json::{Value, json};

pub use super::render::render;
use super::render::{render_failure, render_rejection, wire_name};
use curfew::simulate::Store;

/// Small values, so that expectations are easy to read.
pub const SETTINGS: Settings = Settings {
    grace_ms: 500,
    watch_ms: 30_000,
    retry_delay_ms: 1_000,
    queue: false,
    routes: Routes::ALL,
    pending_ms: 5_000,
    no_route_ms: 300_000,
    resend_ms: 10_000,
    claim_ms: 30_000,
    heartbeat_ms: 300_000,
    progress_save_ms: 30_000,
    suspend_ms: 30_000,
    lost_max: 5,
    retention_ms: 10_000_000,
    timeout_max_ms: 2_592_000_000,
    notify: NotifySettings::DEFAULT,
};

/// The default call budget of a decision: effectively unlimited.
pub const ROOM: u32 = u32::MAX;

/// The start time of test runs.
pub const START: Millis = 1_000;

/// The default limit of test runs.
pub const WORKFLOW_TIMEOUT_MS: u64 = 1_000_000;

/// The key of the deployment, from which every run's secret is derived.
pub fn callback_key() -> CallbackKey {
    CallbackKey::parse(&"5e".repeat(32)).expect("64 hex digits")
}

/// Adds defaults to a document: an id, the action `work`, a limit and its policy.
pub fn complete_document(mut document: Value) -> Value {
    let work = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}});
    if let Value::Object(fields) = &mut document {
        fields.entry("id").or_insert_with(|| json!("flow"));
        fields.entry("actions").or_insert_with(|| json!([work]));
        if !fields.contains_key("timeout") {
            fields
                .entry("timeout_ms")
                .or_insert_with(|| json!(WORKFLOW_TIMEOUT_MS));
        }
        fields.entry("on_timeout").or_insert_with(|| json!("cancel_all"));
    }
    document
}

/// Workflows that others may call.
pub fn library() -> Library {
    let child =
        json!({"id": "child", "nodes": [{"id": "c", "action_id": "work"}], "output_mapping": "${state.c}"});
    let strict = json!({"id": "strict", "nodes": [{"id": "c", "action_id": "work"}],
        "input_schema": {"required": ["name"]}});
    let brief = json!({"id": "brief", "nodes": [{"id": "c", "action_id": "work"}], "timeout_ms": 20_000});
    // Calls a workflow that calls none: three levels with its caller.
    let middle = json!({"id": "middle", "nodes": [{"id": "m", "workflow_id": "child"}],
        "output_mapping": {"inner": "${state.m}"}});
    // Opens a gate when its limit passes; one has a short limit, one has the budget of its caller.
    let asking = json!({"id": "asking", "nodes": [{"id": "c", "action_id": "work"}], "timeout_ms": 20_000,
        "on_timeout": "human_gate"});
    let patient =
        json!({"id": "patient", "nodes": [{"id": "c", "action_id": "work"}], "on_timeout": "human_gate"});
    // Passes its remaining time on to its child.
    let handing = json!({"id": "handing", "nodes": [{"id": "m", "workflow_id": "child"}],
        "timeouts": {"inherit_budget": true}});
    // Workflows with their own short limits.
    let gated = json!({"id": "gated", "nodes": [{"id": "c", "action_id": "work"}], "timeout_ms": 3_000,
        "on_timeout": "human_gate", "gate": {"timeout_ms": 20_000, "on_timeout": "fail"}});
    let hasty = json!({"id": "hasty", "nodes": [{"id": "c", "action_id": "work"}], "timeout_ms": 4_000,
        "on_timeout": "fail"});
    let thrifty = json!({"id": "thrifty", "nodes": [{"id": "m", "workflow_id": "gated"}, {"id": "n", "workflow_id": "child"}],
        "transitions": [{"from_node_id": "m", "to_node_id": "n"}], "timeout_ms": 30_000,
        "timeouts": {"inherit_budget": true}, "on_timeout": "human_gate", "gate": {"timeout_ms": 40_000}});
    // Waits for a callback.
    let deferring = json!({"id": "deferring", "nodes": [{"id": "c", "action_id": "hand-out"}], "actions": [
        {"id": "hand-out", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": {"mode": "async"}}]});
    // A person takes longer than its limit.
    let approving = json!({"id": "approving", "nodes": [{"id": "ask", "gate": {"timeout_ms": 30_000, "on_timeout": "approve"}},
        {"id": "c", "action_id": "work"}], "transitions": [{"from_node_id": "ask", "to_node_id": "c"}], "timeout_ms": 3_000});
    [
        child, strict, brief, middle, asking, patient, handing, gated, hasty, thrifty, deferring, approving,
    ]
    .into_iter()
    .map(|document| {
        let content = complete_document(document);
        let reference = Reference {
            kind: DocumentKind::Workflows,
            id: content["id"].as_str().unwrap_or_default().to_string(),
            version: None,
        };
        (reference, Some(CatalogueDocument { version: 4, content }))
    })
    .collect()
}

/// The snapshot of a valid document.
pub fn store_document(document: &Value) -> StoredSnapshot {
    try_store(document).unwrap_or_else(|refused| panic!("{refused:?} in {document}"))
}

/// The snapshot of a document that may be invalid.
pub fn try_store(document: &Value) -> Result<StoredSnapshot, CheckError> {
    check(
        DocumentKind::Workflows,
        document,
        &library(),
        &TimeoutRules::default(),
    )?;
    Ok(match resolve(document, 1, &library(), &TimeoutRules::default()) {
        Resolution::Resolved(stored) => *stored,
        Resolution::Missing(references) => panic!("{references:?} is not in {document}"),
        Resolution::Invalid(problems) => panic!("{problems:?} in {document}"),
    })
}

/// A run that starts at `now`.
pub fn create_run(now: Millis, settings: Settings, stored: StoredSnapshot, input: Value) -> (Run, Decision) {
    let start = Start {
        id: "run-1".into(),
        stored,
        input,
        request: StartRequest::default(),
        parent: None,
        triggered_by: None,
        started_by: None,
    };
    start.run(now, settings)
}

/// The parameters of a start. A child is resolved from its parent's snapshot.
#[derive(Clone)]
pub struct Start {
    pub id: String,
    pub stored: StoredSnapshot,
    pub input: Value,
    pub request: StartRequest,
    pub parent: Option<ParentLink>,
    pub triggered_by: Option<TriggeredBy>,
    pub started_by: Option<String>,
}

impl Start {
    pub fn run(self, now: Millis, settings: Settings) -> (Run, Decision) {
        self.run_in(ROOM, now, settings)
    }

    /// With a call budget of `room`.
    pub fn run_in(self, room: u32, now: Millis, settings: Settings) -> (Run, Decision) {
        let snapshot = Snapshot::read(self.stored).expect("what was resolved can be read");
        let callback_secret = callback_key().secret_of(&self.id);
        let new = NewRun {
            id: self.id,
            snapshot: Rc::new(snapshot),
            input: self.input,
            request: self.request,
            parent: self.parent,
            triggered_by: self.triggered_by,
            callback_secret: CallbackSecret::Derived(callback_secret),
            started_by: self.started_by,
            traceparent: None,
        };
        Run::create(now, room, settings, new)
    }

    /// The start requested by a message of `parent`, as the host makes it.
    pub fn asked_by(parent: &Run, message: &Message) -> Option<Start> {
        let Message::StartChild {
            run_id,
            node_id,
            token_id,
            epoch,
            input,
            timeout_ms,
            budget_ms,
            node_decides,
        } = message
        else {
            return None;
        };
        let node = parent.snapshot().workflow.node_index(node_id)?;
        Some(Start {
            id: run_id.clone(),
            stored: parent.snapshot().stored.child(node)?,
            input: input.clone(),
            request: StartRequest {
                version: None,
                timeout_ms: *timeout_ms,
                budget_ms: *budget_ms,
                node_decides: *node_decides,
            },
            parent: Some(parent.header.link_to_child(token_id.clone(), *epoch)),
            triggered_by: None,
            started_by: parent.header.started_by.clone(),
        })
    }
}

pub struct Driver {
    pub run: Run,
    pub now: Millis,
    pub answer: Result<(), Rejection>,
    pub decision: Decision,
    /// All rows saved so far.
    pub store: Store,
    /// The call budget of each decision.
    pub room: u32,
    /// The name of the caller that controls the run.
    pub caller: Option<String>,
    settings: Settings,
}

impl Driver {
    pub fn start(document: Value) -> Driver {
        Driver::start_with(SETTINGS, document, json!({"x": 1}))
    }

    pub fn start_with(settings: Settings, document: Value, input: Value) -> Driver {
        let stored = store_document(&complete_document(document));
        let (run, decision) = create_run(START, settings, stored, input);
        Driver::of(run, decision, settings)
    }

    /// A run with a call budget of `room` per decision.
    pub fn start_in(room: u32, document: Value) -> Driver {
        let start = Start {
            id: "run-1".into(),
            stored: store_document(&complete_document(document)),
            input: json!({"x": 1}),
            request: StartRequest::default(),
            parent: None,
            triggered_by: None,
            started_by: None,
        };
        let (run, decision) = start.run_in(room, START, SETTINGS);
        let mut driver = Driver::of(run, decision, SETTINGS);
        driver.room = room;
        driver
    }

    pub fn of(run: Run, decision: Decision, settings: Settings) -> Driver {
        let mut driver = Driver {
            run,
            now: START,
            answer: Ok(()),
            decision,
            store: Store::default(),
            room: ROOM,
            caller: None,
            settings,
        };
        driver.save();
        driver
    }

    /// The child run that a `StartChild` message of `parent`'s last decision starts.
    pub fn start_child(parent: &Driver) -> Driver {
        let start = start_among(&parent.decision, &parent.run).expect("a child is to be started");
        let (run, decision) = start.run(START, SETTINGS);
        Driver::of(run, decision, SETTINGS)
    }

    /// Saves the last decision in the rows.
    pub fn save(&mut self) {
        let commit = Commit::of(self.decision.writes(), &self.run).expect("rows are JSON");
        self.store.apply(&commit).expect("no commit breaks a rule");
        self.store.alarm_at = self.run.alarm_at();
    }

    /// Restores the run from its rows, as after an eviction of the object.
    pub fn reload(&mut self) -> &mut Driver {
        self.run = self
            .store
            .recall(self.settings)
            .expect("what was saved can be read");
        self
    }

    /// Restores the run with other settings, as after a deployment.
    pub fn redeploy(&mut self, settings: Settings) -> &mut Driver {
        self.settings = settings;
        self.reload()
    }

    /// Later requests come from this caller.
    pub fn named(&mut self, name: &str) -> &mut Driver {
        self.caller = Some(name.to_string());
        self
    }

    /// Sets the clock, forward or back.
    pub fn at(&mut self, now: Millis) -> &mut Driver {
        self.now = now;
        self
    }

    pub fn feed(&mut self, event: Event) -> &mut Driver {
        (self.answer, self.decision) = self.run.handle(self.now, self.room, event);
        self.save();
        self
    }

    /// Feeds the rows that the engine asks for, as the host does after each commit.
    pub fn provide(&mut self) -> &mut Driver {
        while let Some(needed) = self.run.needed_rows() {
            let rows = match needed {
                NeededRows::Past => {
                    let past = self.store.past();
                    ReadRows::Past(Box::new(past.expect("rows can be read")))
                }
                NeededRows::Token(id) => ReadRows::Token(Box::new(self.row(&id.to_string()))),
            };
            self.feed(Event::RowsRead(rows));
        }
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

    /// The alarm fires, possibly early, while the calls in `open` are still open.
    pub fn fire_alarm(&mut self, open: &str) -> &mut Driver {
        let open_calls = open.split_whitespace().map(parse_attempt).collect();
        self.feed(Event::AlarmFired { open_calls })
    }

    /// A request wakes the object while the calls in `open` (`t1@1 t2@1`) are still open.
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
            by: self.caller.clone(),
        })
    }

    pub fn pause(&mut self) -> &mut Driver {
        self.feed(Event::PauseRequested {
            by: self.caller.clone(),
        })
    }

    pub fn resume(&mut self) -> &mut Driver {
        self.feed(Event::ResumeRequested {
            by: self.caller.clone(),
        })
    }

    pub fn signal(&mut self, name: &str, payload: Value) -> &mut Driver {
        self.feed(Event::SignalReceived {
            name: name.into(),
            payload,
            by: self.caller.clone(),
        })
    }

    /// Decides a gate, as user Ada unless the caller has another name.
    pub fn decide(&mut self, gate: &str, choice: &str) -> &mut Driver {
        self.decide_with(gate, choice, Value::Null)
    }

    pub fn decide_with(&mut self, gate: &str, choice: &str, input: Value) -> &mut Driver {
        self.feed(Event::GateDecided {
            gate: gate.into(),
            decision: GateDecision {
                choice: choice.into(),
                input,
                comment: None,
                by: self.caller.clone().or_else(|| Some("ada".into())),
                at: 0,
            },
        })
    }

    /// The child of attempt `t1@1` ended.
    pub fn child_ended(&mut self, attempt: &str, status: RunStatus, output: Option<Value>) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        let error = match status {
            RunStatus::Failed => Some(Failure::new(
                "broken",
                FailureClass::ServerError,
                "the child broke",
            )),
            _other => None,
        };
        self.feed(Event::ChildEnded(Box::new(ChildReport {
            token_id: token.to_string(),
            epoch,
            run_id: child_of(&self.run, token, epoch),
            status,
            output,
            error,
        })))
    }

    pub fn delivered(&mut self, id: u64) -> &mut Driver {
        self.feed(Event::Delivered { id })
    }

    pub fn delivery_failed(&mut self, id: u64, is_gone: bool) -> &mut Driver {
        self.feed(Event::DeliveryFailed { id, is_gone })
    }

    pub fn state(&self) -> &Value {
        self.run.context().state()
    }

    /// A summary of the run: its status, its error or output, and the live tokens counted as `node:status`.
    pub fn status_line(&self) -> String {
        let mut line = wire_name(&self.run.header.status);
        if let Some(output) = &self.run.header.output {
            line += &format!(" {output}");
        }
        line += &render_failure(self.run.header.error.as_ref());
        let mut live: std::collections::BTreeMap<String, u64> = Default::default();
        for token in self.run.live_tokens() {
            let node = &self.run.snapshot().workflow.nodes[token.node].id;
            *live.entry(format!("{node}:{}", token.status.name())).or_default() += 1;
        }
        for (place, count) in live {
            line += &match count {
                1 => format!(" {place}"),
                count => format!(" {count}x{place}"),
            };
        }
        line
    }

    #[track_caller]
    pub fn assert_status(&mut self, expected: &str) -> &mut Driver {
        assert_eq!(self.status_line(), expected, "at {}", self.now);
        self
    }

    /// Compares the whole decision of the last event. The first line of a rejected event is the rejection.
    #[track_caller]
    pub fn check(&mut self, expected: &str) -> &mut Driver {
        let mut lines = Vec::new();
        if let Err(rejection) = &self.answer {
            lines.push(format!("rejected {}", render_rejection(rejection)));
        }
        lines.extend(render(&self.decision, &self.run));
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

    /// The lines that start with `word`, for tests that are not about the others.
    pub fn lines_of(&self, word: &str) -> Vec<String> {
        render(&self.decision, &self.run)
            .into_iter()
            .filter(|line| line.split(' ').next() == Some(word))
            .collect()
    }
}

/// The first child start in a decision of `parent`.
pub fn start_among(decision: &Decision, parent: &Run) -> Option<Start> {
    decision.commands().iter().find_map(|command| match command {
        Command::DeliverMessage { message, .. } => Start::asked_by(parent, message),
        _other => None,
    })
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
        partial: Vec::new(),
        checkpoint: None,
        events: Vec::new(),
        gave_up_before: None,
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

/// The id of the child of an attempt.
pub fn child_of(run: &Run, token: TokenId, epoch: u64) -> String {
    match epoch {
        1 => format!("{}~{token}", run.header.id),
        epoch => format!("{}~{token}~{epoch}", run.header.id),
    }
}
