//! A run put together again from what the store remembers. What is not stored is told by what is: joins by the
//! tokens that wait at them, branches by the tokens in them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::definition::wait::Wait;
use crate::definition::workflow::NodeKind;
use crate::run::context::Context;
use crate::run::fan::instances::Instance;
use crate::run::header::{Header, Settings};
use crate::run::message::Message;
use crate::run::outbox::OutboxEntry;
use crate::run::pending_changes::PendingChanges;
use crate::run::state::{Due, Run};
use crate::run::token::{Token, TokenStatus};
use crate::run::wait::gate::{GateState, GateStatus};

/// A run as the store remembers it.
pub struct StoredRun {
    pub header: Header,
    pub input: Value,
    pub context: Vec<(String, String)>,
    /// Names of the context that tokens kept when they ended.
    pub context_on_tokens: Vec<(String, Value)>,
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
    pub fn recall(snapshot: Rc<Snapshot>, settings: Settings, stored: StoredRun) -> Result<Run, String> {
        let mut context = Context::new(Rc::new(stored.input));
        for (key, text) in &stored.context {
            context.restore(key, text)?;
        }
        for (key, value) in stored.context_on_tokens {
            context.restore_kept(&key, value)?;
        }
        let mut run = Run::build(stored.header, snapshot, settings, context);
        run.born = stored.counts.values().sum();
        run.counts = stored.counts;
        run.alarm_at = stored.alarm_at;
        run.signals = stored.signals;
        run.noted = stored.noted;
        run.failed_wakes = stored.failed_wakes;
        run.late = stored.late.into_iter().collect();
        run.gates = stored
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
        for instance in stored.instances {
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
        for token in stored.live {
            run.recall_token(token);
        }
        for (id, message) in stored.outbox {
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
        run.changes = PendingChanges::default();
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
        if let (NodeKind::Wait(wait), TokenStatus::Suspended) =
            (&self.snapshot.workflow.nodes[token.node].kind, token.status)
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
