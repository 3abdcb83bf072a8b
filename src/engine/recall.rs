//! A run put together again from what the store remembers. What is not remembered is told by what is: joins by the
//! tokens that wait at them, branches by the tokens in them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::branch::Instance;
use super::conclude::Scratch;
use super::context::Context;
use super::effect::Message;
use super::gate::{GateState, GateStatus};
use super::header::{Header, Settings};
use super::outbox::OutboxEntry;
use super::run::{Due, Run};
use super::token::{Token, TokenStatus};
use crate::model::snapshot::Snapshot;
use crate::model::time::Millis;
use crate::model::wait::Wait;
use crate::model::workflow::Work;

/// A run as the store remembers it.
pub struct Remembered {
    pub header: Header,
    pub input: Value,
    pub context: Vec<(String, String)>,
    /// Names of the context that tokens kept when they ended.
    pub kept: Vec<(String, Value)>,
    pub live: Vec<Token>,
    pub counts: BTreeMap<TokenStatus, u64>,
    pub instances: Vec<Instance>,
    pub gates: Vec<GateState>,
    pub signals: BTreeMap<String, Vec<Value>>,
    pub outbox: Vec<(u64, Message)>,
    pub alarm_at: Option<Millis>,
    /// Events that have a row, and the attempts whose late result is one of them.
    pub noted: u64,
    pub late: Vec<(String, u64)>,
    /// How often in a row what woke the run could not be saved.
    pub failed_wakes: u32,
}

impl Run {
    /// Puts a run together again from what the store remembers.
    pub fn recall(snapshot: Rc<Snapshot>, settings: Settings, remembered: Remembered) -> Result<Run, String> {
        let mut context = Context::new(Rc::new(remembered.input));
        for (key, text) in &remembered.context {
            context.restore(key, text)?;
        }
        for (key, value) in remembered.kept {
            context.restore_kept(&key, value)?;
        }
        let mut run = Run::build(remembered.header, snapshot, settings, context);
        run.born = remembered.counts.values().sum();
        run.counts = remembered.counts;
        run.alarm_at = remembered.alarm_at;
        run.signals = remembered.signals;
        run.noted = remembered.noted;
        run.failed_wakes = remembered.failed_wakes;
        run.late = remembered.late.into_iter().collect();
        run.gates = remembered
            .gates
            .into_iter()
            .map(|gate| (gate.id.clone(), gate))
            .collect();
        run.stands_at = run
            .gates
            .values()
            .find(|gate| gate.token_id.is_none() && gate.status == GateStatus::Open)
            .map(|gate| gate.id.clone());
        let warn_at = run.snapshot.workflow.timeouts.warn_at;
        // Outer instances have lower numbers, so that each finds the one it was born in.
        for instance in remembered.instances {
            run.instances_born = run.instances_born.max(instance.id.0);
            if instance.closed {
                continue;
            }
            for (node, fan_in) in &instance.fan_ins {
                if let Some(at) = fan_in.due_at(warn_at) {
                    run.due.insert((at, Due::FanIn(instance.id, *node)));
                }
            }
            run.open_instance(instance);
        }
        for token in remembered.live {
            run.recall_token(token);
        }
        for (id, message) in remembered.outbox {
            run.messages_posted = run.messages_posted.max(id);
            // Nobody knows whether it arrived: it is due at once.
            let entry = OutboxEntry {
                message,
                attempts: 0,
                due_at: 0,
                may_have_left: true,
            };
            run.due.insert((0, Due::Message(id)));
            run.outbox.insert(id, entry);
        }
        run.scratch = Scratch::default();
        Ok(run)
    }

    fn recall_token(&mut self, token: Token) {
        if let Some(at) = token.due_at(self.patience()) {
            self.due.insert((at, Due::Token(token.id)));
        }
        self.enter_branch(&token);
        if let (Some(node), Some(order), TokenStatus::WaitingForSiblings) =
            (token.joins_at, token.arrival, token.status)
        {
            self.arrivals_seen = self.arrivals_seen.max(order);
            self.recall_arrival(&token, node, order);
        }
        if let (Work::Wait(wait), TokenStatus::Suspended) =
            (&self.snapshot.workflow.nodes[token.node].work, token.status)
            && let Wait::Signal { name, .. } = &**wait
        {
            self.listeners.entry(name.clone()).or_default().insert(token.id);
        }
        let is_task = self.snapshot.task_of(token.node).is_some();
        if token.status == TokenStatus::Suspended && is_task {
            self.called_back.insert(token.id);
        }
        let (id, is_joined) = (token.id, token.status == TokenStatus::WaitingForSiblings);
        self.tokens.insert(id, token);
        if is_joined {
            self.count_joined(id);
        }
    }
}
