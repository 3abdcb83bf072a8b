//! Events that tasks emit: each reaches every workflow that it triggers, under one key, however often it is delivered; and no
//! event of unfinished work is published.

use std::collections::{BTreeMap, BTreeSet};

use curfew::protocol::task::Emitted;
use curfew::run::{Message, Token, TokenStatus, Write};
use curfew::simulate::Store;
use serde_json::{Value, json};

use super::environment::Environment;

/// The workflows that every event triggers.
const LISTENERS: [&str; 3] = ["archive", "bill", "notify"];

#[derive(Default)]
pub struct Bus {
    /// What was posted, by key.
    posted: BTreeMap<String, Value>,
    heard: BTreeSet<(String, &'static str)>,
}

/// What a task has emitted that an attempt reports as done.
pub fn events_of(attempt: &str, count: u64) -> Vec<Emitted> {
    (0..count)
        .map(|number| Emitted {
            name: "news".into(),
            payload: json!({"attempt": attempt, "number": number}),
        })
        .collect()
}

impl Environment {
    /// Publishes an event to the workflows after `after`. `Err`: only those up to this one were reached.
    pub fn publish(&self, key: &str, payload: &Value, after: Option<&str>) -> Result<(), Option<String>> {
        assert_eq!(
            self.bus.borrow().posted.get(key),
            Some(payload),
            "{key} was posted otherwise, or never saved"
        );
        let mut last = after.map(str::to_string);
        for listener in LISTENERS {
            if after.is_some_and(|after| listener <= after) {
                continue;
            }
            if self.chance(10) {
                self.outcome.borrow_mut().events_in_parts += 1;
                return Err(last);
            }
            self.bus.borrow_mut().heard.insert((key.to_string(), listener));
            last = Some(listener.to_string());
        }
        Ok(())
    }

    /// What one commit of a run posts belongs to the tokens that it saves as done.
    pub fn check_events(&self, id: &str, store: &Store, writes: &[Write]) {
        for write in writes {
            if let Some(Message::Emit { key, payload, .. }) = write.message() {
                let before = self.bus.borrow_mut().posted.insert(key.clone(), payload.clone());
                assert!(
                    before.as_ref().is_none_or(|before| before == payload),
                    "{key} is of two events"
                );
                self.outcome.borrow_mut().emitted += u64::from(before.is_none());
            }
        }
        // Of several decisions in one commit the last one counts.
        let mut seen = BTreeSet::new();
        for write in writes.iter().rev() {
            if let Write::SaveToken(token) = write
                && seen.insert(token.id)
                && !is_skipped(writes, token)
            {
                self.check_events_of(id, store, token);
            }
        }
    }

    fn check_events_of(&self, id: &str, store: &Store, token: &Token) {
        let attempt = format!("{id}/{}@{}", token.id, token.epoch);
        let started_at = store.header().map(|header| header.started_at);
        let prefix = format!("{id}/{}/{}/", started_at.unwrap_or_default(), token.id);
        let bus = self.bus.borrow();
        let posted: Vec<&Value> = bus
            .posted
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix))
            .map(|(_, payload)| payload)
            .collect();
        let output = token
            .output
            .as_ref()
            .filter(|output| output["attempt"] == attempt.as_str());
        let emits = output.map_or(0, |output| output["emits"].as_u64().unwrap_or(0));
        match token.status {
            TokenStatus::Completed if output.is_some() => {
                assert_eq!(posted.len() as u64, emits, "{attempt} posted {posted:?}");
                assert!(
                    posted
                        .iter()
                        .all(|payload| payload["attempt"] == attempt.as_str())
                );
            }
            // One whose join failed had done its work.
            TokenStatus::Failed | TokenStatus::TimedOut if token.join.is_none() => {
                assert!(posted.is_empty(), "{attempt} failed and posted {posted:?}");
            }
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::Executing
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::AwaitingHuman
            | TokenStatus::Suspended => {
                assert!(posted.is_empty(), "{attempt} is not done and posted {posted:?}");
            }
            // Cut off or replaced after it was done.
            TokenStatus::Completed
            | TokenStatus::WaitingForSiblings
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => {}
        }
    }

    /// When all runs are over, every event has reached every workflow.
    pub fn check_all_published(&self) {
        let bus = self.bus.borrow();
        for key in bus.posted.keys() {
            for listener in LISTENERS {
                let heard = bus.heard.contains(&(key.clone(), listener));
                assert!(heard, "{key} never reached {listener}");
            }
        }
    }
}

/// A person has skipped the failed token: it goes on with its result, and what it would have emitted is dropped.
fn is_skipped(writes: &[Write], token: &Token) -> bool {
    writes.iter().any(|write| {
        let Write::SaveGate(gate) = write else {
            return false;
        };
        let choice = gate.decision.as_ref().map(|decision| decision.choice.as_str());
        choice == Some("skip") && gate.token_id == Some(token.id.to_string())
    })
}
