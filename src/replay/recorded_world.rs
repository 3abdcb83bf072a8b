//! The world of a replay: executors, called workflows and people that answer as they did in the recording.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::host::{Attempt, EmittedEvent, Published};
use crate::protocol::caller::Caller;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::task::{ReportStatus, StepProgress, TaskMessage, TaskOrder, TaskReport};
use crate::replay::departure::{
    AttemptLimits, CutCall, Departure, DepartureKind, departure, other_work, where_it_stops,
};
use crate::replay::export::node_key;
use crate::replay::outcome::{AttemptEnd, only_call};
use crate::replay::recorded_calls::{CallPlace, RecordedAttempt};
use crate::replay::recorded_children::RecordedChildren;
use crate::replay::recorded_decisions::Decisions;
use crate::replay::recorded_tasks::{CalledWorkflows, RecordedTasks};
use crate::replay::recording::Recording;
use crate::replay::unplayed::Unplayed;
use crate::run::{GateState, GateStatus, TokenId, TokenStatus, Write};
use crate::simulate::{ConnectionId, Durable, Environment, InFlight, RANK_MAX, Store, World, post_heartbeat};
use crate::storage::commit::{Commit, GATE};
use crate::storage::rows::TokenRow;

/// Behind everything else that happens at its moment.
pub(super) const LAST: u64 = RANK_MAX;

/// A call whose answer the recording does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCall {
    pub at: Millis,
    pub place: CallPlace,
    pub why: String,
}

pub struct RecordedWorld {
    pub environment: Environment,
    attempts: RefCell<Unplayed<RecordedAttempt>>,
    decisions: RefCell<Decisions>,
    tasks: Rc<RecordedTasks>,
    /// The workflows that nodes call now.
    pub(super) called: CalledWorkflows,
    recorded_limits: BTreeMap<CallPlace, AttemptLimits>,
    /// Alarms ring as late as they did. Empty where something was changed.
    wakes: BTreeSet<Millis>,
    /// Calls that get no answer, by the number of the message that comes when the recording ends for them.
    unanswered: RefCell<BTreeMap<u64, Unanswered>>,
    last_number: Cell<u64>,
    /// Attempts that consumers of the queue have.
    claimed: RefCell<BTreeSet<(String, Attempt)>>,
    gates: RefCell<BTreeSet<String>>,
    /// All gates of the recording, decided or not.
    recorded_gates: BTreeSet<String>,
    pub(super) is_unchanged: bool,
    /// After so long a silence an attempt is given up.
    reap_ms: u64,
    pub(super) children: RecordedChildren,
    pub unknown: RefCell<Vec<UnknownCall>>,
    /// Those of the attempts of this replay.
    pub limits: RefCell<BTreeMap<CallPlace, AttemptLimits>>,
    pub broken: RefCell<Vec<String>>,
    /// Commits that wrote rows.
    pub commits: Cell<u64>,
    pub rows_bytes: Cell<u64>,
    pub steps: Cell<u64>,
}

struct Unanswered {
    attempt: Attempt,
    call: UnknownCall,
}

/// How a report comes back.
enum WayBack {
    Connection(ConnectionId),
    Queue { run: String, attempt: Attempt },
}

impl RecordedWorld {
    /// `is_unchanged`: the workflow is the recorded one.
    pub fn new(
        environment: Environment,
        recording: Recording,
        tasks: Rc<RecordedTasks>,
        called: CalledWorkflows,
        is_unchanged: bool,
        reap_ms: u64,
    ) -> RecordedWorld {
        RecordedWorld {
            environment,
            attempts: RefCell::new(Unplayed::new(recording.attempts, |attempt| &attempt.place)),
            children: RecordedChildren::new(recording.children),
            decisions: RefCell::new(Decisions::new(recording.decisions)),
            tasks,
            called,
            recorded_limits: recording.limits,
            limits: RefCell::default(),
            wakes: if is_unchanged {
                recording.wakes
            } else {
                BTreeSet::new()
            },
            unanswered: RefCell::default(),
            last_number: Cell::default(),
            claimed: RefCell::default(),
            gates: RefCell::default(),
            recorded_gates: recording.gates,
            is_unchanged,
            reap_ms,
            unknown: RefCell::default(),
            broken: RefCell::default(),
            commits: Cell::default(),
            rows_bytes: Cell::default(),
            steps: Cell::default(),
        }
    }

    /// The recording has no more of an attempt. If it still counts, its answer is not known.
    pub fn recording_ends(&self, number: u64, store: &Store) {
        let Some(Unanswered { attempt, call }) = self.unanswered.borrow_mut().remove(&number) else {
            return;
        };
        let is_open = store.status_of(attempt.0.0).is_some_and(|status| match status {
            TokenStatus::Executing | TokenStatus::Suspended | TokenStatus::WaitingForSubworkflow => true,
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::WaitingForSiblings
            | TokenStatus::AwaitingHuman
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => false,
        }) && store.epoch_of(attempt.0.0) == attempt.1;
        if is_open {
            self.unknown.borrow_mut().push(call);
        }
    }

    /// How long the consumer of an attempt sent heartbeats, if it became silent.
    fn silent_after(&self, store: &Store, attempt: Attempt) -> Option<u64> {
        let (place, _) = place_of(store, attempt);
        let attempts = self.attempts.borrow();
        let mut reaped = attempts
            .of_attempt(&place.token_id, place.epoch)
            .filter(|recorded| recorded.is_reaped);
        let recorded = reaped.find(|recorded| recorded.place == place)?;
        Some(recorded.lasted_ms.saturating_sub(self.reap_ms))
    }

    /// One heartbeat says all that the others did: from it on the consumer is silent.
    fn begin_silent(&self, store: &Store, order: &str, (run, attempt): (&str, Attempt), after_ms: u64) {
        if after_ms > 0 {
            let heartbeat = InFlight::Heartbeat {
                run: run.to_string(),
                attempt,
                left: 0,
            };
            self.environment.post(after_ms, heartbeat);
        }
        self.begin(store, order, None);
    }

    fn begin(&self, store: &Store, text: &str, connection: Option<&ConnectionId>) {
        let Ok(order) = serde_json::from_str::<TaskOrder>(text) else {
            return self.broken.borrow_mut().push("an order cannot be read".into());
        };
        let Some(token) = TokenId::parse(order.token_id) else {
            return;
        };
        let attempt = (token, order.epoch);
        let (place, limit_ms) = place_of(store, attempt);
        let way_back = match connection {
            Some(connection) => WayBack::Connection(connection.clone()),
            None => WayBack::Queue {
                run: order.run_id.to_string(),
                attempt,
            },
        };
        let now = self.environment.now.get();
        let recorded = self.attempts.borrow_mut().take(&place);
        let Some(recorded) = recorded else {
            let why = "the recorded run did not make this call".to_string();
            return self.unanswered(0, attempt, UnknownCall { at: now, place, why });
        };
        let is_suspended = recorded.suspended_after.is_some() && !matches!(recorded.end, AttemptEnd::Lost);
        let departure = self.departure(&order, &recorded, limit_ms, is_suspended);
        if is_suspended && departure.is_none() {
            return self.suspend(&order, attempt, &way_back, recorded);
        }
        if let Some(departure) = departure {
            let Departure { after_ms, kind } = departure;
            return match kind {
                DepartureKind::Cut(call) => self.cut(&order, &way_back, after_ms, call),
                DepartureKind::Unknown(why) => {
                    let at = now.saturating_add(after_ms);
                    self.unanswered(after_ms, attempt, UnknownCall { at, place, why });
                }
            };
        }
        match &recorded.end {
            AttemptEnd::Completed { .. }
            | AttemptEnd::Failed { .. }
            | AttemptEnd::TimedOut {
                is_reported: true, ..
            } => {
                let report = recorded.end.report(order.token_id, order.epoch);
                self.report(&way_back, recorded.lasted_ms, recorded.rank, report);
            }
            AttemptEnd::Lost => {
                let lost = RunRequest::ReportLost {
                    token_id: order.token_id.to_string(),
                    epoch: order.epoch,
                    message: "lost, as recorded".into(),
                };
                let result = InFlight::Result {
                    run: order.run_id.to_string(),
                    attempt,
                    request: lost,
                };
                self.environment
                    .post_ranked(recorded.lasted_ms, recorded.rank, result);
            }
            // The alarm of the run finds it. One that is open has departed.
            AttemptEnd::TimedOut {
                is_reported: false, ..
            }
            | AttemptEnd::Open { .. } => {}
        }
    }

    fn departure(
        &self,
        order: &TaskOrder,
        recorded: &RecordedAttempt,
        limit_ms: Option<u64>,
        is_suspended: bool,
    ) -> Option<Departure> {
        let limits = self.limits_of(order, recorded, limit_ms);
        if self.is_unchanged {
            return where_it_stops(recorded).filter(|_| !is_suspended);
        }
        let task: Value = serde_json::from_str(order.task.get()).unwrap_or_default();
        let compared = self.tasks.compare(&recorded.place.node_id, &task, limits.actions);
        let before = self.recorded_limits.get(&recorded.place);
        match is_suspended {
            // The limits of one that waits for its callback are the run's to keep.
            true => other_work(&compared, limits, before),
            false => departure(recorded, &compared, limits, before),
        }
    }

    /// Those of an unchanged run are kept: the recording does not have them.
    fn limits_of(
        &self,
        order: &TaskOrder,
        recorded: &RecordedAttempt,
        limit_ms: Option<u64>,
    ) -> AttemptLimits {
        let now = self.environment.now.get();
        let mut input = DefaultHasher::new();
        order.input.get().hash(&mut input);
        let limits = AttemptLimits {
            attempt_ms: limit_ms,
            executor_ms: order.deadline_at.map(|at| at.saturating_sub(now)),
            run_ms: order.run_ends_at.map(|at| at.saturating_sub(now)),
            actions: order.action_timeouts.unwrap_or_default(),
            input: input.finish(),
        };
        if self.is_unchanged {
            self.limits.borrow_mut().insert(recorded.place.clone(), limits);
        }
        limits
    }

    /// An async action: its call is accepted, and its result comes by the callback.
    fn suspend(&self, order: &TaskOrder, attempt: Attempt, way_back: &WayBack, recorded: RecordedAttempt) {
        let suspended_after = recorded.suspended_after.unwrap_or(0);
        let report = TaskReport {
            status: ReportStatus::Suspended,
            ..recorded.end.empty_report(order.token_id, order.epoch)
        };
        self.report(way_back, suspended_after, 0, Some(report));
        let now = self.environment.now.get();
        let callback = order.callback_url.and_then(|url| url.rsplit_once('/'));
        match (recorded.end.callback(), callback) {
            (Some(body), Some((_, capability))) => {
                let request = RunRequest::Callback {
                    capability: capability.to_string(),
                    body,
                };
                let callback = InFlight::Result {
                    run: order.run_id.to_string(),
                    attempt,
                    request,
                };
                self.environment
                    .post_ranked(recorded.lasted_ms, recorded.rank, callback);
            }
            // Its limit ends it before that, unless it is a longer one than in the recording.
            (_, _) => {
                let call = UnknownCall {
                    at: now.saturating_add(recorded.lasted_ms),
                    place: recorded.place,
                    why: "its callback had not come".into(),
                };
                self.unanswered(recorded.lasted_ms, attempt, call);
            }
        }
    }

    /// An executor stops the call at its limit and reports at once.
    fn cut(&self, order: &TaskOrder, way_back: &WayBack, limit_ms: u64, call: Option<CutCall>) {
        let steps = call.iter().map(|call| only_call(&call.step_ref, call.lasted_ms));
        let end = AttemptEnd::TimedOut {
            is_reported: true,
            steps: steps.collect(),
            step_limit_ms: None,
            step_ref: call.map(|call| call.step_ref),
        };
        let report = end.report(order.token_id, order.epoch);
        self.report(way_back, limit_ms, LAST - 1, report);
    }

    fn report(&self, way_back: &WayBack, after_ms: u64, rank: u64, report: Option<TaskReport>) {
        let Some(report) = report else {
            return;
        };
        let message = match way_back {
            WayBack::Connection(connection) => InFlight::Report {
                connection: connection.clone(),
                report,
            },
            WayBack::Queue { run, attempt } => InFlight::Result {
                run: run.clone(),
                attempt: *attempt,
                request: RunRequest::Report(report),
            },
        };
        self.environment.post_ranked(after_ms, rank, message);
    }

    pub(super) fn unanswered(&self, after_ms: u64, attempt: Attempt, call: UnknownCall) {
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        self.unanswered
            .borrow_mut()
            .insert(number, Unanswered { attempt, call });
        // What had ended the call happens again, perhaps some milliseconds later.
        let slack_ms = if self.is_unchanged { SLACK_MS } else { 0 };
        self.environment.post_ranked(
            after_ms.saturating_add(slack_ms),
            LAST,
            InFlight::Scheduled(number),
        );
    }

    /// A person decides at a gate that has opened, as in the recording.
    fn gate_opened(&self, run: &str, gate: &GateState) {
        if !self.gates.borrow_mut().insert(gate.id.clone()) {
            return;
        }
        // A gate of the recording that no person decided stays open.
        let must_be_same = self.recorded_gates.contains(&gate.id) || self.is_unchanged;
        let Some(decision) = self.decisions.borrow_mut().take(gate, must_be_same) else {
            return;
        };
        let by = decision.decision.by.clone();
        let request = InFlight::Request {
            run: run.to_string(),
            caller: Some(Caller {
                name: by,
                ..Caller::default()
            }),
            request: RunRequest::DecideGate {
                gate_id: gate.id.clone(),
                decision: decision.decision,
            },
            is_repeated: false,
        };
        self.environment
            .post_ranked(decision.after_ms, decision.rank, request);
    }

    pub(super) fn send(&self, run: &str, after_ms: u64, rank: u64, request: RunRequest) {
        let request = InFlight::Request {
            run: run.to_string(),
            caller: None,
            request,
            is_repeated: false,
        };
        self.environment.post_ranked(after_ms, rank, request);
    }
}

/// Where an attempt stands, and its limit.
pub(super) fn place_of(store: &Store, (token, epoch): Attempt) -> (CallPlace, Option<u64>) {
    let row = store.tokens.get(&token.0);
    let row = row.and_then(|(_, row)| serde_json::from_str::<TokenRow>(row).ok());
    let node_id = row.as_ref().map(|row| row.node_id.as_str()).unwrap_or_default();
    let node_id = match node_id.split_once('~') {
        Some((node_id, _)) => node_key(node_id, true),
        None => node_key(node_id, false),
    };
    let place = CallPlace {
        token_id: token.to_string(),
        epoch,
        node_id,
        branch: row.as_ref().and_then(|row| Some(row.branch.as_ref()?.index)),
    };
    (place, row.and_then(|row| row.timeout_ms))
}

impl World for RecordedWorld {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn orders_arrived(&self, store: &Store, connection: &ConnectionId, orders: &str) {
        for order in orders.split('\n') {
            self.begin(store, order, Some(connection));
        }
    }

    fn queue_delay(&self, message: &TaskMessage) -> u64 {
        let attempts = self.attempts.borrow();
        match attempts.of_attempt(&message.token_id, message.epoch).next() {
            // Longer than any limit of a run.
            Some(recorded) if recorded.is_unclaimed => u64::from(u32::MAX) << 8,
            Some(recorded) => recorded.queued_ms,
            None => 0,
        }
    }

    fn alarm_rings_at(&self, at: Millis) -> Millis {
        match self.wakes.range(at..).next() {
            Some(wake) if wake.saturating_sub(at) <= LATE_MAX_MS => *wake,
            Some(_) | None => at,
        }
    }

    fn order_claimed(&self, store: &Store, order: &str) {
        let Ok(read) = serde_json::from_str::<TaskOrder>(order) else {
            return;
        };
        let Some(token) = TokenId::parse(read.token_id) else {
            return;
        };
        let attempt = (token, read.epoch);
        let claim = (read.run_id.to_string(), attempt);
        self.claimed.borrow_mut().insert(claim);
        if let Some(silent_after_ms) = self.silent_after(store, attempt) {
            return self.begin_silent(store, order, (read.run_id, attempt), silent_after_ms);
        }
        post_heartbeat(
            &self.environment,
            read.run_id,
            attempt,
            u64::MAX,
            read.run_ends_at,
        );
        self.begin(store, order, None);
    }

    fn progress_of(&self, run: &str, attempt: Attempt) -> Option<Option<StepProgress>> {
        let claim = (run.to_string(), attempt);
        self.claimed.borrow().contains(&claim).then_some(None)
    }

    fn claim_ended(&self, run: &str, attempt: Attempt) {
        self.claimed.borrow_mut().remove(&(run.to_string(), attempt));
    }

    /// The workflows that the event triggered are runs of their own.
    fn publish(&self, _event: &EmittedEvent) -> Published {
        Published {
            unfinished_after: None,
            refused: Vec::new(),
        }
    }

    fn receive(&self, _order: &NotificationOrder) -> Option<NotificationReport> {
        Some(NotificationReport::Delivered)
    }

    fn answer(&self, sender: &Store, run_id: &str, request: &RunRequest) -> Option<RunResponse> {
        if let RunRequest::Start { command, .. } = request {
            return Some(self.start_child(sender, command));
        }
        if let RunRequest::CancelChild { .. } = request {
            self.cancel_child(run_id);
        }
        if let RunRequest::HoldChild { held: true, .. } = request {
            self.hold_child(run_id);
        }
        Some(RunResponse::Done("{}".into()))
    }

    fn broken(&self, run: &str, what: String) {
        self.broken.borrow_mut().push(format!("{run}: {what}"));
    }

    fn committed(&self, run: &str, durable: &Durable, commit: &Commit, _writes: &[Write]) {
        if *commit != Commit::default() {
            self.commits.set(self.commits.get() + 1);
            let bytes = durable.store.borrow().bytes;
            let before = durable.counted_bytes.replace(bytes);
            self.rows_bytes
                .set((self.rows_bytes.get() + bytes).saturating_sub(before));
        }
        for (key, row) in &commit.run {
            if key.starts_with(GATE)
                && let Ok(gate) = serde_json::from_str::<GateState>(row)
                && gate.status == GateStatus::Open
            {
                self.gate_opened(run, &gate);
            }
        }
    }

    fn computed(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }
}

/// How much later than in the recording a call without an answer may end, if nothing was changed.
const SLACK_MS: u64 = 2_000;

/// How late an alarm may have rung. A later wake had another reason.
const LATE_MAX_MS: u64 = 10_000;
