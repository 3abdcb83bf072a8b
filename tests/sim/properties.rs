//! Properties that every decision of a run must have, and the time by which a run must end that is left alone.

use std::collections::BTreeSet;

use curfew::base::time::{MINUTE, Millis};
use curfew::definition::fan::{BranchFailurePolicy, Strategy};
use curfew::protocol::run::RunRequest;
use curfew::run::{
    Command, Decision, Event, GateStatus, Instance, InstanceId, Message, PauseReason, Run, RunEvent,
    RunEventKind, RunStatus, Token, TokenStatus, Write, invocations,
};
use curfew::storage::rows::TokenRow;

use super::environment::Environment;
use super::running_time::may_stand_forever;
use super::simulated_run::SimulatedRun;
use super::simulation::{STARTER, Simulation};
use super::store::Store;

/// A decision with everything that it is checked against.
pub struct CheckedDecision<'a> {
    /// The rows before it.
    pub before: &'a Store,
    /// The run after it.
    pub run: &'a Run,
    pub event: &'a Event,
    pub decision: &'a Decision,
    pub now: Millis,
    /// Executor calls that it was allowed to make.
    pub remaining_calls: u32,
    /// Children whose start was sent.
    pub starts_sent: &'a BTreeSet<String>,
}

/// The calls to executors it takes to perform `commands`.
pub fn calls_of(commands: &[Command]) -> u32 {
    let orders = commands.iter().filter_map(|command| match command {
        Command::DispatchTask(order) => Some(order.clone()),
        _others => None,
    });
    let is_notification = |command: &&Command| matches!(command, Command::SendNotification(_));
    let notifications = commands.iter().filter(is_notification).count();
    (invocations(orders.collect()).len() + notifications) as u32
}

impl CheckedDecision<'_> {
    pub fn check(&self) {
        self.check_pause_reasons();
        self.check_nothing_begins_during_a_pause();
        self.check_wake();
        self.check_calls();
        self.check_children_are_cancelled();
        self.check_nothing_reopened_is_lost();
        self.check_all_that_was_interrupted_goes_on();
        self.check_no_join_is_left();
        self.check_names();
        self.check_progress();
    }

    /// An event of the run names the caller that asked for it, and no other. Children have the name of the first start.
    fn check_names(&self) {
        let caller = match self.event {
            Event::CancelRequested { by, .. }
            | Event::PauseRequested { by }
            | Event::SignalReceived { by, .. }
            | Event::ResumeRequested { by }
            | Event::ExtendRequested { by, .. }
            | Event::RetryRequested { by, .. }
            | Event::RestartRequested { by, .. } => by.as_deref(),
            Event::GateDecided { decision, .. } => decision.by.as_deref(),
            _other => None,
        };
        for event in self.decision.writes().iter().filter_map(Write::event) {
            let by = event.fields.get("by").and_then(|by| by.as_str());
            // The event of an end that was decided before names the caller of then.
            let was_ending = self.before.header().is_some_and(|header| header.ending.is_some());
            assert!(
                by.is_none() || by == caller || was_ending,
                "{event:?} after {:?}",
                self.event
            );
            // These follow from a request only.
            let is_asked_for = match event.kind {
                RunEventKind::RunExtended | RunEventKind::RunRetried | RunEventKind::RunRestarted => true,
                _other => false,
            };
            assert!(!is_asked_for || by == caller, "{event:?} after {:?}", self.event);
        }
        assert_eq!(self.run.header.started_by.as_deref(), Some(STARTER));
    }

    /// Pause reasons, status and the gate of the whole run agree.
    fn check_pause_reasons(&self) {
        let header = &self.run.header;
        let paused = header.paused_at.is_some();
        assert_eq!(paused, !header.pause_reasons.is_empty(), "{header:?}");
        assert_eq!(paused, header.status == RunStatus::Paused, "{header:?}");
        let at_gate = header
            .pause_reasons
            .iter()
            .filter(|holder| matches!(holder, PauseReason::WorkflowTimeout | PauseReason::Escalation))
            .count();
        let open = self
            .run
            .gates()
            .filter(|gate| gate.token_id.is_none() && gate.status == GateStatus::Open);
        assert_eq!(at_gate, open.count(), "gates of the run: {header:?}");
        assert_eq!(at_gate == 1, self.run.gate_of_run().is_some(), "{header:?}");
    }

    fn check_nothing_begins_during_a_pause(&self) {
        if self.run.header.paused_at.is_none() {
            return;
        }
        for command in self.decision.commands() {
            match command {
                Command::DispatchTask(order) | Command::RespondToClaim(order) => {
                    panic!("{} was ordered during a pause", order.token)
                }
                Command::EnqueueAttempt { token, .. } => panic!("{token} was rung for during a pause"),
                _others => {}
            }
        }
        for write in self.decision.writes() {
            if let Some(Message::StartChild { run_id, .. }) = write.message() {
                panic!("{run_id} was started during a pause");
            }
        }
    }

    /// After a wake nothing is due that was not too much for one.
    fn check_wake(&self) {
        let header = &self.run.header;
        if !is_wake(self.event) || header.status.is_terminal() {
            return;
        }
        let Some(next) = self.run.next_deadline() else {
            return;
        };
        let saved = self
            .decision
            .writes()
            .iter()
            .filter(|write| matches!(write, Write::SaveToken(_)));
        // What it ended counts as well: a loop may bear what is due at once.
        let too_many =
            self.run.live_tokens().count() + self.run.instances().count() > 100 || saved.count() > 100;
        // One that found no room waits for the next wake, and holds up what comes behind it.
        let is_deferred = |token: &Token| {
            token.status == TokenStatus::Pending && token.watch_at.is_some_and(|at| at <= self.now)
        };
        // Nor does an event or a notification go out in a turn without calls.
        let has_calls = calls_of(self.decision.commands()) < self.remaining_calls;
        let full = self.run.live_tokens().any(is_deferred) || !has_calls;
        // A clock that goes on in this wake may bring the warning of its limit, which the next wake finds.
        let goes_on = self
            .before
            .header()
            .is_some_and(|before| before.stopped_at.is_some())
            && self.run.header.stopped_at.is_none();
        assert!(
            next > self.now || too_many || full || goes_on,
            "due at {next} after the wake at {}: {:?}",
            self.now,
            self.run
        );
        let alarm_at = self.run.alarm_at();
        assert!(alarm_at.is_some_and(|at| at <= next), "{alarm_at:?}");
    }

    fn check_calls(&self) {
        let calls = calls_of(self.decision.commands());
        assert!(
            calls <= self.remaining_calls,
            "{calls} calls where {} remain",
            self.remaining_calls
        );
        // With room for a call something happens in every wake that finds somebody waiting for it.
        let is_wake = is_wake(self.event) && self.remaining_calls > 0;
        let waits = self.run.next_deadline().is_some_and(|at| at <= self.now);
        assert!(
            !(is_wake && waits && self.decision.is_empty()),
            "nothing happened"
        );
    }

    /// A join has gone on with the branches that were there at its deadline.
    fn has_join_gone_on(&self) -> bool {
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        events.any(|event| {
            event.kind == RunEventKind::SyncTimedOut
                && event.fields.get("policy_applied") == Some(&"proceed_with_available".into())
        })
    }

    /// A run that ends, or decides to, cancels every child that a token still waited for.
    fn check_children_are_cancelled(&self) {
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        let is_decided = events.any(|event| event.kind == RunEventKind::RunCompensating);
        if !is_decided && !self.decision.commands().contains(&Command::NotifyRunEnded) {
            return;
        }
        let ended = self.decision.writes().iter().filter_map(|write| match write {
            Write::SaveToken(token) if token.status.is_terminal() => Some(&**token),
            _other => None,
        });
        let reported = match self.event {
            Event::ChildEnded(report) => Some(report.token_id.clone()),
            _other => None,
        };
        for token in ended {
            let waited = self.before.status_of(token.id.0) == Some(TokenStatus::WaitingForSubworkflow);
            // An abandoned child goes on without its parent, and so may that of a branch that its join did not wait for.
            let is_abandoned = match token.reason.as_deref() {
                Some("abandoned") => true,
                Some("sync_timeout") => self.has_join_gone_on(),
                _other => false,
            };
            if !waited || is_abandoned || reported == Some(token.id.to_string()) {
                continue;
            }
            // The child of the attempt that waited: each attempt has its own, and a start may be retracted unsent.
            let child = self.run.child_id(&Token {
                epoch: self.before.epoch_of(token.id.0),
                ..(*token).clone()
            });
            let has_child = self.starts_sent.contains(&child);
            let mut messages = self.decision.writes().iter().filter_map(Write::message);
            let is_cancelled = messages
                .any(|message| matches!(message, Message::CancelChild { run_id, .. } if *run_id == child));
            assert!(
                is_cancelled || !has_child,
                "the child of {} was not cancelled: {:?}",
                token.id,
                self.decision
            );
        }
    }

    /// Tokens wait at joins for tokens that work: once all wait, every join has fired or failed.
    fn check_no_join_is_left(&self) {
        let header = &self.run.header;
        if header.status.is_terminal() || header.ending.is_some() || header.paused_at.is_some() {
            return;
        }
        let mut live = self.run.live_tokens().peekable();
        let all_wait =
            live.peek().is_some() && live.all(|token| token.status == TokenStatus::WaitingForSiblings);
        assert!(!all_wait, "no token will arrive any more: {:?}", self.run);
    }

    /// When a run is brought back every token that its end interrupted has a successor.
    fn check_all_that_was_interrupted_goes_on(&self) {
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        let is_retried = events.any(|event| event.kind == RunEventKind::RunRetried);
        let header = &self.run.header;
        // At one of its limits the run ends before it has created all of them.
        if !is_retried || header.status.is_terminal() || header.ending.is_some() {
            return;
        }
        let end = self.before.header().map(|header| header.ends);
        let past = self.before.past().expect("rows can be read");
        for token in &past.tokens {
            if token.interrupted.map(|it| it.end) != end {
                continue;
            }
            let goes_on =
                |write: &Write| matches!(write, Write::SaveToken(next) if next.parent == Some(token.id));
            assert!(
                self.decision.writes().iter().any(goes_on),
                "{} was interrupted and does not go on: {:?}",
                token.id,
                self.decision
            );
        }
    }

    /// When a run is brought back every branch of an instance that is open again goes on, has arrived, had come to the
    /// end of its path, or is one that the joins can do without.
    fn check_nothing_reopened_is_lost(&self) {
        let retried =
            |write: &Write| matches!(write, Write::SaveEvent(it) if it.kind == RunEventKind::RunRetried);
        if !self.decision.writes().iter().any(retried) {
            return;
        }
        // Also those that came to their end in this very decision.
        let saved = self.decision.writes().iter().filter_map(|write| match write {
            Write::SaveToken(token) => Some(&**token),
            _other => None,
        });
        let live: Vec<&Token> = self.run.live_tokens().chain(saved).collect();
        let past = self.before.past().expect("rows can be read");
        // At one of its limits the run ends before it has created all of them.
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        if events.any(|event| event.kind == RunEventKind::LimitExceeded) {
            return;
        }
        // Also those that a join has closed in this very decision, because it failed again.
        let closed = self.decision.writes().iter().filter_map(|write| match write {
            Write::SaveInstance(instance) if instance.is_closed() => Some(&**instance),
            _other => None,
        });
        let reopened: Vec<&Instance> = self.run.instances().chain(closed).collect();
        let inner: BTreeSet<(InstanceId, u32)> = reopened
            .iter()
            .filter_map(|inner| inner.parent.as_ref().map(|it| (it.instance, it.index)))
            .collect();
        // A join that has fired has decided about the branches it went on without.
        for instance in reopened.into_iter().filter(|instance| !instance.has_fired()) {
            let workflow = &self.run.snapshot().workflow;
            let needs_all = |transition: usize| {
                let join = workflow.transitions[transition].synchronization.as_ref();
                join.is_some_and(|join| {
                    join.strategy == Strategy::All && join.on_branch_failure == BranchFailurePolicy::Fail
                })
            };
            let joins: Vec<usize> = self.run.snapshot().joins_of(&instance.group).collect();
            if joins.is_empty() || !joins.into_iter().all(needs_all) {
                continue;
            }
            for index in 0..instance.total {
                let place = (instance.id, index);
                let is_of = |token: &Token| {
                    let branch = token.branch.as_ref();
                    branch.is_some_and(|it| (it.instance, it.index) == place)
                };
                let goes_on = live.iter().any(|token| is_of(token)) || inner.contains(&place);
                let last = past.tokens.iter().filter(|token| token.branch == Some(place));
                let last = last.max_by_key(|token| (token.exit_order, token.id));
                let at_its_end = last.is_none_or(|token| token.status == TokenStatus::Completed);
                assert!(
                    goes_on || at_its_end,
                    "branch {index} of {instance:?} is lost: {last:?}"
                );
            }
        }
    }
}

/// How long after its limit and the time of its gate a run that is left alone may end: its alarm may have been late when the
/// faults stopped.
const SLACK_MS: u64 = 2 * MINUTE;
/// A run that is paused by another also waits for messages that are sent again.
const SLACK_OF_MESSAGES_MS: u64 = 25 * MINUTE;

impl Simulation {
    /// Stops all operators, if every run has a limit, and computes the time by which each run must have ended.
    pub(super) fn leave_alone(&mut self) {
        let open: Vec<String> = self
            .runs
            .iter()
            .filter(|(_, run)| run.is_open())
            .map(|(id, _)| id.clone())
            .collect();
        let longest = open.iter().map(|id| self.longest(id)).collect::<Option<Vec<_>>>();
        let Some(longest) = longest else { return };
        self.is_unattended = true;
        self.environment.outcome.borrow_mut().unattended += 1;
        let now = self.environment.now.get();
        self.ends_by = open
            .iter()
            .cloned()
            .zip(longest.into_iter().map(|millis| now + millis + SLACK_MS))
            .map(|(id, by)| {
                let standing_ms = self.standing_ms(&id);
                (id, (by, standing_ms))
            })
            .collect();
        self.forget_requests();
        for id in open {
            self.ask(&id, RunRequest::Resume);
        }
    }

    /// What is left of a run's limit and of its gate, and of the runs that it may be paused with.
    fn longest(&self, id: &str) -> Option<u64> {
        let run = &self.runs[id];
        let header = run.store().header()?;
        if may_stand_forever(&run.store().snapshot()) {
            return None;
        }
        let stopped_at = header.paused_at.or(header.stopped_at);
        let since = stopped_at.unwrap_or(self.environment.now.get());
        let left = header.timeout_at?.saturating_sub(since);
        let above = header.parent.as_ref().map(|parent| parent.run_id.as_str());
        let above = above.filter(|above| self.runs[*above].is_open());
        let rest = above.map_or(Some(0), |above| Some(self.longest(above)? + SLACK_OF_MESSAGES_MS))?;
        // A child that gets the rest of its parent's time has no more than that.
        Some(left + run.gate_ms() + run.ending_ms() + rest)
    }

    /// How long the clocks of a run and of those above it stood still at gates.
    fn standing_ms(&self, id: &str) -> u64 {
        let run = &self.runs[id];
        let own = run
            .durable
            .running_time
            .borrow()
            .standing_ms(self.environment.now.get());
        let parent = run.store().header().and_then(|header| header.parent);
        own + parent.map_or(0, |parent| self.standing_ms(&parent.run_id))
    }

    pub(super) fn check_ends(&self) {
        for (id, (by, standing_before)) in &self.ends_by {
            let ended_at = self.runs[id].store().header().and_then(|header| header.ended_at);
            let by = by + self.standing_ms(id) - standing_before;
            assert!(
                ended_at.is_some_and(|at| at <= by),
                "{id} was to end by {by} and ended at {ended_at:?}"
            );
        }
    }

    /// A paused run whose messages have all arrived has no child that goes on.
    pub(super) fn check_children_are_paused(&self) {
        for (id, run) in &self.runs {
            let has_outbox = || run.store().run.keys().any(|key| key.starts_with("outbox/"));
            if !run.is_open() || !run.is_paused() || has_outbox() {
                continue;
            }
            let waiting = TokenStatus::WaitingForSubworkflow.name();
            let store = run.store();
            for (token, (_, row)) in store.tokens.iter().filter(|(_, it)| it.0 == waiting) {
                let row: TokenRow = serde_json::from_str(row).expect("rows are JSON");
                let child = match row.epoch {
                    1 => format!("{id}~t{token}"),
                    epoch => format!("{id}~t{token}~{epoch}"),
                };
                let Some(child) = self.runs.get(&child).filter(|child| child.is_open()) else {
                    continue;
                };
                // A retried child has no parent any more.
                let has_parent = child.store().header().is_some_and(|header| header.ends == 0);
                assert!(
                    !has_parent || child.is_paused(),
                    "{id} is paused and the child of t{token} is not"
                );
            }
        }
    }
}

impl Environment {
    /// A report counts for the attempt it was given to and for no other; a child's for the token that called this child. A
    /// token that took another's place at a join has its output.
    pub fn check_answer(&self, id: &str, store: &Store, token: &Token) {
        let output = token.output.as_ref();
        let Some(attempt) = output.and_then(|output| output["attempt"].as_str()) else {
            return;
        };
        let tokens = &store.tokens;
        let mut owner = token.id.0;
        loop {
            let own = format!("{id}/t{owner}@{}", token.epoch);
            let child = match token.epoch {
                1 => format!("{id}~t{owner}/"),
                epoch => format!("{id}~t{owner}~{epoch}/"),
            };
            if attempt == own || attempt.starts_with(&child) {
                return;
            }
            let row = |id: u64| -> Option<TokenRow> {
                let (_, row) = tokens.get(&id)?;
                serde_json::from_str(row).ok()
            };
            let parent = row(owner).and_then(|row| row.parent);
            let taken = parent.filter(|parent| {
                let before = row(*parent).and_then(|row| row.arrival);
                before.is_some() && before == token.join.map(|it| it.arrival)
            });
            owner = taken.unwrap_or_else(|| panic!("{attempt} went to {own}"));
        }
    }

    pub fn count_event(&self, entry: &RunEvent) {
        let outcome = &mut *self.outcome.borrow_mut();
        outcome.timeouts += u64::from(entry.record.is_some());
        outcome.version_changes += u64::from(entry.fields.contains_key("from_version"));
        let count = match entry.kind {
            RunEventKind::DeadlineWarning => &mut outcome.warnings,
            RunEventKind::RunExtended => &mut outcome.extensions,
            RunEventKind::RunRetried => &mut outcome.retries,
            RunEventKind::DispatchRungAgain => &mut outcome.requeued,
            RunEventKind::AttemptReaped => &mut outcome.reaped,
            RunEventKind::RunPaused if entry.record.is_some() => &mut outcome.timeout_gates,
            _others => return,
        };
        *count += 1;
    }

    pub fn count_token(&self, token: &Token) {
        let outcome = &mut *self.outcome.borrow_mut();
        let is_unroutable = token.unroutable.as_ref().is_some_and(|it| !it.is_logged);
        outcome.unroutable += u64::from(is_unroutable);
        let code = token.error.as_ref().map(|error| error.code.as_str());
        outcome.no_route += u64::from(code == Some("no_route"));
        outcome.too_large += u64::from(code == Some("limit_exceeded"));
    }
}

impl SimulatedRun {
    fn gate_ms(&self) -> u64 {
        const WEEK_MS: u64 = 7 * 24 * 60 * MINUTE;
        let snapshot = self.store().snapshot();
        let gate = &snapshot["workflow"]["gate"]["timeout_ms"];
        gate.as_u64().unwrap_or(WEEK_MS)
    }
}

fn is_wake(event: &Event) -> bool {
    matches!(event, Event::Woken { .. } | Event::AlarmFired { .. })
}
