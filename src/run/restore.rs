//! Rebuilds a run from its stored rows. The state of joins and branches is not stored: it is derived from the tokens that
//! wait at them or are in them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::definition::node::NodeKind;
use crate::definition::snapshot::Snapshot;
use crate::definition::wait::Wait;
use crate::run::context::Context;
use crate::run::fan::Instance;
use crate::run::header::{Header, Settings};
use crate::run::message::Message;
use crate::run::notification::Notification;
use crate::run::pending_changes::PendingChanges;
use crate::run::state::Run;
use crate::run::time::event_log::EventLog;
use crate::run::time::row_events::last_seq;
use crate::run::time::timers::{Timer, Timers};
use crate::run::token::tokens::Tokens;
use crate::run::token::{Token, TokenStatus};
use crate::run::wait::gate::GateState;
use crate::run::wait::gates::Gates;
use crate::run::wait::waits::{Awaited, Waits};

/// The stored rows of a run.
pub struct StoredRun {
    pub header: Header,
    pub input: Value,
    pub context: Vec<(String, String)>,
    /// Context names stored on the rows of ended tokens.
    pub context_on_tokens: Vec<(String, Value)>,
    pub live: Vec<Token>,
    pub counts: BTreeMap<TokenStatus, u64>,
    pub instances: Vec<Instance>,
    pub gates: Vec<GateState>,
    pub signals: BTreeMap<String, Vec<Value>>,
    pub outbox: Vec<(u64, Message)>,
    /// In the order of their numbers.
    pub notifications: Vec<Notification>,
    pub alarm_at: Option<Millis>,
    /// The number of the last event that is a row, or 0; the last one on the row of an ended token; and the attempts whose
    /// late result was logged.
    pub last_event: u64,
    pub last_token_event: u64,
    pub late: Vec<(String, u64)>,
    /// Consecutive wakes whose decision could not be saved.
    pub failed_wakes: u32,
}

impl StoredRun {
    /// The number of the run's last event.
    fn last_seq(&self) -> u64 {
        let rows = [
            last_seq(&self.header.events),
            self.last_event,
            self.last_token_event,
        ]
        .into_iter();
        let live = self.live.iter().map(|token| last_seq(&token.events));
        let instances = self.instances.iter().map(|instance| last_seq(&instance.events));
        let gates = self.gates.iter().map(|gate| last_seq(&gate.events));
        rows.chain(live).chain(instances).chain(gates).max().unwrap_or(0)
    }
}

impl Run {
    /// Rebuilds a run from its stored rows.
    pub fn restore(snapshot: Rc<Snapshot>, settings: Settings, stored: StoredRun) -> Result<Run, String> {
        let last_seq = stored.last_seq();
        let mut context = Context::new(Rc::new(stored.input));
        for (key, text) in &stored.context {
            context.restore(key, text)?;
        }
        for (key, value) in stored.context_on_tokens {
            context.restore_from_token(&key, value)?;
        }
        let mut run = Run::build(stored.header, snapshot, settings, context);
        run.tokens = Tokens::restored(stored.counts);
        run.timers = Timers::with_alarm(stored.alarm_at);
        run.waits = Waits::restore(stored.signals);
        run.event_log = EventLog::restored(last_seq, stored.last_event > 0, stored.late);
        run.failed_wakes = stored.failed_wakes;
        run.gates = Gates::restore(stored.gates);
        for instance in stored.instances {
            let id = instance.id;
            run.fans.restore(instance)?;
            run.set_fan_in_timers(id);
        }
        for token in stored.live {
            run.restore_token(token)?;
        }
        for (id, message) in stored.outbox {
            run.outbox.restore(id, message);
        }
        for notification in stored.notifications {
            run.notifications.restore(notification);
        }
        run.notifications.seen(last_seq);
        run.changes = PendingChanges::default();
        Ok(run)
    }

    fn restore_token(&mut self, token: Token) -> Result<(), String> {
        let due_at = token.due_at(self.timeout_config());
        self.timers.reschedule(Timer::Token(token.id), None, due_at);
        // The decision to end has closed every join.
        if !self.is_ending() {
            self.fans.restore_token(&token)?;
        }
        if let (Some(join), TokenStatus::WaitingForSiblings) = (token.join, token.status) {
            self.fans.restore_arrival(&token, join)?;
        }
        if let (NodeKind::Wait(wait), TokenStatus::Suspended) =
            (&self.snapshot.workflow.nodes[token.node].kind, token.status)
            && let Wait::Signal { name, .. } = &**wait
        {
            let name = name.clone();
            self.waits.begin(token.id, Awaited::Signal { name });
        }
        let is_task = self.snapshot.task_of(token.node).is_some();
        if token.status == TokenStatus::Suspended && is_task {
            self.waits.begin(token.id, Awaited::Callback);
        }
        if token.status == TokenStatus::WaitingForSiblings {
            self.fans.hold(token.id, token.value_bytes());
        }
        if token.is_held_back() {
            self.outbox.wait_for_room(token.id);
        }
        self.tokens.restore(token);
        Ok(())
    }
}
