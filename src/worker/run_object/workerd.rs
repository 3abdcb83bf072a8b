//! `host::Platform` with workerd: the object's storage, clock, executor connections, queues and stubs.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures_channel::oneshot;
use serde_json::{Value, json};
use worker::{Env, State};

use crate::base::time::Millis;
use crate::host::{self, Delivery, Host, IndexChange, LiveEvents, Platform, SubrequestBudget};
use crate::index::pending::Pending;
use crate::protocol::notification::NotificationOrder;
use crate::protocol::task::TaskMessage;
use crate::storage::restore::Snapshots;
use crate::worker::api::prepare_start::{PUBLIC_URL_ADVICE, public_url};
use crate::worker::platform::executor_client::{Connection, Handlers, Intervals};
use crate::worker::platform::watchers::Watchers;
use crate::worker::platform::{self, deadline, http_client};
use crate::worker::run_object::deliver;
use crate::worker::run_object::settings;
use crate::worker::run_object::storage::ObjectStorage;
use crate::worker::task_consumer::intervals;

thread_local! {
    /// Shared by all objects of the isolate.
    static SNAPSHOTS: Rc<RefCell<Snapshots>> = Rc::default();
}

pub struct Workerd {
    /// The host that owns this platform.
    host: Weak<Host<Workerd>>,
    pub env: Env,
    storage: ObjectStorage,
    executor: Option<http_client::Peer>,
    handlers: Handlers,
    intervals: Intervals,
    watchers: Option<Watchers>,
    /// Changes that the index has yet to learn of.
    pub pending: RefCell<Pending>,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    invocations: Cell<u64>,
}

pub fn host(state: State, env: Env) -> Rc<Host<Workerd>> {
    let config = settings::config(&env);
    Rc::new_cyclic(|host: &Weak<Host<Workerd>>| {
        let platform = Workerd {
            host: Weak::clone(host),
            watchers: Watchers::of(state.as_raw()),
            storage: ObjectStorage::new(state),
            executor: http_client::service(&env, "EXECUTOR"),
            handlers: handlers(host),
            intervals: intervals(&env),
            env,
            pending: RefCell::default(),
            waiting: RefCell::default(),
            invocations: Cell::default(),
        };
        Host::new(platform, config, SNAPSHOTS.with(Rc::clone))
    })
}

/// Messages of executors reach the host as long as it is in memory.
fn handlers(host: &Weak<Host<Workerd>>) -> Handlers {
    let (for_reports, for_closed) = (Weak::clone(host), Weak::clone(host));
    Handlers::new(
        move |number, text| {
            if let Some(host) = for_reports.upgrade() {
                host.reports_arrived(number, &text);
            }
        },
        move |number, reason| {
            if let Some(host) = for_closed.upgrade() {
                host.connection_closed(number, reason);
            }
        },
    )
}

impl Workerd {
    pub fn host(&self) -> Rc<Host<Workerd>> {
        self.host.upgrade().expect("a platform is used by its host only")
    }

    /// A request or an alarm came to the object.
    pub fn count_invocation(&self) {
        self.invocations.set(self.invocations.get() + 1);
    }

    /// What the platform bills for, since the object came into memory.
    pub fn bill(&self, executor_calls: u32) -> String {
        format!(
            "rows_written={};rows_read={};object_requests={};executor_calls={executor_calls}",
            self.storage.sqlite.rows_written(),
            self.storage.sqlite.rows_read(),
            self.invocations.get(),
        )
    }
}

impl host::Connection for Connection {
    fn send(&self, orders: &str) {
        Connection::send(self, orders);
    }

    fn finish(&self) {
        Connection::finish(self);
    }

    fn abort(&self) {
        Connection::abort(self);
    }

    fn silent_ms(&self) -> u64 {
        Connection::silent_ms(self) as u64
    }
}

impl Platform for Workerd {
    type Connection = Connection;
    type Storage = ObjectStorage;

    fn storage(&self) -> &ObjectStorage {
        &self.storage
    }

    fn now(&self) -> Millis {
        platform::now()
    }

    fn random_id(&self) -> host::Result<String> {
        platform::random_id().map_err(|error| host::Error(error.to_string()))
    }

    fn log(&self, line: Value) {
        platform::log(line);
    }

    fn connect(&self, number: u32) -> Option<Connection> {
        let executor = self.executor.as_ref()?;
        Some(self.handlers.connect(executor, number, self.intervals))
    }

    fn send_one(&self, number: u32, order: &str) -> Option<Connection> {
        let executor = self.executor.as_ref()?;
        Some(self.handlers.send_one(executor, number, order))
    }

    fn public_url(&self) -> Result<String, String> {
        public_url(&self.env).ok_or_else(|| PUBLIC_URL_ADVICE.to_string())
    }

    fn enqueue(&self, message: &TaskMessage) {
        self.send_to_queue("TASK_QUEUE", json!(message).to_string(), || {});
    }

    fn deliver(&self, budget: &SubrequestBudget, delivery: Delivery) {
        let (host, budget) = (self.host(), budget.clone());
        wasm_bindgen_futures::spawn_local(async move {
            let Delivery { id, kind, payload } = delivery;
            let result = deliver::send(&host.platform.env, &budget, payload).await;
            host.delivery_ended(&budget, id, kind, result);
        });
    }

    fn notify(&self, budget: &SubrequestBudget, number: u64, order: NotificationOrder) {
        let (host, budget) = (self.host(), budget.clone());
        wasm_bindgen_futures::spawn_local(async move {
            let report = deliver::notify(host.platform.executor.as_ref(), &order).await;
            host.notification_ended(&budget, number, report);
        });
    }

    fn publish(&self, change: IndexChange) {
        match change {
            IndexChange::Run => self.publish_soon(Pending::add_run),
            IndexChange::Gate(id) => self.publish_soon(|pending| pending.add_gate(&id)),
            IndexChange::Latency(sample) => self.publish_soon(|pending| pending.add_latency(sample)),
            // The sweep finds a removal that is lost.
            IndexChange::Removed(removed) => {
                self.send_to_queue("INDEX_QUEUE", json!({"removed": removed}).to_string(), || {});
            }
        }
    }

    fn publish_refused(&self) {
        if self.pending.borrow().was_refused() {
            self.publish_soon(Pending::retry);
        }
    }

    async fn wait_for_end(&self, millis: u64) {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push(sender);
        deadline::within(millis, receiver).await;
    }

    fn notify_run_ended(&self) {
        for sender in self.waiting.take() {
            // A request that does not wait any more has dropped its receiver.
            sender.send(()).ok();
        }
    }

    fn is_watched(&self) -> bool {
        self.watchers.as_ref().is_some_and(Watchers::is_watched)
    }

    fn publish_events(&self, events: LiveEvents) {
        if let Some(watchers) = &self.watchers {
            let (after, last) = (events.after as f64, events.last as f64);
            watchers.publish(after, last, &events.lines, events.has_ended);
        }
    }

    fn publish_progress(&self, line: &str) {
        if let Some(watchers) = &self.watchers {
            watchers.publish_progress(line);
        }
    }
}
