//! One run with its object: what is in memory, what is stored, when its alarm rings.

use std::cell::Ref;
use std::rc::Rc;

use crate::base::from_json::from_json;
use crate::host::Host;
use crate::run::{GateState, GateStatus, Notification, NotificationStatus, TokenStatus};
use crate::simulate::platform::{Durable, SimPlatform};
use crate::simulate::store::Store;
use crate::simulate::world::World;
use crate::storage::commit::{NOTIFICATION, OUTBOX};

pub struct SimulatedRun<W: World> {
    pub durable: Rc<Durable>,
    /// The object, while it is in memory.
    pub host: Option<Host<SimPlatform<W>>>,
    /// Counts how often the object came into memory.
    pub incarnation: u64,
}

impl<W: World> Default for SimulatedRun<W> {
    fn default() -> SimulatedRun<W> {
        SimulatedRun {
            durable: Rc::default(),
            host: None,
            incarnation: 0,
        }
    }
}

impl<W: World> SimulatedRun<W> {
    pub fn store(&self) -> Ref<'_, Store> {
        self.durable.store.borrow()
    }

    pub fn is_deleted(&self) -> bool {
        self.durable.deleted.get()
    }

    /// Deleted, or never started.
    pub fn is_over(&self) -> bool {
        self.is_deleted() || self.store().status().is_none()
    }

    pub fn is_open(&self) -> bool {
        !self.is_over() && !self.store().has_ended()
    }

    /// Whether an alarm has an effect besides the deletion of the storage. An ended run may have messages to send.
    pub fn has_something_to_do(&self) -> bool {
        if self.is_open() {
            return true;
        }
        let store = self.store();
        let has = |from: &str, to: &str| store.run.range(from.to_string()..to.to_string()).next().is_some();
        !self.is_over() && (has(OUTBOX, "outbox0") || self.has_pending_notification())
    }

    fn has_pending_notification(&self) -> bool {
        let store = self.store();
        let rows = store
            .run
            .range(NOTIFICATION.to_string().."notification0".to_string());
        let read = rows.map(|(_, row)| from_json::<Notification>(row));
        read.filter_map(Result::ok)
            .any(|notification| notification.status == NotificationStatus::Pending)
    }

    pub fn is_paused(&self) -> bool {
        let header = self.store().header();
        header.is_some_and(|header| header.paused_at.is_some())
    }

    pub fn open_gates(&self) -> Vec<GateState> {
        let store = self.store();
        let rows = store.run.range("gate/".to_string().."gate0".to_string());
        let gates = rows.map(|(_, row)| from_json::<GateState>(row).expect("a gate can be read"));
        gates.filter(|gate| gate.status == GateStatus::Open).collect()
    }

    pub fn has_suspended(&self) -> bool {
        let suspended = TokenStatus::Suspended.name();
        self.store()
            .tokens
            .values()
            .any(|(status, _)| status == suspended)
    }

    /// The object leaves memory.
    pub fn evict(&mut self) {
        self.host = None;
        self.incarnation += 1;
    }
}
