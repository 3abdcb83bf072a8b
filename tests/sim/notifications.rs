//! Receivers of notifications, one of which is down at first. Each notification that was saved reaches its receiver under one id,
//! in the order of its target, however often the object crashes; and there is one for each event that a target asks for.

use std::collections::{BTreeMap, BTreeSet};

use curfew::base::time::{MINUTE, Millis};
use curfew::protocol::notification::{NotificationOrder, NotificationReport};
use curfew::run::{Notification, NotificationStatus};
use curfew::simulate::{Store, World};
use curfew::storage::commit::NOTIFICATION;
use serde_json::{Value, json};

use super::environment::Environment;

/// How long the second receiver is down.
const DOWN_MS: u64 = 10 * MINUTE;

const UP: &str = "https://up.example/hook";
const DOWN: &str = "https://down.example/hook";

const KINDS_UP: [&str; 6] = [
    "gate_opened",
    "gate_reminded",
    "run_completed",
    "run_failed",
    "run_timed_out",
    "run_cancelled",
];
const KINDS_DOWN: [&str; 4] = ["gate_opened", "deadline_warning", "token_failed", "run_cancelled"];

/// Targets that some workflows have.
pub fn targets() -> Value {
    json!([{"on": KINDS_UP, "url": UP}, {"on": KINDS_DOWN, "url": DOWN, "secret": "${secret.SIGN}"}])
}

/// The notifications of one run to one receiver.
type Receiver = (String, String);

#[derive(Default)]
pub struct Receivers {
    started_at: Option<Millis>,
    /// Id and kind of what was saved, by number.
    saved: BTreeMap<Receiver, BTreeMap<u64, (String, String)>>,
    received: BTreeMap<Receiver, BTreeSet<String>>,
    /// Notifications for events up to a number, because too many were waiting.
    skipped: BTreeMap<Receiver, Vec<(u64, u64)>>,
    bodies: BTreeMap<String, String>,
}

impl Environment {
    /// After each commit: what is saved keeps its content, and what counts as delivered was received.
    pub fn check_notifications(&self, run: &str, store: &Store) {
        let mut receivers = self.receivers.borrow_mut();
        let rows = store
            .run
            .range(NOTIFICATION.to_string().."notification0".to_string());
        for (key, row) in rows {
            let notification: Notification = serde_json::from_str(row).expect("a notification can be read");
            let receiver = (run.to_string(), notification.target.url.clone());
            check_kind(&notification);
            let content = (notification.id.clone(), notification.kind.clone());
            let saved = receivers.saved.entry(receiver.clone()).or_default();
            let number = key[NOTIFICATION.len()..].parse().expect("a number");
            let before = saved.insert(number, content.clone());
            assert!(
                before.is_none_or(|before| before == content),
                "{content:?} has changed"
            );
            if let Some(skipped) = &notification.skipped {
                let ranges = receivers.skipped.entry(receiver.clone()).or_default();
                ranges.push((skipped.first_seq, skipped.last_seq));
            }
            if notification.status == NotificationStatus::Delivered {
                let received = receivers.received.get(&receiver);
                assert!(
                    received.is_some_and(|ids| ids.contains(&notification.id)),
                    "{notification:?} was never received"
                );
            }
        }
    }

    /// A receiver gets a notification. `None`: the answer is lost.
    pub fn receive(&self, order: &NotificationOrder) -> Option<NotificationReport> {
        let mut receivers = self.receivers.borrow_mut();
        let now = self.now.get();
        let started_at = *receivers.started_at.get_or_insert(now);
        if order.target.url == DOWN && now < started_at + DOWN_MS {
            self.outcome.borrow_mut().notifications_failed += 1;
            return Some(NotificationReport::Failed {
                message: "the target answered with status 503".into(),
                retry_after_ms: self.pick(&[None, None, Some(20_000)]),
            });
        }
        let receiver = (order.run_id.clone(), order.target.url.clone());
        let saved = &receivers.saved[&receiver];
        let found = saved.iter().find(|(_, (id, _))| *id == order.id);
        let (number, (id, kind)) = found.unwrap_or_else(|| panic!("{order:?} was never saved"));
        let body: Value = serde_json::from_str(&order.body).expect("a body is JSON");
        assert_eq!(body["kind"], kind.as_str(), "{order:?}");
        assert_eq!(body["run"]["id"], order.run_id.as_str(), "{order:?}");
        let earlier: Vec<String> = saved.range(..number).map(|(_, (id, _))| id.clone()).collect();
        let id = id.clone();
        let received = receivers.received.entry(receiver).or_default();
        let is_first = received.insert(id.clone());
        assert!(
            earlier.iter().all(|id| received.contains(id)),
            "{order:?} overtook another one"
        );
        let before = receivers.bodies.insert(id, order.body.clone());
        assert!(
            before.is_none_or(|before| before == order.body),
            "the content has changed: {order:?}"
        );
        let mut outcome = self.outcome.borrow_mut();
        outcome.notifications += u64::from(is_first);
        outcome.notifications_repeated += u64::from(!is_first);
        drop(outcome);
        (!self.fault(|faults| faults.message_lost)).then_some(NotificationReport::Delivered)
    }

    /// When all runs are over: what was saved was received, and every event that a target asks for was saved.
    pub fn check_all_received(&self, run: &str, store: &Store) {
        let receivers = self.receivers.borrow();
        for (receiver, saved) in receivers.saved.iter().filter(|((id, _), _)| id == run) {
            for content in saved.values() {
                let received = receivers.received.get(receiver);
                assert!(
                    received.is_some_and(|ids| ids.contains(&content.0)),
                    "{receiver:?} never got {content:?}"
                );
            }
        }
        let snapshot: Value = serde_json::from_str(&store.run["snapshot"]).expect("a snapshot is JSON");
        if snapshot["workflow"]["notify"].is_null() {
            assert!(
                receivers.saved.keys().all(|(id, _)| id != run),
                "{run} has no target"
            );
            return;
        }
        for (url, kinds) in [(UP, &KINDS_UP[..]), (DOWN, &KINDS_DOWN[..])] {
            let receiver = (run.to_string(), url.to_string());
            let saved = receivers.saved.get(&receiver).map_or(0, BTreeMap::len);
            let ranges = receivers.skipped.get(&receiver);
            let events = store.all_events();
            let asked = events.iter().filter(|(_, kind)| kinds.contains(&kind.as_str()));
            let expected = asked.count();
            match ranges {
                None => assert_eq!(saved, expected, "{receiver:?}: {events:?}"),
                Some(_) => assert!(saved < expected, "{receiver:?}"),
            }
        }
    }
}

fn check_kind(notification: &Notification) {
    let kinds = match notification.target.url.as_str() {
        UP => &KINDS_UP[..],
        DOWN => &KINDS_DOWN[..],
        other => panic!("{other} is no target"),
    };
    let is_summary = notification.skipped.is_some();
    assert!(
        is_summary || kinds.contains(&notification.kind.as_str()),
        "{notification:?}"
    );
}
