//! Messages that must leave the object: saved with the decision that made them, sent after the commit, sent again
//! until they arrived. Whoever gets one twice does nothing the second time.

use std::collections::BTreeSet;

use crate::base::time::{MINUTE, Millis, SECOND};
use crate::run::message::Message;
use crate::run::state::{Due, Run};

#[derive(Clone, Debug, PartialEq)]
pub struct OutboxEntry {
    pub message: Message,
    pub attempts: u32,
    /// When to send it again if nothing was heard.
    pub due_at: Millis,
    /// It was sent once, or may have been before the object came back.
    pub may_have_left: bool,
}

/// Starts of children that are under way at a time. Each carries the child's whole snapshot, and a new object at the other end.
const STARTS_UNDER_WAY: usize = 8;

/// Starts of children: those that were sent and not answered yet, and those that wait for one of them to be answered. While
/// any waits, as many as may be are under way, each with a moment at which it is sent again; so none waits for ever.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Starts {
    under_way: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
}

impl Run {
    pub(in crate::run) fn post(&mut self, message: Message) {
        self.messages_posted += 1;
        let id = self.messages_posted;
        self.changes.new_messages.insert(id);
        self.outbox.insert(
            id,
            OutboxEntry {
                message,
                attempts: 0,
                due_at: 0,
                may_have_left: false,
            },
        );
        self.send(id);
    }

    /// Starts that waited and have room now. Once a decision: a start that it takes back must not have left before.
    pub(in crate::run) fn send_waiting_starts(&mut self) {
        while self.starts.under_way.len() < STARTS_UNDER_WAY
            && let Some(id) = self.starts.waiting.pop_first()
        {
            self.send(id);
        }
    }

    /// Sends a message now and plans the next time. An event takes calls: in a turn that has none left it stays due, and the
    /// alarm brings the next. Sent all the same, two of them would keep each other awake in a turn that can do nothing.
    pub(in crate::run) fn send(&mut self, id: u64) {
        let now = self.changes.now;
        let has_room = self.changes.room > 0;
        let Some(entry) = self.outbox.get_mut(&id) else {
            return;
        };
        self.due.remove(&(entry.due_at, Due::Message(id)));
        if !has_room && matches!(entry.message, Message::Emit { .. }) {
            entry.due_at = now;
            self.due.insert((now, Due::Message(id)));
            return;
        }
        if matches!(entry.message, Message::StartChild { .. }) {
            let is_full = self.starts.under_way.len() >= STARTS_UNDER_WAY;
            if is_full && !self.starts.under_way.contains(&id) {
                entry.due_at = Millis::MAX;
                self.starts.waiting.insert(id);
                return;
            }
            self.starts.waiting.remove(&id);
            self.starts.under_way.insert(id);
        }
        entry.attempts += 1;
        entry.due_at = now.saturating_add(patience_ms(entry.attempts));
        self.due.insert((entry.due_at, Due::Message(id)));
        self.changes.sends.insert(id);
    }

    /// Not heard of: it goes out again when it is due, sooner than a silent one.
    pub(in crate::run) fn delivery_failed(&mut self, id: u64, is_gone: bool) {
        let now = self.changes.now;
        let Some(entry) = self.outbox.get(&id) else {
            return;
        };
        // A child that is to be cancelled may not be there yet: its start can be on its way. Later it never will be.
        if is_gone && entry.attempts >= GONE_AFTER && !self.is_about_a_start(&entry.message) {
            return self.unpost(id);
        }
        self.starts.under_way.remove(&id);
        let Some(entry) = self.outbox.get_mut(&id) else {
            return;
        };
        self.due.remove(&(entry.due_at, Due::Message(id)));
        entry.due_at = now.saturating_add(SECOND << entry.attempts.min(6));
        self.due.insert((entry.due_at, Due::Message(id)));
    }

    /// The rest goes out in the next turn, which the alarm brings at once.
    pub(in crate::run) fn delivery_unfinished(&mut self, id: u64, so_far: Option<String>) {
        let now = self.changes.now;
        let Some(entry) = self.outbox.get_mut(&id) else {
            return;
        };
        if let Message::Emit { after, .. } = &mut entry.message
            && *after < so_far
        {
            *after = so_far;
            self.changes.new_messages.insert(id);
        }
        self.due.remove(&(entry.due_at, Due::Message(id)));
        entry.due_at = now;
        self.due.insert((entry.due_at, Due::Message(id)));
    }

    /// It is for a child whose start is still to be heard of.
    fn is_about_a_start(&self, message: &Message) -> bool {
        let Message::HoldChild { run_id: child, .. } = message else {
            return false;
        };
        self.outbox
            .values()
            .any(|entry| matches!(&entry.message, Message::StartChild { run_id, .. } if run_id == child))
    }

    pub(in crate::run) fn unpost(&mut self, id: u64) {
        let Some(entry) = self.outbox.remove(&id) else {
            return;
        };
        self.due.remove(&(entry.due_at, Due::Message(id)));
        self.starts.under_way.remove(&id);
        self.starts.waiting.remove(&id);
        self.changes.sends.remove(&id);
        // Posted and taken back in one decision: it was never saved.
        if !self.changes.new_messages.remove(&id) {
            self.changes.deleted_messages.insert(id);
        }
    }
}

/// Attempts after which a run that is not there counts as never started.
const GONE_AFTER: u32 = 5;

/// An object answers within seconds or not at all.
fn patience_ms(attempts: u32) -> u64 {
    ((10 * SECOND) << attempts.saturating_sub(1).min(6)).min(10 * MINUTE)
}
