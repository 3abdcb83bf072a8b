//! Messages to other objects: saved with the decision that posts them, sent after its commit, and re-sent until they are
//! delivered. Receivers ignore repeated messages.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::limits::OUTBOX_BYTES;
use crate::base::text::json_bytes;
use crate::base::time::{MINUTE, Millis, SECOND};
use crate::run::decision::{Command, Write};
use crate::run::message::Message;
use crate::run::state::Run;
use crate::run::token::{Token, TokenId};

/// Starts of children in flight at a time. Each carries the child's whole snapshot and creates an object.
const STARTS_IN_FLIGHT: usize = 8;

/// Delivery attempts after which a missing receiver counts as never started.
const GONE_AFTER: u32 = 5;

/// The undelivered messages, and their changes in the current decision.
#[derive(Debug, Default)]
pub(in crate::run) struct Outbox {
    entries: BTreeMap<u64, Entry>,
    /// The values that the messages carry.
    bytes: usize,
    /// Every entry except the waiting starts, by the time of its next send.
    due: BTreeSet<(Millis, u64)>,
    /// Starts that were sent and not answered, and starts that wait for a free slot. A start only waits while all slots are
    /// taken by starts that are themselves re-sent, so none waits forever.
    starts_in_flight: BTreeSet<u64>,
    waiting_starts: BTreeSet<u64>,
    /// Tokens that begin when fewer bytes wait. Some may have ended or begun meanwhile.
    waiting_tokens: BTreeSet<TokenId>,
    posted: u64,
    changed: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
    sent: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    message: Message,
    bytes: usize,
    attempts: u32,
    /// The time of the next send. `Millis::MAX` for a waiting start.
    due_at: Millis,
    /// It was sent, or may have been sent before the object was loaded.
    may_have_left: bool,
}

/// The time of a send, and whether this decision may still make calls.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct SendTime {
    pub now: Millis,
    pub has_calls: bool,
}

impl Outbox {
    pub fn get(&self, id: u64) -> Option<&Message> {
        self.entries.get(&id).map(|entry| &entry.message)
    }

    /// The earliest time at which a message is sent again.
    pub fn next_due_at(&self) -> Option<Millis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Restores a saved message. It may or may not have been delivered, so it is due immediately.
    pub fn restore(&mut self, id: u64, message: Message) {
        self.posted = self.posted.max(id);
        let entry = self.entry(message, true);
        self.due.insert((entry.due_at, id));
        self.entries.insert(id, entry);
    }

    fn entry(&mut self, message: Message, may_have_left: bool) -> Entry {
        let bytes = carried_bytes(&message);
        self.bytes += bytes;
        Entry {
            message,
            bytes,
            attempts: 0,
            due_at: 0,
            may_have_left,
        }
    }

    /// What was posted has to be delivered before more is.
    pub fn is_full(&self) -> bool {
        self.bytes >= OUTBOX_BYTES
    }

    pub fn wait_for_room(&mut self, token: TokenId) {
        self.waiting_tokens.insert(token);
    }

    /// The next token that may begin, if there is room.
    pub fn next_with_room(&mut self) -> Option<TokenId> {
        match self.is_full() {
            true => None,
            false => self.waiting_tokens.pop_first(),
        }
    }

    pub fn post(&mut self, message: Message, time: SendTime) {
        self.posted += 1;
        let id = self.posted;
        self.changed.insert(id);
        let entry = self.entry(message, false);
        self.entries.insert(id, entry);
        self.send(id, time);
    }

    pub fn send_due(&mut self, time: SendTime) {
        if self.next_due_at().is_none_or(|at| at > time.now) {
            return;
        }
        let due = self.entries.iter().filter(|(_, entry)| entry.due_at <= time.now);
        let ids: Vec<u64> = due.map(|(id, _)| *id).collect();
        for id in ids {
            self.send(id, time);
        }
    }

    /// Sends waiting starts into free slots. Called once at the end of a decision, so that a start which the decision
    /// retracts is not sent.
    pub fn send_waiting_starts(&mut self, time: SendTime) {
        while self.starts_in_flight.len() < STARTS_IN_FLIGHT
            && let Some(id) = self.waiting_starts.pop_first()
        {
            self.send(id, time);
        }
    }

    /// Sends a message and schedules the next send. Publishing an event needs calls: with none left the event stays due, and
    /// the alarm triggers the next decision immediately. If it were sent anyway, two events could keep waking the run for
    /// decisions that make no progress.
    fn send(&mut self, id: u64, time: SendTime) {
        let entry = self.entries.get_mut(&id).expect("only posted messages are sent");
        self.due.remove(&(entry.due_at, id));
        match &entry.message {
            Message::Emit { .. } if !time.has_calls => {
                entry.due_at = time.now;
                self.due.insert((time.now, id));
                return;
            }
            Message::StartChild { .. } => {
                let is_full = self.starts_in_flight.len() >= STARTS_IN_FLIGHT;
                if is_full && !self.starts_in_flight.contains(&id) {
                    entry.due_at = Millis::MAX;
                    self.waiting_starts.insert(id);
                    return;
                }
                self.waiting_starts.remove(&id);
                self.starts_in_flight.insert(id);
            }
            Message::Emit { .. }
            | Message::HoldChild { .. }
            | Message::CancelChild { .. }
            | Message::NotifyParent { .. }
            | Message::TellParent { .. } => {}
        }
        entry.attempts += 1;
        entry.due_at = time.now.saturating_add(resend_after_ms(entry.attempts));
        self.due.insert((entry.due_at, id));
        self.sent.insert(id);
    }

    /// A delivery failed: the message is re-sent sooner than one whose delivery has no result.
    pub fn failed(&mut self, id: u64, is_gone: bool, now: Millis) {
        // The message was delivered or retracted in the meantime.
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        // A pause for a child may arrive before the child's start does.
        if is_gone && entry.attempts >= GONE_AFTER && !self.is_for_a_starting_child(&entry.message) {
            return self.remove(id);
        }
        self.starts_in_flight.remove(&id);
        let delay_ms = SECOND << entry.attempts.min(6);
        self.postpone(id, now.saturating_add(delay_ms));
    }

    /// An event reached the workflows up to `so_far`. The alarm triggers the next decision immediately, which publishes the
    /// rest.
    pub fn unfinished(&mut self, id: u64, so_far: Option<String>, now: Millis) {
        // The event was delivered in the meantime.
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if let Message::Emit { after, .. } = &mut entry.message
            && *after < so_far
        {
            *after = so_far;
            self.changed.insert(id);
        }
        self.postpone(id, now);
    }

    fn postpone(&mut self, id: u64, at: Millis) {
        let entry = self.entries.get_mut(&id).expect("looked up by the caller");
        self.due.remove(&(entry.due_at, id));
        entry.due_at = at;
        self.due.insert((at, id));
    }

    fn is_for_a_starting_child(&self, message: &Message) -> bool {
        let Message::HoldChild { run_id: child, .. } = message else {
            return false;
        };
        let mut messages = self.entries.values().map(|entry| &entry.message);
        messages.any(|message| matches!(message, Message::StartChild { run_id, .. } if run_id == child))
    }

    /// Removes a message, if it is still there.
    pub fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        self.bytes -= entry.bytes;
        self.due.remove(&(entry.due_at, id));
        self.starts_in_flight.remove(&id);
        self.waiting_starts.remove(&id);
        self.sent.remove(&id);
        // A message posted and removed in the same decision was never saved.
        if !self.changed.remove(&id) {
            self.deleted.insert(id);
        }
    }

    /// Removes messages that a newer one replaces.
    pub fn retract(&mut self, is_replaced: impl Fn(&Message) -> bool) {
        let replaced = self
            .entries
            .iter()
            .filter(|(_, entry)| is_replaced(&entry.message));
        let ids: Vec<u64> = replaced.map(|(id, _)| *id).collect();
        for id in ids {
            self.remove(id);
        }
    }

    /// Removes the start message of an attempt's child. True if it was never sent.
    pub fn retract_start(&mut self, token: TokenId, epoch: u64) -> bool {
        let token = token.to_string();
        let start = self.entries.iter().find(|(_, entry)| {
            matches!(&entry.message, Message::StartChild { token_id, epoch: of, .. } if *token_id == token && *of == epoch)
        });
        let Some((id, may_have_left)) = start.map(|(id, entry)| (*id, entry.may_have_left)) else {
            return false;
        };
        self.remove(id);
        !may_have_left
    }

    /// Whether the child of this attempt was certainly not started yet.
    pub fn holds_start(&self, token: TokenId, epoch: u64) -> bool {
        let token = token.to_string();
        self.entries.values().any(|entry| {
            let is_start = matches!(&entry.message, Message::StartChild { token_id, epoch: of, .. } if *token_id == token && *of == epoch);
            is_start && !entry.may_have_left
        })
    }

    /// The changed rows since the last call, and the messages to deliver.
    pub fn take_changes(&mut self) -> (Vec<Write>, Vec<Command>) {
        let mut writes = Vec::new();
        for id in std::mem::take(&mut self.changed) {
            let message = Box::new(self.entries[&id].message.clone());
            writes.push(Write::SaveMessage { id, message });
        }
        let deleted = std::mem::take(&mut self.deleted).into_iter();
        writes.extend(deleted.map(|id| Write::DeleteMessage { id }));
        let mut commands = Vec::new();
        for id in std::mem::take(&mut self.sent) {
            let entry = self.entries.get_mut(&id).expect("a removed message is not sent");
            entry.may_have_left = true;
            let message = entry.message.clone();
            commands.push(Command::DeliverMessage { id, message });
        }
        (writes, commands)
    }
}

impl Run {
    pub(in crate::run) fn send_time(&self) -> SendTime {
        SendTime {
            now: self.changes.now,
            has_calls: self.changes.remaining_calls > 0,
        }
    }

    pub(in crate::run) fn post(&mut self, message: Message) {
        self.outbox.post(message, self.send_time());
    }

    /// Removes the start message of a token's child from the outbox. True if it was never sent.
    pub(in crate::run) fn retract_start(&mut self, token: &Token) -> bool {
        self.outbox.retract_start(token.id, token.epoch)
    }
}

/// The values that are as large as a workflow makes them.
fn carried_bytes(message: &Message) -> usize {
    match message {
        Message::StartChild { input, .. } => json_bytes(input),
        Message::Emit { payload, .. } => json_bytes(payload),
        // A run ends once.
        Message::NotifyParent { .. }
        | Message::HoldChild { .. }
        | Message::CancelChild { .. }
        | Message::TellParent { .. } => 0,
    }
}

/// An object responds within seconds or not at all.
fn resend_after_ms(attempts: u32) -> u64 {
    ((10 * SECOND) << attempts.saturating_sub(1).min(6)).min(10 * MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_START: SendTime = at(1_000);

    const fn at(now: Millis) -> SendTime {
        SendTime { now, has_calls: true }
    }

    fn cancel(run_id: &str) -> Message {
        Message::CancelChild {
            run_id: run_id.into(),
            reason: "enough".into(),
            token_id: None,
        }
    }

    fn start(token: u64) -> Message {
        Message::StartChild {
            run_id: format!("run~t{token}"),
            node_id: "call".into(),
            token_id: format!("t{token}"),
            epoch: 1,
            input: serde_json::Value::Null,
            timeout_ms: None,
            budget_ms: None,
            node_decides: false,
        }
    }

    fn event() -> Message {
        Message::Emit {
            key: "k".into(),
            name: "done".into(),
            payload: serde_json::Value::Null,
            hops: 1,
            after: None,
            root: None,
        }
    }

    /// `save 1`, `delete 1` and `deliver 1`, in their order.
    fn changes(outbox: &mut Outbox) -> Vec<String> {
        let (writes, commands) = outbox.take_changes();
        let writes = writes.iter().map(|write| match write {
            Write::SaveMessage { id, .. } => format!("save {id}"),
            Write::DeleteMessage { id } => format!("delete {id}"),
            other => panic!("{other:?} is no write of the outbox"),
        });
        let commands = commands.iter().map(|command| match command {
            Command::DeliverMessage { id, .. } => format!("deliver {id}"),
            other => panic!("{other:?} is no command of the outbox"),
        });
        writes.chain(commands).collect()
    }

    #[test]
    fn a_message_is_sent_until_it_has_arrived() {
        let mut outbox = Outbox::default();
        outbox.post(cancel("child"), AT_START);
        assert_eq!(changes(&mut outbox), ["save 1", "deliver 1"]);
        assert_eq!(outbox.next_due_at(), Some(11_000));
        outbox.send_due(at(10_999));
        assert!(changes(&mut outbox).is_empty());
        outbox.send_due(at(11_000));
        assert_eq!(changes(&mut outbox), ["deliver 1"]);
        assert_eq!(outbox.next_due_at(), Some(31_000));
        outbox.failed(1, false, 12_000);
        assert_eq!(outbox.next_due_at(), Some(16_000));
        outbox.remove(1);
        assert_eq!(changes(&mut outbox), ["delete 1"]);
        assert_eq!(outbox.next_due_at(), None);
        outbox.failed(1, false, 13_000);
        outbox.remove(1);
        assert!(changes(&mut outbox).is_empty(), "the message is gone");
    }

    #[test]
    fn a_message_that_is_retracted_at_once_leaves_no_trace() {
        let mut outbox = Outbox::default();
        outbox.post(cancel("child"), AT_START);
        outbox.retract(|message| matches!(message, Message::CancelChild { .. }));
        assert!(changes(&mut outbox).is_empty());
        outbox.post(cancel("child"), AT_START);
        assert_eq!(
            changes(&mut outbox),
            ["save 2", "deliver 2"],
            "ids are not reused"
        );
    }

    #[test]
    fn a_receiver_that_is_not_there_is_given_up_after_some_attempts() {
        let mut outbox = Outbox::default();
        outbox.post(cancel("child"), AT_START);
        for _ in 1..GONE_AFTER {
            outbox.failed(1, true, 1_000);
            outbox.send_due(at(Millis::MAX));
        }
        changes(&mut outbox);
        outbox.failed(1, true, 1_000);
        assert_eq!(changes(&mut outbox), ["delete 1"]);
    }

    #[test]
    fn few_starts_are_in_flight_at_a_time() {
        let mut outbox = Outbox::default();
        for token in 1..=10 {
            outbox.post(start(token), AT_START);
        }
        let lines = changes(&mut outbox);
        assert_eq!(lines.iter().filter(|line| line.starts_with("deliver")).count(), 8);
        assert!(outbox.retract_start(TokenId(9), 1), "start 9 has not left");
        assert!(!outbox.retract_start(TokenId(1), 1), "start 1 has left");
        outbox.send_waiting_starts(AT_START);
        assert_eq!(changes(&mut outbox), ["delete 1", "delete 9", "deliver 10"]);
    }

    #[test]
    fn an_event_waits_for_a_decision_with_calls_and_goes_on_where_it_stopped() {
        let mut outbox = Outbox::default();
        outbox.post(
            event(),
            SendTime {
                has_calls: false,
                ..AT_START
            },
        );
        assert_eq!(changes(&mut outbox), ["save 1"]);
        assert_eq!(outbox.next_due_at(), Some(1_000));
        outbox.send_due(AT_START);
        assert_eq!(changes(&mut outbox), ["deliver 1"]);
        outbox.unfinished(1, Some("b".into()), 2_000);
        outbox.unfinished(1, Some("a".into()), 2_000);
        assert_eq!(changes(&mut outbox), ["save 1"]);
        let Some(Message::Emit { after, .. }) = outbox.get(1) else {
            panic!("the event is still there");
        };
        assert_eq!(after.as_deref(), Some("b"), "progress is never taken back");
    }
}
