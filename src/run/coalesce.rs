//! Merges several decisions into one: reports that arrive in one message cost one commit, and each row is written once.

use std::collections::BTreeSet;

use crate::base::ordered::set_of;
use crate::base::time::Millis;
use crate::run::decision::{Command, Decision, Write};
use crate::run::event::Event;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::token::lane::calls_for;
use crate::run::token::{TokenId, TokenStatus};

/// Decisions that are not committed yet.
#[derive(Debug, Default)]
pub struct DecisionBatch {
    decision: Decision,
    decisions: usize,
    steps: u64,
}

impl DecisionBatch {
    /// An empty batch. Decisions already committed in this turn used `steps` of the computation budget.
    pub fn after(steps: u64) -> DecisionBatch {
        DecisionBatch {
            steps,
            ..DecisionBatch::default()
        }
    }

    /// Decides on `event`. Earlier decisions of the batch count against the same step and call budgets.
    pub fn decide(
        &mut self,
        run: &mut Run,
        now: Millis,
        remaining_calls: u32,
        event: Event,
    ) -> Result<(), Rejection> {
        self.decide_observed(run, now, remaining_calls, event, |_, _, _| ())
    }

    /// As `decide`. `observe` gets the run after the decision, and whether the event was accepted.
    pub fn decide_observed(
        &mut self,
        run: &mut Run,
        now: Millis,
        remaining_calls: u32,
        event: Event,
        observe: impl FnOnce(&Run, bool, &Decision),
    ) -> Result<(), Rejection> {
        run.continue_after(self.steps);
        let (answer, decision) = run.handle(now, remaining_calls.saturating_sub(self.calls()), event);
        self.steps = run.steps();
        observe(run, answer.is_ok(), &decision);
        self.add(decision);
        answer
    }

    pub fn add(&mut self, decision: Decision) {
        self.decisions += 1;
        match (&mut self.decision, decision) {
            (
                Decision::Update {
                    writes,
                    alarm,
                    commands,
                },
                Decision::Update {
                    writes: more_writes,
                    alarm: next_alarm,
                    commands: more_commands,
                },
            ) if self.decisions > 1 => {
                writes.extend(more_writes);
                *alarm = next_alarm.or(*alarm);
                commands.extend(more_commands);
            }
            // Once the storage is deleted, later decisions have no effect.
            (Decision::DeleteStorage, _) => {}
            (Decision::Update { .. }, first_or_deletion) => self.decision = first_or_deletion,
        }
    }

    /// Computation steps used by these decisions and by those committed before them in this turn.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The executor calls that these decisions need.
    pub fn calls(&self) -> u32 {
        let commands = self.decision.commands();
        let is_notification = |command: &&Command| matches!(command, Command::SendNotification(_));
        let notifications = commands.iter().filter(is_notification).count() as u32;
        calls_for(commands.iter().filter_map(Command::dispatched)) + notifications
    }

    /// Merges the decisions. `run` is in the state after the last of them.
    pub fn into_decision(self, run: &Run) -> Decision {
        match (self.decisions, self.decision) {
            (
                2..,
                Decision::Update {
                    writes,
                    alarm,
                    commands,
                },
            ) => Decision::Update {
                writes: last_writes(writes),
                alarm,
                commands: last_commands(run, commands),
            },
            (_, single_or_deletion) => single_or_deletion,
        }
    }
}

/// The row that a write changes. Only the last write to a row is kept.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Header,
    Context(String),
    Token(TokenId),
    Instance(u64),
    Gate(String),
    Signals(String),
    Message(u64),
    Notification(u64),
}

fn last_writes(mut writes: Vec<Write>) -> Vec<Write> {
    let mut seen = BTreeSet::new();
    retain_last(&mut writes, |write| {
        row_of(write).is_none_or(|row| seen.insert(row))
    });
    writes
}

/// `None`: the row is written at most once per batch, or the write does not replace a single row.
fn row_of(write: &Write) -> Option<Row> {
    Some(match write {
        Write::SaveRun(_) => Row::Header,
        Write::SaveContext { key, .. } | Write::DeleteContext { key } => Row::Context(key.clone()),
        Write::SaveToken(token) => Row::Token(token.id),
        Write::SaveInstance(instance) => Row::Instance(instance.id.0),
        Write::SaveGate(gate) => Row::Gate(gate.id.clone()),
        Write::SaveSignals { name, .. } => Row::Signals(name.clone()),
        Write::SaveMessage { id, .. } | Write::DeleteMessage { id } => Row::Message(*id),
        Write::SaveNotification(notification) => Row::Notification(notification.number),
        Write::DeleteNotification { number } => Row::Notification(*number),
        Write::SaveSnapshot(_) | Write::SaveInput(_) | Write::SaveEvent(_) | Write::DeleteFailedWakes => {
            return None;
        }
    })
}

/// Attempts that were dispatched and ended within the batch are neither dispatched nor aborted. The summary is published
/// once, and so is the progress of an attempt.
fn last_commands(run: &Run, mut commands: Vec<Command>) -> Vec<Command> {
    let is_executing = |(token, epoch): &(TokenId, u64)| {
        let token = run.live_token(*token);
        token.is_some_and(|it| it.status == TokenStatus::Executing && it.epoch == *epoch)
    };
    let ended_in_batch: BTreeSet<(TokenId, u64)> = set_of(
        commands
            .iter()
            .filter_map(Command::dispatched)
            .map(|order| (order.token, order.epoch))
            .filter(|attempt| !is_executing(attempt)),
    );
    let mut publishes = false;
    let mut progressed = BTreeSet::new();
    retain_last(&mut commands, |command| match command {
        Command::DispatchTask(order) => !ended_in_batch.contains(&(order.token, order.epoch)),
        Command::AbortAttempt { token, epoch } => !ended_in_batch.contains(&(*token, *epoch)),
        Command::PublishRun => !std::mem::replace(&mut publishes, true),
        Command::PublishProgress { token, epoch } => progressed.insert((*token, *epoch)),
        Command::EnqueueAttempt { .. }
        | Command::RespondToClaim(_)
        | Command::DeliverMessage { .. }
        | Command::SendNotification(_)
        | Command::PublishGate(_)
        | Command::PublishLatency { .. }
        | Command::NotifyRunEnded => true,
    });
    commands
}

fn retain_last<T>(list: &mut Vec<T>, keep: impl FnMut(&T) -> bool) {
    list.reverse();
    list.retain(keep);
    list.reverse();
}
