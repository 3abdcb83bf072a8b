//! The most that one token can take at its node: time, time in front of a person, rows.
//!
//! Assumed are executors that report at their deadline or are silent until the grace after it, and people who let every gate wait
//! until its deadline and do not begin work again.

use crate::analysis::bounds::{Cost, UNBOUNDED};
use crate::analysis::called::{Called, CalledRun};
use crate::analysis::span::Span;
use crate::base::failure::FailureClass;
use crate::base::time::{Limit, MINUTE, SECOND};
use crate::definition::action::{ActionKind, ExecutionTimeoutPolicy};
use crate::definition::node::{Node, NodeKind, NodeRole};
use crate::definition::snapshot::Snapshot;
use crate::definition::step::{Step, StepAction, StepFailurePolicy};
use crate::definition::task::Dispatch;
use crate::definition::wait::{SleepLength, Wait};
use crate::definition::workflow::RunClock;
use crate::run::Settings;

/// What a message between two runs may take.
pub const MESSAGE_MS: u64 = SECOND;
/// After so many unclaimed rounds an attempt in the queue is given up.
const CLAIM_ROUNDS: u64 = 3;
/// The longest delay between attempts.
const RETRY_DELAY_MAX_MS: u64 = MINUTE;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeBounds {
    /// From its creation until it ends or waits at a join.
    pub time_ms: u64,
    /// The part of it in front of a person.
    pub person_ms: u64,
    /// The part of it in which the clock of the run runs.
    pub working_ms: u64,
    /// How often it comes to a person.
    pub stops: u64,
    /// The longest wait for one thing: an attempt, a gate, a signal, a delay.
    pub wait_ms: u64,
    pub cost: Cost,
    /// If everything goes well.
    pub happy: Cost,
}

pub struct NodeBound<'a> {
    pub snapshot: &'a Snapshot,
    pub settings: &'a Settings,
    pub called: &'a Called,
    /// Places that events are posted to.
    pub targets: u64,
    /// No attempt is counted for longer: the run has ended by then.
    pub run_ms: u64,
    /// The part of it in which attempts are looked after: not while the run is paused at the gate of its limit.
    pub watched_ms: u64,
}

/// Rows of a token that begins and ends: its own, names of the context, an inverse, the alarm.
const TOKEN_ROWS: u64 = 4;
/// Rows of an attempt: begun, claimed, ended, sent again, its warning, its record, its retry, alarms.
const ATTEMPT_ROWS: u64 = 9;
/// Rows of a gate: opened, decided or passed, with its token, the clock of the run, alarms.
const GATE_ROWS: u64 = 9;
/// Rows of a reminder.
const REMINDER_ROWS: u64 = 4;
/// Rows of the messages to and from a called run, in the calling one.
const CALL_ROWS: u64 = 8;
/// Rows of a notification: posted, delivered, the alarm, deleted.
const NOTIFICATION_ROWS: u64 = 5;
/// Events of a token, and of each attempt, that may be posted.
const TOKEN_EVENTS: u64 = 8;
const ATTEMPT_EVENTS: u64 = 5;

impl NodeBound<'_> {
    pub fn of(&self, node: usize) -> NodeBounds {
        let found = &self.snapshot.workflow.nodes[node];
        let mut bounds = match &found.kind {
            NodeKind::PassThrough => NodeBounds::default(),
            NodeKind::Gate(gate) => {
                let waits = gate.timeout.millis().unwrap_or(UNBOUNDED);
                let reminders = gate.remind_at.len() as u64;
                NodeBounds {
                    time_ms: waits,
                    person_ms: waits,
                    working_ms: 0,
                    stops: 1,
                    wait_ms: waits,
                    cost: rows(GATE_ROWS + REMINDER_ROWS * reminders).plus(published(2)),
                    happy: rows(3).plus(published(1)),
                }
            }
            NodeKind::Wait(wait) => {
                let waits = self.wait_ms(wait);
                NodeBounds {
                    time_ms: waits,
                    working_ms: waits,
                    wait_ms: waits,
                    cost: rows(6).plus(published(2)),
                    happy: rows(1),
                    ..NodeBounds::default()
                }
            }
            NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => {
                match self.snapshot.call_of(node) {
                    Some(_) => self.call(node),
                    None => self.task(node),
                }
            }
        };
        let written = found.output_mapping.as_ref().map_or(1, Vec::len) as u64;
        let of_events = NOTIFICATION_ROWS * self.targets;
        bounds.cost = bounds.cost.plus(Cost {
            tokens: 1,
            rows: TOKEN_ROWS + written + of_events * TOKEN_EVENTS,
            ..Cost::default()
        });
        bounds.happy = bounds.happy.plus(Cost {
            tokens: 1,
            rows: 1,
            ..Cost::default()
        });
        bounds
    }

    fn wait_ms(&self, wait: &Wait) -> u64 {
        match wait {
            Wait::Sleep(SleepLength::Millis(millis)) => *millis,
            Wait::Sleep(SleepLength::Computed(_)) => self.settings.timeout_max_ms,
            // How far away the moment is depends on when the run starts.
            Wait::Until(_) => UNBOUNDED,
            Wait::Signal { timeout, .. } => timeout.millis().unwrap_or(UNBOUNDED),
        }
    }

    /// Runs inside of a decision.
    pub fn is_inline(&self, node: usize) -> bool {
        let Some(task) = self.snapshot.task_of(node) else {
            return false;
        };
        let dispatch = self.snapshot.workflow.nodes[node]
            .dispatch
            .unwrap_or(task.task.dispatch);
        match dispatch {
            Dispatch::Auto | Dispatch::Inline => task.is_pure,
            Dispatch::Direct | Dispatch::Queue => false,
        }
    }

    fn task(&self, node: usize) -> NodeBounds {
        let found = &self.snapshot.workflow.nodes[node];
        let escalation = self.escalation(node);
        if self.is_inline(node) {
            return NodeBounds {
                cost: rows(6),
                ..NodeBounds::default()
            }
            .with(escalation);
        }
        let action = self
            .snapshot
            .task_of(node)
            .and_then(|task| task.task.only_action());
        let action = action.filter(|action| action.is_async());
        let limit = self.snapshot.execution_limit(node).limit;
        let own_ms = limit.millis().unwrap_or_else(|| self.calls_ms(node));
        // An adaptive limit without enough samples is none.
        let is_bounded_by_node = match found.adaptive {
            true => limit.millis().is_some(),
            false => found.timeout != Limit::Unset,
        };
        let callback_ms = match action {
            Some(action) if !is_bounded_by_node => {
                let of_action = action.timeout.millis().unwrap_or(0);
                of_action
                    .max(self.settings.suspend_ms)
                    .saturating_add(self.settings.grace_ms)
            }
            Some(_) | None => 0,
        };
        let may_be_queued = self.may_be_queued(node);
        let queued_ms = match may_be_queued {
            true => CLAIM_ROUNDS.saturating_mul(self.settings.claim_ms),
            false => 0,
        };
        let open_ms = own_ms.saturating_add(self.settings.grace_ms);
        let attempt_ms = open_ms.saturating_add(callback_ms).saturating_add(queued_ms);
        let attempts = self.attempts(node);
        let time_ms = attempt_ms
            .saturating_mul(attempts)
            .saturating_add(self.delays_ms(attempts));
        // The alarm looks after an open call; an attempt in the queue may also be called directly.
        let checks = how_often(open_ms.min(self.watched_ms), self.settings.watch_ms);
        // A claimed attempt saves its progress and its heartbeats.
        let heartbeats = match may_be_queued {
            true => how_often(attempt_ms.min(self.run_ms), self.settings.progress_save_ms)
                .saturating_mul(2)
                .saturating_add(CLAIM_ROUNDS * 4),
            false => 0,
        };
        let checks = checks.max(heartbeats);
        let attempt = Cost {
            rows: ATTEMPT_ROWS
                .saturating_add(checks)
                .saturating_add(NOTIFICATION_ROWS * self.targets * ATTEMPT_EVENTS),
            open_ms: open_ms.min(self.run_ms),
            calls: 1,
            checks,
            ..Cost::default()
        };
        NodeBounds {
            time_ms,
            working_ms: time_ms,
            wait_ms: attempt_ms.max(self.longest_delay_ms(attempts)),
            cost: attempt.times(attempts),
            happy: Cost {
                rows: 1,
                open_ms: HAPPY_CALL_MS,
                calls: 1,
                ..Cost::default()
            },
            ..NodeBounds::default()
        }
        .with(escalation)
    }

    fn call(&self, node: usize) -> NodeBounds {
        let escalation = self.escalation(node);
        let limit_ms = self.snapshot.execution_limit(node).limit.millis();
        let called = self.called.of_node(node);
        let workflow = &self.snapshot.workflow;
        let CalledRun {
            time_ms,
            unpaused_ms: _,
            person_ms,
            working_ms,
            stops,
            wait_ms,
            cost,
            happy,
        } = called.run(limit_ms, workflow.timeouts.inherit_budget);
        let mut attempt_ms = time_ms.saturating_add(2 * MESSAGE_MS);
        if let Some(limit_ms) = limit_ms {
            let stopped_ms = match workflow.clock {
                RunClock::StopsAtGates => person_ms,
                RunClock::Runs => 0,
            };
            let ends_ms = limit_ms
                .saturating_add(self.settings.grace_ms)
                .saturating_add(stopped_ms);
            attempt_ms = attempt_ms.min(ends_ms.saturating_add(2 * MESSAGE_MS));
        }
        let attempts = match limit_ms {
            Some(_) => self.attempts(node),
            None => 1,
        };
        let attempt = Cost {
            rows: CALL_ROWS + ATTEMPT_ROWS + NOTIFICATION_ROWS * self.targets * ATTEMPT_EVENTS,
            publications: 4,
            ..Cost::default()
        };
        let time_ms = attempt_ms
            .saturating_mul(attempts)
            .saturating_add(self.delays_ms(attempts));
        // Until it is known here that the child waits, or goes on, the clock runs.
        let messages_ms = stops.saturating_add(1).saturating_mul(2 * MESSAGE_MS);
        let working_ms = match person_ms {
            0 => time_ms,
            _waits => working_ms
                .saturating_add(messages_ms)
                .saturating_mul(attempts)
                .saturating_add(self.delays_ms(attempts))
                .min(time_ms),
        };
        NodeBounds {
            time_ms,
            person_ms: person_ms.min(attempt_ms).saturating_mul(attempts),
            working_ms,
            stops: stops.saturating_mul(attempts),
            wait_ms: wait_ms
                .saturating_add(2 * MESSAGE_MS)
                .max(self.longest_delay_ms(attempts)),
            cost: attempt.plus(cost).times(attempts),
            happy: happy.plus(rows(3)),
        }
        .with(escalation)
    }

    fn attempts(&self, node: usize) -> u64 {
        let found = &self.snapshot.workflow.nodes[node];
        let may_be_reaped = self.may_be_queued(node);
        let policy = policy_of_timeout(self.snapshot, node, may_be_reaped);
        let retries = match (policy, found.role) {
            (Some(ExecutionTimeoutPolicy::Retry), _) => found.max_retries,
            // A compensation or an end handler whose consumer is silent is done again.
            (None, NodeRole::Compensation { .. } | NodeRole::EndHandler) if may_be_reaped => {
                found.max_retries
            }
            (None | Some(ExecutionTimeoutPolicy::Fail), _) => 0,
        };
        1 + u64::from(retries)
    }

    fn may_be_queued(&self, node: usize) -> bool {
        let of_task = self.snapshot.task_of(node).map(|task| task.task.dispatch);
        let dispatch = self.snapshot.workflow.nodes[node].dispatch.or(of_task);
        self.settings.queue && dispatch != Some(Dispatch::Direct)
    }

    /// What all steps of an attempt without a limit take together, with their calls and the waits between them.
    fn calls_ms(&self, node: usize) -> u64 {
        let Some(task) = self.snapshot.task_of(node).map(|task| &task.task) else {
            return UNBOUNDED;
        };
        // How long an executor needs for steps without calls is not known.
        if task.calls() == 0 {
            return UNBOUNDED;
        }
        let steps = task.steps.iter().map(|step| self.step_ms(step));
        let pass_ms = steps.fold(0, u64::saturating_add);
        let repeats = |step: &&Step| step.on_failure == StepFailurePolicy::Retry;
        match task.steps.iter().find(repeats) {
            Some(step) => task.rounds_ms(step, pass_ms),
            None => pass_ms,
        }
    }

    fn step_ms(&self, step: &Step) -> u64 {
        let StepAction::Inline(action) = &step.action else {
            return UNBOUNDED;
        };
        if !action.makes_calls() {
            return match action.kind {
                ActionKind::WorkflowCall(_) => UNBOUNDED,
                ActionKind::UpdateContext(_)
                | ActionKind::Assert(_)
                | ActionKind::EmitEvent(_)
                | ActionKind::HttpRequest(_)
                | ActionKind::McpTool(_)
                | ActionKind::ServiceCall(_)
                | ActionKind::LlmCall(_)
                | ActionKind::Shell(_) => 0,
            };
        }
        let call_ms = self.snapshot.call_limit(step, action).millis();
        let calls_ms = call_ms.map_or(UNBOUNDED, |call_ms| {
            let time = action.call_time(call_ms);
            let calls_ms = call_ms.saturating_mul(u64::from(time.calls));
            calls_ms.saturating_add(time.waits_ms)
        });
        let total_ms = action.retry.total_timeout.millis();
        calls_ms.min(total_ms.unwrap_or(UNBOUNDED))
    }

    /// The delay before each retry of so many attempts.
    fn delays(&self, attempts: u64) -> impl Iterator<Item = u64> {
        let first_ms = self.settings.retry_delay_ms;
        let most_ms = RETRY_DELAY_MAX_MS.max(first_ms);
        (1..attempts).map(move |retry| first_ms.saturating_mul(1 << (retry - 1).min(16)).min(most_ms))
    }

    fn delays_ms(&self, attempts: u64) -> u64 {
        self.delays(attempts).fold(0, u64::saturating_add)
    }

    fn longest_delay_ms(&self, attempts: u64) -> u64 {
        self.delays(attempts).max().unwrap_or(0)
    }

    /// The gate of a failure that a person decides about.
    fn escalation(&self, node: usize) -> NodeBounds {
        let escalates = |class: &FailureClass| self.snapshot.escalates(node, *class);
        if !FailureClass::ALL.iter().any(escalates) {
            return NodeBounds::default();
        }
        let waits = self.snapshot.workflow.gate.timeout_ms;
        NodeBounds {
            time_ms: waits,
            person_ms: waits,
            working_ms: 0,
            stops: 1,
            wait_ms: waits,
            cost: rows(GATE_ROWS).plus(published(2)),
            happy: Cost::default(),
        }
    }
}

/// A call that goes well, for the price of the happy path.
const HAPPY_CALL_MS: u64 = 100;

impl NodeBounds {
    pub fn span(&self) -> Span {
        Span {
            time_ms: self.time_ms,
            person_ms: self.person_ms,
            working_ms: self.working_ms,
            stops: self.stops,
        }
    }

    fn with(self, other: NodeBounds) -> NodeBounds {
        NodeBounds {
            time_ms: self.time_ms.saturating_add(other.time_ms),
            person_ms: self.person_ms.saturating_add(other.person_ms),
            working_ms: self.working_ms.saturating_add(other.working_ms),
            stops: self.stops.saturating_add(other.stops),
            wait_ms: self.wait_ms.max(other.wait_ms),
            cost: self.cost.plus(other.cost),
            happy: self.happy.plus(other.happy),
        }
    }
}

/// What follows when an attempt takes too long. The executor itself makes a call again that timed out, so the policy of the action
/// counts only where it cannot, or where its silence ends the attempt.
pub fn policy_of_timeout(
    snapshot: &Snapshot,
    node: usize,
    may_be_reaped: bool,
) -> Option<ExecutionTimeoutPolicy> {
    let of_node = snapshot.workflow.nodes[node].on_timeout;
    of_node.or_else(|| {
        let action = snapshot.task_of(node)?.task.only_action()?;
        let limit_ms = snapshot.execution_limit(node).limit.millis();
        let is_of_attempt =
            may_be_reaped || action.is_async() || snapshot.is_limit_of_one_call(node, limit_ms);
        action.on_timeout.filter(|_| is_of_attempt)
    })
}

/// How often something happens in a time that may have no bound.
fn how_often(millis: u64, every_ms: u64) -> u64 {
    match millis {
        UNBOUNDED => UNBOUNDED,
        _known => millis / every_ms.max(1),
    }
}

pub fn rows(rows: u64) -> Cost {
    Cost {
        rows,
        ..Cost::default()
    }
}

fn published(publications: u64) -> Cost {
    Cost {
        publications,
        ..Cost::default()
    }
}

/// Whether the node waits for something that has no end of its own, as a sentence about it.
pub fn without_end(node: &Node, bounds: &NodeBounds) -> Option<String> {
    if bounds.time_ms != UNBOUNDED {
        return None;
    }
    let id = &node.id;
    Some(match &node.kind {
        NodeKind::Gate(_) => format!("gate \"{id}\" waits for a person without a timeout"),
        NodeKind::Wait(wait) => match **wait {
            Wait::Signal { .. } => format!("node \"{id}\" waits for a signal without a timeout"),
            Wait::Sleep(_) | Wait::Until(_) => {
                format!("node \"{id}\" waits until a moment that is known only when the run comes there")
            }
        },
        NodeKind::Workflow { .. } => format!("the workflow that node \"{id}\" calls may not end"),
        NodeKind::Task { .. } | NodeKind::Action { .. } => {
            format!("an attempt at node \"{id}\" has no timeout")
        }
        NodeKind::PassThrough => return None,
    })
}
