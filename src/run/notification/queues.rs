//! The notifications of a run: one queue for each target, of which only the first is sent, and those that are delivered or given
//! up, of which the last ones are kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::base::limits::{NOTIFICATIONS_KEPT, NOTIFICATIONS_PENDING, NOTIFICATIONS_PENDING_OF_RUN};
use crate::base::ordered::sort_by_key;
use crate::base::text::truncate;
use crate::base::time::{HOUR, Millis, SECOND};
use crate::protocol::notification::{NotificationReport, NotificationTarget};
use crate::run::decision::{Command, Write};
use crate::run::notification::{Notification, NotificationStatus, NotifySettings, Skipped};

/// Targets that are called at the same time.
const IN_FLIGHT: usize = 4;

/// When a notification without an answer is sent again. Longer than an executor and its caller wait.
const ANSWER_MS: u64 = 30 * SECOND;

/// The longest delay between two attempts, also if the target asks for a longer one.
pub(super) const RETRY_MAX_MS: u64 = HOUR;

/// Ends of the run that are posted although the queue of their target is full.
const ENDS_PENDING: usize = 20;

/// What is kept of the message of an attempt.
const ERROR_BYTES: usize = 1 << 10;

#[derive(Debug, Default)]
pub(in crate::run) struct Notifications {
    by_number: BTreeMap<u64, Notification>,
    queues: BTreeMap<NotificationTarget, Queue>,
    /// Delivered or given up, oldest first.
    ended: BTreeSet<u64>,
    /// Targets that want no more.
    gone: BTreeSet<NotificationTarget>,
    last_number: u64,
    /// Events up to this number were considered.
    pub(super) seen_seq: u64,
    changed: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
    sent: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Numbers of pending notifications, never empty.
    pending: VecDeque<u64>,
    /// When the first one is sent, or sent again.
    due_at: Millis,
    /// The first one was sent, and no answer came yet.
    in_flight: bool,
    /// The first one may have reached the target: its content must not change.
    may_have_left: bool,
}

impl Queue {
    fn due(at: Millis) -> Queue {
        Queue {
            due_at: at,
            ..Queue::default()
        }
    }
}

/// A notification that is to be posted.
pub(super) struct Posted<'a> {
    pub target: &'a NotificationTarget,
    pub of_deployment: bool,
    pub kind: &'static str,
    pub seq: u64,
    pub is_end: bool,
    pub now: Millis,
}

impl Notifications {
    /// Restores a saved notification; they come in the order of their numbers.
    pub fn restore(&mut self, notification: Notification) {
        let number = notification.number;
        self.last_number = self.last_number.max(number);
        if notification.is_pending() {
            let due_at = notification.next_attempt_at.unwrap_or(0);
            let queue = self.queues.entry(notification.target.clone());
            queue
                .or_insert_with(|| Queue {
                    due_at,
                    may_have_left: true,
                    ..Queue::default()
                })
                .pending
                .push_back(number);
        } else {
            if notification.gone {
                self.gone.insert(notification.target.clone());
            }
            self.ended.insert(number);
        }
        self.by_number.insert(number, notification);
    }

    /// Events up to `seq` need no notification any more.
    pub fn seen(&mut self, seq: u64) {
        self.seen_seq = seq;
    }

    pub fn iter(&self) -> impl Iterator<Item = &Notification> {
        self.by_number.values()
    }

    /// The earliest time at which a notification is sent.
    pub fn next_due_at(&self) -> Option<Millis> {
        if self.queues.is_empty() {
            return None;
        }
        // Without a free slot only those in flight have a time: an answer or its absence frees one.
        let is_full = self.in_flight() >= IN_FLIGHT;
        let queues = self.queues.values().filter(|queue| queue.in_flight || !is_full);
        queues.map(|queue| queue.due_at).min()
    }

    fn pending(&self) -> usize {
        self.queues.values().map(|queue| queue.pending.len()).sum()
    }

    fn in_flight(&self) -> usize {
        self.queues.values().filter(|queue| queue.in_flight).count()
    }

    /// Adds a notification to the queue of its target. A full queue counts it in a summary at its end instead. `id_of` gets the
    /// number.
    pub(super) fn post(
        &mut self,
        posted: &Posted,
        id_of: impl FnOnce(u64) -> String,
        body: impl FnOnce(bool) -> serde_json::Value,
    ) {
        if self.gone.contains(posted.target) {
            return;
        }
        let length = self
            .queues
            .get(posted.target)
            .map_or(0, |queue| queue.pending.len());
        let is_full = length >= NOTIFICATIONS_PENDING || self.pending() >= NOTIFICATIONS_PENDING_OF_RUN;
        let is_posted_anyway = posted.is_end && length < NOTIFICATIONS_PENDING + ENDS_PENDING;
        let is_summary = is_full && !is_posted_anyway;
        if is_summary && self.add_to_summary(posted) {
            return;
        }
        self.last_number += 1;
        let number = self.last_number;
        let notification = Notification {
            number,
            id: id_of(number),
            target: posted.target.clone(),
            of_deployment: posted.of_deployment,
            kind: match is_summary {
                true => super::NOTIFICATIONS_SKIPPED.into(),
                false => posted.kind.into(),
            },
            seq: posted.seq,
            status: NotificationStatus::Pending,
            created_at: posted.now,
            attempts: 0,
            last_error: None,
            next_attempt_at: None,
            ended_at: None,
            gone: false,
            skipped: is_summary.then(|| Skipped {
                count: 1,
                first_seq: posted.seq,
                last_seq: posted.seq,
                kinds: BTreeMap::from([(posted.kind.to_string(), 1)]),
            }),
            body: Some(body(is_summary)),
        };
        self.by_number.insert(number, notification);
        self.changed.insert(number);
        let queue = self.queues.entry(posted.target.clone());
        let queue = queue.or_insert_with(|| Queue::due(posted.now));
        queue.pending.push_back(number);
    }

    /// Counts the event in the summary at the end of the queue, if there is one that was not sent yet.
    fn add_to_summary(&mut self, posted: &Posted) -> bool {
        let queue = self.queues.get(posted.target);
        let last = queue.filter(|queue| queue.pending.len() > 1 || !queue.may_have_left);
        let Some(last) = last.and_then(|queue| queue.pending.back()) else {
            return false;
        };
        let notification = self.by_number.get_mut(last);
        let Some(skipped) = notification.and_then(|it| it.skipped.as_mut()) else {
            return false;
        };
        skipped.count += 1;
        skipped.last_seq = posted.seq;
        *skipped.kinds.entry(posted.kind.to_string()).or_default() += 1;
        self.changed.insert(*last);
        true
    }

    /// Sends what is due, with at most `calls` calls. What could not be sent stays due: the alarm brings a decision with calls.
    pub fn send_due(&mut self, now: Millis, mut calls: u32) {
        if self.queues.is_empty() {
            return;
        }
        let mut slots = IN_FLIGHT.saturating_sub(self.in_flight());
        let mut due: Vec<(Millis, &mut Queue)> = self
            .queues
            .values_mut()
            .filter(|queue| queue.due_at <= now)
            .map(|queue| (queue.due_at, queue))
            .collect();
        sort_by_key(&mut due, |(due_at, _)| *due_at);
        for (_, queue) in due {
            match (queue.in_flight, slots) {
                _ if calls == 0 => return,
                (false, 0) => continue,
                (false, _) => slots -= 1,
                (true, _) => {}
            }
            calls -= 1;
            let number = queue.pending[0];
            queue.in_flight = true;
            queue.may_have_left = true;
            queue.due_at = now.saturating_add(ANSWER_MS);
            self.sent.insert(number);
        }
    }

    /// What became of an attempt. An answer to a notification that has ended changes nothing.
    pub fn answered(
        &mut self,
        number: u64,
        report: NotificationReport,
        now: Millis,
        settings: NotifySettings,
    ) {
        let Some(notification) = self.by_number.get_mut(&number).filter(|it| it.is_pending()) else {
            return;
        };
        notification.attempts += 1;
        let target = notification.target.clone();
        match report {
            NotificationReport::Delivered => self.end(number, NotificationStatus::Delivered, None, now),
            NotificationReport::Refused { message } => {
                self.end(number, NotificationStatus::Refused, Some(message), now);
            }
            NotificationReport::Gone => {
                notification.gone = true;
                let message = "the target answered with status 410: it wants no more notifications";
                self.end(number, NotificationStatus::Refused, Some(message.into()), now);
                while let Some(queue) = self.queues.get(&target) {
                    let next = queue.pending[0];
                    self.end(next, NotificationStatus::Refused, Some(message.into()), now);
                }
                self.gone.insert(target);
            }
            NotificationReport::Failed {
                message,
                retry_after_ms,
            } => {
                let given_up_at = notification.created_at.saturating_add(settings.give_up_ms);
                if now >= given_up_at {
                    return self.end(number, NotificationStatus::Failed, Some(message), now);
                }
                let delay_ms = delay_ms(notification, settings.retry_ms);
                let delay_ms = delay_ms.max(retry_after_ms.unwrap_or(0).min(RETRY_MAX_MS));
                // The last attempt is made at the end of the time.
                let at = now.saturating_add(delay_ms).min(given_up_at);
                notification.last_error = Some(truncate(message, ERROR_BYTES));
                notification.next_attempt_at = Some(at);
                self.changed.insert(number);
                if let Some(queue) = self.queues.get_mut(&target) {
                    queue.due_at = at;
                    queue.in_flight = false;
                }
            }
        }
    }

    fn end(&mut self, number: u64, status: NotificationStatus, error: Option<String>, now: Millis) {
        let notification = self.by_number.get_mut(&number).expect("looked up by the caller");
        notification.status = status;
        notification.last_error = error.map(|message| truncate(message, ERROR_BYTES));
        notification.next_attempt_at = None;
        notification.ended_at = Some(now);
        notification.body = None;
        self.changed.insert(number);
        self.ended.insert(number);
        let target = &notification.target;
        let queue = self
            .queues
            .get_mut(target)
            .expect("a pending notification is in a queue");
        queue.pending.retain(|other| *other != number);
        match queue.pending.is_empty() {
            true => {
                self.queues.remove(target);
            }
            false => {
                *queue = Queue {
                    pending: std::mem::take(&mut queue.pending),
                    ..Queue::due(now)
                };
            }
        }
        self.forget_oldest();
    }

    /// The last number is kept, so that numbers are not used again, and so is what the target's refusal is known by.
    fn forget_oldest(&mut self) {
        while self.ended.len() > NOTIFICATIONS_KEPT {
            let may_go = |number: &&u64| !self.by_number[number].gone;
            let Some(oldest) = self.ended.iter().find(may_go).copied() else {
                return;
            };
            self.ended.remove(&oldest);
            self.by_number.remove(&oldest);
            self.changed.remove(&oldest);
            self.deleted.insert(oldest);
        }
    }

    /// The changed rows since the last call, and the notifications to send.
    pub fn take_changes(&mut self) -> (Vec<Write>, Vec<Command>) {
        if self.changed.is_empty() && self.deleted.is_empty() && self.sent.is_empty() {
            return Default::default();
        }
        let copy = |number: &u64| Box::new(self.by_number[number].clone());
        let mut writes: Vec<Write> = std::mem::take(&mut self.changed)
            .iter()
            .map(|number| Write::SaveNotification(copy(number)))
            .collect();
        let deleted = std::mem::take(&mut self.deleted).into_iter();
        writes.extend(deleted.map(|number| Write::DeleteNotification { number }));
        let commands = std::mem::take(&mut self.sent)
            .iter()
            .map(|number| Command::SendNotification(copy(number)))
            .collect();
        (writes, commands)
    }
}

/// Doubles with each attempt, plus up to half of it. The part is taken from the id: runs that notify the same target at the same
/// time do not all repeat at the same time.
fn delay_ms(notification: &Notification, first_ms: u64) -> u64 {
    let doublings = notification.attempts.saturating_sub(1).min(20);
    let delay_ms = first_ms.saturating_mul(1 << doublings).min(RETRY_MAX_MS);
    let seed = notification
        .id
        .bytes()
        .fold(u64::from(notification.attempts), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    delay_ms + (seed >> 16) % (delay_ms / 2 + 1)
}
