//! Properties that every decision of any run must have, whatever its workflow is.

use std::collections::BTreeSet;

use crate::api::recovery;
use crate::base::ordered::set_of;
use crate::base::time::Millis;
use crate::definition::fan::{BranchFailurePolicy, Strategy};
use crate::host::LiveEvents;
use crate::run::{
    Command, Decision, Event, GateStatus, Instance, InstanceId, Lane, Message, PauseReason, Run,
    RunEventKind, RunStatus, Token, TokenId, TokenStatus, Write, invocations,
};
use crate::simulate::store::Store;

/// What does not hold, if something does not.
pub type Check = Result<(), String>;

/// As `assert!`, but what does not hold is returned: a run of a caller's workflow must not stop the process. The engine's own
/// wasm names the property only, because the code that writes whole runs as text is large; natively the same seed says more.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(match cfg!(feature = "engine") {
                true => stringify!($holds).to_string(),
                false => format!($($message)+),
            });
        }
    };
}

macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            return Err(match cfg!(feature = "engine") {
                true => stringify!($found).to_string(),
                false => {
                    let what = format!($($message)+);
                    format!("{found:?} instead of {expected:?}: {what}")
                }
            });
        }
    };
}

pub(crate) use {ensure, ensure_eq};

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
    pub fn check(&self) -> Check {
        self.check_pause_reasons()?;
        self.check_nothing_begins_during_a_pause()?;
        self.check_wake()?;
        self.check_calls()?;
        self.check_children_are_cancelled()?;
        self.check_nothing_reopened_is_lost()?;
        self.check_all_that_was_interrupted_goes_on()?;
        self.check_no_join_is_left()?;
        self.check_names()?;
        self.check_progress()?;
        Ok(())
    }

    /// Only an executing token has progress. That of a call costs no row.
    fn check_progress(&self) -> Check {
        for token in self.run.live_tokens().filter(|token| token.progress.is_some()) {
            ensure_eq!(token.status, TokenStatus::Executing, "{token:?}");
        }
        for command in self.decision.commands() {
            if let Command::PublishProgress { token, epoch } = command {
                ensure!(
                    self.is_progress_of(*token, *epoch),
                    "{command:?} after {:?}",
                    self.event
                );
            }
        }
        for write in self.decision.writes() {
            let Write::SaveToken(token) = write else { continue };
            ensure!(
                token.status == TokenStatus::Executing || token.progress.is_none(),
                "{token:?}"
            );
            let is_direct = token.lane == Some(Lane::Direct) && token.status == TokenStatus::Executing;
            ensure!(
                !(is_direct && self.is_progress_of(token.id, token.epoch)),
                "a row was written for the progress of a call: {token:?}"
            );
        }
        Ok(())
    }

    fn is_progress_of(&self, token: TokenId, epoch: u64) -> bool {
        matches!(self.event, Event::Heartbeat { token: of, epoch: at, progress: Some(_) }
            if *of == token.to_string() && *at == epoch)
    }

    /// An event of the run names the caller that asked for it, and no other. Children have the name of the first start.
    fn check_names(&self) -> Check {
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
            ensure!(
                by.is_none() || by == caller || was_ending,
                "{event:?} after {:?}",
                self.event
            );
            // These follow from a request only.
            let is_asked_for = match event.kind {
                RunEventKind::RunExtended | RunEventKind::RunRetried | RunEventKind::RunRestarted => true,
                _other => false,
            };
            ensure!(!is_asked_for || by == caller, "{event:?} after {:?}", self.event);
        }
        Ok(())
    }

    /// Pause reasons, status and the gate of the whole run agree.
    fn check_pause_reasons(&self) -> Check {
        let header = &self.run.header;
        let paused = header.paused_at.is_some();
        ensure_eq!(paused, !header.pause_reasons.is_empty(), "{header:?}");
        ensure_eq!(paused, header.status == RunStatus::Paused, "{header:?}");
        let at_gate = header
            .pause_reasons
            .iter()
            .filter(|holder| matches!(holder, PauseReason::WorkflowTimeout | PauseReason::Escalation))
            .count();
        let open = self
            .run
            .gates()
            .filter(|gate| gate.token_id.is_none() && gate.status == GateStatus::Open);
        ensure_eq!(at_gate, open.count(), "gates of the run: {header:?}");
        ensure_eq!(at_gate == 1, self.run.gate_of_run().is_some(), "{header:?}");
        Ok(())
    }

    fn check_nothing_begins_during_a_pause(&self) -> Check {
        if self.run.header.paused_at.is_none() {
            return Ok(());
        }
        for command in self.decision.commands() {
            match command {
                Command::DispatchTask(order) | Command::RespondToClaim(order) => {
                    return Err(format!("{} was ordered during a pause", order.token));
                }
                Command::EnqueueAttempt { token, .. } => {
                    return Err(format!("{token} was enqueued during a pause"));
                }
                _others => {}
            }
        }
        for write in self.decision.writes() {
            if let Some(Message::StartChild { run_id, .. }) = write.message() {
                return Err(format!("{run_id} was started during a pause"));
            }
        }
        Ok(())
    }

    /// After a wake nothing is due that was not too much for one.
    fn check_wake(&self) -> Check {
        let header = &self.run.header;
        if !is_wake(self.event) || header.status.is_terminal() {
            return Ok(());
        }
        let Some(next) = self.run.next_deadline() else {
            return Ok(());
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
        ensure!(
            next > self.now || too_many || full || goes_on,
            "due at {next} after the wake at {}: {:?}",
            self.now,
            self.run
        );
        let alarm_at = self.run.alarm_at();
        ensure!(alarm_at.is_some_and(|at| at <= next), "{alarm_at:?}");
        Ok(())
    }

    fn check_calls(&self) -> Check {
        let calls = calls_of(self.decision.commands());
        ensure!(
            calls <= self.remaining_calls,
            "{calls} calls where {} remain",
            self.remaining_calls
        );
        // With room for a call something happens in every wake that finds somebody waiting for it.
        let is_wake = is_wake(self.event) && self.remaining_calls > 0;
        let waits = self.run.next_deadline().is_some_and(|at| at <= self.now);
        ensure!(
            !(is_wake && waits && self.decision.is_empty()),
            "nothing happened"
        );
        Ok(())
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
    fn check_children_are_cancelled(&self) -> Check {
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        let is_decided = events.any(|event| event.kind == RunEventKind::RunCompensating);
        if !is_decided && !self.decision.commands().contains(&Command::NotifyRunEnded) {
            return Ok(());
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
            ensure!(
                is_cancelled || !has_child,
                "the child of {} was not cancelled: {:?}",
                token.id,
                self.decision
            );
        }
        Ok(())
    }

    /// Tokens wait at joins for tokens that work: once all wait, every join has fired or failed.
    fn check_no_join_is_left(&self) -> Check {
        let header = &self.run.header;
        if header.status.is_terminal() || header.ending.is_some() || header.paused_at.is_some() {
            return Ok(());
        }
        let mut live = self.run.live_tokens().peekable();
        let all_wait =
            live.peek().is_some() && live.all(|token| token.status == TokenStatus::WaitingForSiblings);
        ensure!(!all_wait, "no token will arrive any more: {:?}", self.run);
        Ok(())
    }

    /// When a run is brought back every token that its end interrupted has a successor.
    fn check_all_that_was_interrupted_goes_on(&self) -> Check {
        let mut events = self.decision.writes().iter().filter_map(Write::event);
        let is_retried = events.any(|event| event.kind == RunEventKind::RunRetried);
        let header = &self.run.header;
        // At one of its limits the run ends before it has created all of them.
        if !is_retried || header.status.is_terminal() || header.ending.is_some() {
            return Ok(());
        }
        let end = self.before.header().map(|header| header.ends);
        let past = self.before.past().expect("rows can be read");
        for token in &past.tokens {
            if token.interrupted.map(|it| it.end) != end {
                continue;
            }
            let goes_on =
                |write: &Write| matches!(write, Write::SaveToken(next) if next.parent == Some(token.id));
            ensure!(
                self.decision.writes().iter().any(goes_on),
                "{} was interrupted and does not go on: {:?}",
                token.id,
                self.decision
            );
        }
        Ok(())
    }

    /// When a run is brought back every branch of an instance that is open again goes on, has arrived, had come to the
    /// end of its path, or is one that the joins can do without.
    fn check_nothing_reopened_is_lost(&self) -> Check {
        let retried =
            |write: &Write| matches!(write, Write::SaveEvent(it) if it.kind == RunEventKind::RunRetried);
        if !self.decision.writes().iter().any(retried) {
            return Ok(());
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
            return Ok(());
        }
        // Also those that a join has closed in this very decision, because it failed again.
        let closed = self.decision.writes().iter().filter_map(|write| match write {
            Write::SaveInstance(instance) if instance.is_closed() => Some(&**instance),
            _other => None,
        });
        let reopened: Vec<&Instance> = self.run.instances().chain(closed).collect();
        let inner: BTreeSet<(InstanceId, u32)> = set_of(
            reopened
                .iter()
                .filter_map(|inner| inner.parent.as_ref().map(|it| (it.instance, it.index))),
        );
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
                ensure!(
                    goes_on || at_its_end,
                    "branch {index} of {instance:?} is lost: {last:?}"
                );
            }
        }
        Ok(())
    }
}

fn is_wake(event: &Event) -> bool {
    matches!(event, Event::Woken { .. } | Event::AlarmFired { .. })
}

/// What clients that watch a run get is what `/events` shows.
pub fn check_published_events(run: &str, store: &Store, events: &LiveEvents) -> Check {
    let stored = store.history(events.after).into_iter();
    let stored = stored.map(|event| {
        let (seq, kind) = (event.seq, event.kind.name());
        format!("{seq} {kind} {}", recovery::event(run, event))
    });
    let stored: Vec<String> = stored.collect();
    ensure_eq!(events.lines, stored.join("\n"), "{run}: after {}", events.after);
    ensure_eq!(
        events.last,
        events.after + stored.len() as u64,
        "{run}: the last number"
    );
    let ended_at = store.header().and_then(|header| header.ended_at);
    ensure_eq!(events.has_ended, ended_at.is_some(), "{run}: its end");
    Ok(())
}
