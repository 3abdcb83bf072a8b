//! Publishes changes of runs to the index by its queue, a moment later and together with those of other runs.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use serde_json::json;
use worker::{QueueContentType, RawMessageBuilder};

use crate::host::Host;
use crate::index::batch::pack;
use crate::index::index_view::{self, GATE_BYTES};
use crate::index::pending::{Pending, Subject};
use crate::worker::platform::{self, deadline, log_error};
use crate::worker::run_object::workerd::Workerd;

thread_local! {
    /// The objects of this isolate with pending changes.
    static PUBLISHERS: RefCell<Vec<Weak<Host<Workerd>>>> = const { RefCell::new(Vec::new()) };
}

/// The delay of a change: a run that ends within it is one message and not two, and requests that wait for the run are
/// answered first. A message costs as much as three quarters of a second in memory.
const DELAY_MS: u64 = 250;

/// The first delay before a message that the queue refused is sent again, while the object is in memory.
const REPEAT_MS: u64 = 1_000;

impl Workerd {
    pub fn publish_soon(&self, add: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending.borrow_mut();
        let was_empty = pending.is_empty();
        add(&mut pending);
        if !was_empty || pending.is_empty() {
            return;
        }
        let host = self.host();
        PUBLISHERS.with_borrow_mut(|publishers| publishers.push(Rc::downgrade(&host)));
        wasm_bindgen_futures::spawn_local(async move {
            deadline::sleep(DELAY_MS).await;
            host.platform.publish_now();
        });
    }

    /// Publishes this run's changes, and those of ended runs of the isolate, which have nothing to add: on a busy isolate many
    /// runs share a message.
    fn publish_now(&self) {
        let this = self.host();
        let mut ready: Vec<Rc<Host<Workerd>>> = Vec::new();
        PUBLISHERS.with_borrow_mut(|publishers| {
            publishers.retain(|publisher| {
                let publisher = publisher.upgrade();
                let publisher = publisher.filter(|other| Rc::ptr_eq(other, &this) || is_complete(other));
                let is_kept = publisher.is_none();
                ready.extend(publisher);
                is_kept
            });
        });
        let mut updates = Vec::new();
        for host in &ready {
            for (subject, text) in take_updates(host) {
                updates.push(((Rc::clone(host), subject), text));
            }
        }
        for message in pack(updates) {
            self.send_to_queue("INDEX_QUEUE", message.text, move || {
                for (host, subject) in message.subjects {
                    host.platform.publish_was_refused(subject);
                }
            });
        }
    }

    fn publish_was_refused(&self, subject: Subject) {
        let Some(delays) = self.pending.borrow_mut().refused(subject) else {
            return;
        };
        let first = platform::number(&self.env, "CURFEW_INDEX_REPEAT_MS").unwrap_or(REPEAT_MS);
        let host = self.host();
        wasm_bindgen_futures::spawn_local(async move {
            deadline::sleep(first.saturating_mul(delays)).await;
            host.platform.publish_soon(Pending::retry_after_delay);
        });
    }

    /// `refused` is called if the queue does not take the message.
    pub fn send_to_queue(&self, queue: &'static str, message: String, refused: impl FnOnce() + 'static) {
        let Ok(queue) = self.env.queue(queue) else {
            return log_error("queue_missing", queue);
        };
        // As text: the platform's own serialisation would make maps of the objects, and lose them.
        let message = RawMessageBuilder::new(message.into());
        wasm_bindgen_futures::spawn_local(async move {
            let sent = queue
                .send_raw(message.build_with_content_type(QueueContentType::Text))
                .await;
            if let Err(error) = sent {
                log_error("queue_failed", &error.to_string());
                refused();
            }
        });
    }
}

/// Whether an ended run can be published by another object of the isolate: from memory alone, because the platform lets an object read
/// only its own rows. A run that was loaded has its metrics in its rows; its own timer publishes it.
fn is_complete(host: &Host<Workerd>) -> bool {
    host.with_run(|run| run.header.status.is_terminal() && run.metrics().is_some())
        .unwrap_or(true)
}

/// None if the run is not in memory: it was deleted, or its last decision could not be committed.
fn take_updates(host: &Host<Workerd>) -> Vec<(Subject, String)> {
    let due = host.platform.pending.borrow_mut().take();
    let summary = match due.run {
        true => host.summary().ok(),
        false => None,
    };
    let updates = host.with_run(|run| {
        let mut updates = Vec::new();
        for sample in &due.latencies {
            updates.push((Subject::Latency, json!({"latency": sample}).to_string()));
        }
        for gate in run.gates().filter(|gate| due.gates.contains(&gate.id)) {
            let view = index_view::gate(&run.header.id, gate, GATE_BYTES);
            updates.push((Subject::Gate(gate.id.clone()), json!({"gate": view}).to_string()));
        }
        if let Some(summary) = summary {
            updates.push((Subject::Run, json!(summary).to_string()));
        }
        updates
    });
    updates.unwrap_or_else(|_not_in_memory| {
        host.platform.pending.borrow_mut().put_back(due);
        Vec::new()
    })
}
