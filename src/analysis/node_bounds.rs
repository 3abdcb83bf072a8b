//! The most that one token can take at its node: time, time in front of a person, rows.
//!
//! Assumed are executors that report at their deadline or are silent until the grace after it, and people who let every gate wait
//! until its deadline and do not begin work again.

use crate::analysis::bounds::{Cost, UNBOUNDED};
use crate::analysis::called::{Called, CalledRun};
use crate::base::failure::FailureClass;
use crate::base::time::{Limit, MINUTE, SECOND};
use crate::definition::action::ExecutionTimeoutPolicy;
use crate::definition::node::{Node, NodeKind, NodeRole};
use crate::definition::snapshot::Snapshot;
use crate::definition::task::Dispatch;
use crate::definition::wait::{SleepLength, Wait};
use crate::definition::workflow::RunClock;
use crate::run::Settings;

/// What a message between two runs may take.
const MESSAGE_MS: u64 = SECOND;
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
                    wait_ms: waits,
                    cost: rows(GATE_ROWS + REMINDER_ROWS * reminders).plus(published(2)),
                    happy: rows(3).plus(published(1)),
                }
            }
            NodeKind::Wait(wait) => {
                let waits = self.wait_ms(wait);
                NodeBounds {
                    time_ms: waits,
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
        let own_ms = self
            .snapshot
            .execution_limit(node)
            .limit
            .millis()
            .unwrap_or(UNBOUNDED);
        let is_bounded_by_node = found.adaptive || found.timeout != Limit::Unset;
        let callback_ms = match action {
            Some(action) if !is_bounded_by_node => {
                let of_action = action.timeout.millis().unwrap_or(0);
                of_action
                    .max(self.settings.suspend_ms)
                    .saturating_add(self.settings.grace_ms)
            }
            Some(_) | None => 0,
        };
        let dispatch = found
            .dispatch
            .or(self.snapshot.task_of(node).map(|task| task.task.dispatch));
        let may_be_queued = self.settings.queue && dispatch != Some(Dispatch::Direct);
        let queued_ms = match may_be_queued {
            true => CLAIM_ROUNDS.saturating_mul(self.settings.claim_ms),
            false => 0,
        };
        let open_ms = own_ms.saturating_add(self.settings.grace_ms);
        let attempt_ms = open_ms.saturating_add(callback_ms).saturating_add(queued_ms);
        let attempts = self.attempts(node);
        // A claimed attempt saves its progress and its heartbeats.
        let heartbeats = match may_be_queued {
            true => {
                attempt_ms.min(self.run_ms) / self.settings.progress_save_ms.max(1) * 2 + CLAIM_ROUNDS * 4
            }
            false => 0,
        };
        let attempt = Cost {
            rows: ATTEMPT_ROWS
                .saturating_add(heartbeats)
                .saturating_add(NOTIFICATION_ROWS * self.targets * ATTEMPT_EVENTS),
            open_ms: open_ms.min(self.run_ms),
            calls: 1,
            ..Cost::default()
        };
        NodeBounds {
            time_ms: attempt_ms
                .saturating_mul(attempts)
                .saturating_add(self.delays_ms(attempts)),
            wait_ms: attempt_ms,
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
            person_ms,
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
        NodeBounds {
            time_ms: attempt_ms
                .saturating_mul(attempts)
                .saturating_add(self.delays_ms(attempts)),
            person_ms: person_ms.min(attempt_ms).saturating_mul(attempts),
            wait_ms: wait_ms.saturating_add(2 * MESSAGE_MS),
            cost: attempt.plus(cost).times(attempts),
            happy: happy.plus(rows(3)),
        }
        .with(escalation)
    }

    fn attempts(&self, node: usize) -> u64 {
        let found = &self.snapshot.workflow.nodes[node];
        let action = self
            .snapshot
            .task_of(node)
            .and_then(|task| task.task.only_action());
        let policy = found.on_timeout.or(action.and_then(|action| action.on_timeout));
        let retries = match (policy, found.role) {
            (Some(ExecutionTimeoutPolicy::Retry), _) => found.max_retries,
            // A lost compensation or end handler is done again.
            (None, NodeRole::Compensation { .. } | NodeRole::EndHandler) => found.max_retries,
            (None | Some(ExecutionTimeoutPolicy::Fail), _) => 0,
        };
        1 + u64::from(retries)
    }

    fn delays_ms(&self, attempts: u64) -> u64 {
        let first_ms = self.settings.retry_delay_ms;
        let most_ms = RETRY_DELAY_MAX_MS.max(first_ms);
        let delays =
            (1..attempts).map(|retry| first_ms.saturating_mul(1 << (retry - 1).min(16)).min(most_ms));
        delays.fold(0, u64::saturating_add)
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
            wait_ms: waits,
            cost: rows(GATE_ROWS).plus(published(2)),
            happy: Cost::default(),
        }
    }
}

/// A call that goes well, for the price of the happy path.
const HAPPY_CALL_MS: u64 = 100;

impl NodeBounds {
    fn with(self, other: NodeBounds) -> NodeBounds {
        NodeBounds {
            time_ms: self.time_ms.saturating_add(other.time_ms),
            person_ms: self.person_ms.saturating_add(other.person_ms),
            wait_ms: self.wait_ms.max(other.wait_ms),
            cost: self.cost.plus(other.cost),
            happy: self.happy.plus(other.happy),
        }
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
