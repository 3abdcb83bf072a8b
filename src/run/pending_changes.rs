//! The changes of one event, collected while it is applied, and the decision built from them.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use crate::base::time::Millis;
use crate::run::decision::{Command, Decision, Write};
use crate::run::header::RunStatus;
use crate::run::metrics::MeasuredEvent;
use crate::run::recovery::undo::Patch;
use crate::run::state::Run;
use crate::run::time::row_events::TokenTimeout;
use crate::run::token::lane::{BatchCounts, calls_for};
use crate::run::token::order::AttemptOrder;
use crate::run::token::{TokenId, TokenStatus};

/// The changes collected by one `handle`.
#[derive(Debug, Default)]
pub(in crate::run) struct PendingChanges {
    pub now: Millis,
    pub is_new_run: bool,
    /// The run goes on with another version.
    pub snapshot_changed: bool,
    /// The run waited for a person before the event.
    pub waited_for_person: bool,
    pub header_changed: bool,
    pub publish_run: bool,
    pub ended: bool,
    pub delete: bool,
    pub orders: Vec<AttemptOrder>,
    /// The response to the claim that is being handled.
    pub claim_response: Option<AttemptOrder>,
    /// Attempts whose queue message is to be sent.
    pub enqueues: BTreeSet<(TokenId, u64)>,
    pub aborts: Vec<(TokenId, u64)>,
    /// Tokens whose node has not begun its work.
    pub arrivals: VecDeque<TokenId>,
    /// Patches that undo what a join merged into the context, or what a retry undid. The next created token carries them.
    pub merge_undo: Vec<Patch>,
    /// Tasks executed inside this decision.
    pub inline: u32,
    /// The size of this decision's results as JSON text.
    pub result_bytes: usize,
    /// Executor calls that this decision may make, and the orders it has for them.
    pub remaining_calls: u32,
    pub batches: BatchCounts,
    /// Work was deferred to the next wake.
    pub is_deferred: bool,
    pub forget_failed_wakes: bool,
    /// The end of the run was decided and has interrupted tokens.
    pub end_decided: bool,
    /// Tokens whose timeout this decision has logged with a record.
    pub timeouts_noted: BTreeSet<TokenId>,
    /// Why a timeout of the run or of a join ends tokens.
    pub token_timeout: Option<TokenTimeout>,
    /// Events that were noted on the row of the run.
    pub on_header: Vec<MeasuredEvent>,
    /// Latencies of nodes with an adaptive limit.
    pub latencies: Vec<(String, TokenId, u64)>,
    /// Attempts with new progress.
    pub progressed: Vec<(TokenId, u64)>,
}

impl Run {
    /// Derives the run's status from its tokens.
    fn update_status(&mut self) {
        if !self.is_running() {
            return;
        }
        let status = if self.is_paused() {
            RunStatus::Paused
        } else if self.all_wait_at_gates_or(self.waits.count() as u64) {
            RunStatus::Waiting
        } else {
            RunStatus::Running
        };
        if self.header.status != status {
            self.header.status = status;
            self.changes.header_changed = true;
            self.changes.publish_run = true;
        }
    }

    pub(in crate::run) fn build_decision(&mut self) -> Decision {
        self.update_status();
        self.update_clock();
        self.send_wait_to_parent();
        self.outbox.send_waiting_starts(self.send_time());
        let (messages, deliveries) = self.outbox.take_changes();
        let events = self.event_log.take_new();
        let changes = std::mem::take(&mut self.changes);
        self.changes.now = changes.now;
        if changes.ended || changes.end_decided {
            self.number_interrupted_tokens();
        }
        let tokens = self.tokens.take_changes();
        self.measure(changes.on_header, &events, &tokens.ended);
        if changes.delete {
            return Decision::DeleteStorage;
        }
        // An attempt that began and ended in this decision is neither dispatched nor aborted.
        let is_executing = |token: &TokenId, epoch: u64| {
            let token = self.tokens.get(token);
            token.is_some_and(|it| it.status == TokenStatus::Executing && it.epoch == epoch)
        };
        let (orders, dropped): (Vec<AttemptOrder>, Vec<AttemptOrder>) = changes
            .orders
            .into_iter()
            .partition(|order| is_executing(&order.token, order.epoch));
        let mut aborts = changes.aborts;
        aborts.retain(|(token, epoch)| {
            !dropped
                .iter()
                .any(|order| order.token == *token && order.epoch == *epoch)
        });
        let mut writes = Vec::new();
        if changes.is_new_run || changes.snapshot_changed {
            writes.push(Write::SaveSnapshot(Rc::clone(&self.snapshot.text)));
        }
        if changes.is_new_run {
            writes.push(Write::SaveInput(Rc::clone(&self.context.input)));
        }
        if changes.header_changed {
            self.header.revision += 1;
            writes.push(Write::SaveRun(Box::new(self.header.clone())));
        }
        let mut ended = tokens.ended;
        writes.extend(self.context.take_changes(|writer, name, value| {
            let writer = ended.iter_mut().find(|token| token.id == writer);
            writer.is_some_and(|token| token.store_context(name, value))
        }));
        for token in ended {
            writes.push(Write::SaveToken(Box::new(token)));
        }
        for id in tokens.changed {
            writes.push(Write::SaveToken(Box::new(self.tokens.live(id).clone())));
        }
        for instance in self.fans.take_changes() {
            writes.push(Write::SaveInstance(Box::new(instance)));
        }
        let gates = self.gates.take_changes();
        for gate in &gates {
            writes.push(Write::SaveGate(Box::new(gate.clone())));
        }
        writes.extend(events.into_iter().map(|event| Write::SaveEvent(Box::new(event))));
        for (name, payloads) in self.waits.take_changes() {
            writes.push(Write::SaveSignals { name, payloads });
        }
        writes.extend(messages);
        if changes.forget_failed_wakes {
            writes.push(Write::DeleteFailedWakes);
        }
        self.post_notifications(&writes);
        let calls = changes.remaining_calls.saturating_sub(calls_for(orders.iter()));
        self.notifications.send_due(changes.now, calls);
        let (notifications, sends) = self.notifications.take_changes();
        writes.extend(notifications);
        let alarm = self.move_alarm();
        let mut commands = Vec::new();
        for (token, epoch) in aborts {
            commands.push(Command::AbortAttempt { token, epoch });
        }
        commands.extend(orders.into_iter().map(Command::DispatchTask));
        for (token, epoch) in changes.enqueues {
            let is_dispatched = self
                .tokens
                .get(&token)
                .is_some_and(|it| it.status == TokenStatus::Dispatched && it.epoch == epoch);
            if is_dispatched {
                commands.push(Command::EnqueueAttempt { token, epoch });
            }
        }
        commands.extend(changes.claim_response.map(Command::RespondToClaim));
        commands.extend(deliveries);
        commands.extend(sends);
        if changes.publish_run {
            commands.push(Command::PublishRun);
        }
        commands.extend(gates.into_iter().map(|gate| Command::PublishGate(Box::new(gate))));
        for (node_id, token, millis) in changes.latencies {
            commands.push(Command::PublishLatency {
                node_id,
                token,
                millis,
            });
        }
        for (token, epoch) in changes.progressed {
            commands.push(Command::PublishProgress { token, epoch });
        }
        if changes.ended {
            commands.push(Command::NotifyRunEnded);
        }
        Decision::Update {
            writes,
            alarm,
            commands,
        }
    }

    /// A run that failed or timed out may be resumed. The tokens that its end interrupted are found by the number of the end.
    fn number_interrupted_tokens(&mut self) {
        let ending = self.header.ending.as_ref().map(|ending| ending.status);
        match ending.unwrap_or(self.header.status) {
            RunStatus::Failed | RunStatus::TimedOut => {}
            RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Compensating
            | RunStatus::Completed
            | RunStatus::Cancelled => return,
        }
        let end = self.header.ends;
        // Branches of a join that fired were decided by the join, even if the run failed later in the same commit.
        let decided = self.fans.mark_closed_by_run_end(end);
        self.tokens.number_interrupted(end, |token| {
            let branch = token.branch.as_ref();
            branch.is_some_and(|it| decided.contains(&it.instance))
        });
    }
}
