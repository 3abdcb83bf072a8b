//! What leaves the object by a queue: news for the index, and rings for those who run tasks.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use serde_json::{Value, json};
use worker::{QueueContentType, RawMessageBuilder};

use crate::index::batch::{RemovedRun, pack};
use crate::index::index_view::{self, GATE_BYTES};
use crate::index::pending::{Pending, Subject};
use crate::index::run_summary::RunSummary;
use crate::run::TokenId;
use crate::worker::platform::{self, deadline};
use crate::worker::run_object::object::{Object, report};
use crate::worker::task_consumer::TaskMessage;

thread_local! {
    /// The objects of this isolate that have something to tell.
    static TELLERS: RefCell<Vec<Weak<Object>>> = const { RefCell::new(Vec::new()) };
}

/// The index hears of things this much later: a run that ends within it is one message and not two, and whoever waits
/// for the run is answered first. A message costs what three quarters of a second in memory cost.
const MOMENT_MS: u64 = 250;

/// Messages that the queue refused are sent again after this delay, while the object is in memory.
const REPEAT_MS: u64 = 1_000;

#[derive(Default)]
pub struct News {
    pending: RefCell<Pending>,
}

impl Object {
    /// Tells the index how the run stands. A lost message costs a stale list, never a run, until the sweep asks.
    pub(in crate::worker) fn announce(self: &Rc<Self>) {
        self.tell_soon(Pending::add_run);
    }

    /// Says again what the queue refused.
    pub(in crate::worker) fn announce_again(self: &Rc<Self>) {
        if self.news.pending.borrow().was_refused() {
            self.tell_soon(Pending::retry);
        }
    }

    pub(in crate::worker) fn announce_gate(self: &Rc<Self>, id: &str) {
        self.tell_soon(|pending| pending.add_gate(id));
    }

    pub(in crate::worker) fn announce_latency(self: &Rc<Self>, sample: Value) {
        self.tell_soon(|pending| pending.add_latency(sample));
    }

    fn tell_soon(self: &Rc<Self>, add: impl FnOnce(&mut Pending)) {
        let mut pending = self.news.pending.borrow_mut();
        let is_first = pending.is_empty();
        add(&mut pending);
        if !is_first || pending.is_empty() {
            return;
        }
        TELLERS.with_borrow_mut(|tellers| tellers.push(Rc::downgrade(self)));
        let object = Rc::clone(self);
        wasm_bindgen_futures::spawn_local(async move {
            deadline::sleep(MOMENT_MS).await;
            object.tell();
        });
    }

    /// Its own news, and with it that of the runs beside it that have ended: they have nothing to add. On a busy isolate
    /// many runs share a message.
    fn tell(self: &Rc<Self>) {
        let mut told: Vec<Rc<Object>> = Vec::new();
        TELLERS.with_borrow_mut(|tellers| {
            tellers.retain(|teller| {
                let teller = teller.upgrade();
                let ready = teller.filter(|other| Rc::ptr_eq(other, self) || other.has_ended());
                let stays = ready.is_none();
                told.extend(ready);
                stays
            });
        });
        let mut news = Vec::new();
        for object in &told {
            for (subject, text) in object.take_news() {
                news.push(((Rc::clone(object), subject), text));
            }
        }
        for message in pack(news) {
            // Only what was in it is said again, each by its own object.
            self.put_into("INDEX_QUEUE", message.text, move || {
                for (object, subject) in message.subjects {
                    object.was_refused(subject);
                }
            });
        }
    }

    fn was_refused(self: &Rc<Self>, subject: Subject) {
        let Some(delays) = self.news.pending.borrow_mut().refused(subject) else {
            return;
        };
        let first = platform::number(&self.env, "CURFEW_INDEX_REPEAT_MS").unwrap_or(REPEAT_MS);
        let object = Rc::clone(self);
        wasm_bindgen_futures::spawn_local(async move {
            deadline::sleep(first.saturating_mul(delays)).await;
            object.tell_soon(Pending::retry_after_delay);
        });
    }

    fn has_ended(&self) -> bool {
        self.with_run(|run| run.header.status.is_terminal())
            .unwrap_or(true)
    }

    /// Nothing, where the run is not in memory: it was deleted, or what it decided last could not be saved.
    fn take_news(&self) -> Vec<(Subject, String)> {
        let due = self.news.pending.borrow_mut().take();
        let told = self.with_run(|run| {
            let mut told = Vec::new();
            for sample in &due.latencies {
                told.push((Subject::Latency, json!({"latency": sample}).to_string()));
            }
            for gate in run.gates().filter(|gate| due.gates.contains(&gate.id)) {
                let view = index_view::gate(&run.header.id, gate, GATE_BYTES);
                told.push((Subject::Gate(gate.id.clone()), json!({"gate": view}).to_string()));
            }
            if due.run {
                let summary = RunSummary::of(run, platform::now());
                told.push((Subject::Run, json!(summary).to_string()));
            }
            told
        });
        told.unwrap_or_else(|_| {
            self.news.pending.borrow_mut().put_back(due);
            Vec::new()
        })
    }

    /// The run is kept no longer: its rows leave the index. Where this is lost, the sweep finds them.
    pub(in crate::worker) fn announce_removal(&self, removed: &RemovedRun) {
        self.put_into("INDEX_QUEUE", json!({"removed": removed}).to_string(), || {});
    }

    /// A message lost here is rung for again: the token stands in the table.
    pub(in crate::worker) fn ring(self: &Rc<Self>, token: TokenId, epoch: u64) {
        let message = TaskMessage {
            run_id: self.run_id(),
            token_id: token.to_string(),
            epoch,
        };
        self.put_into("TASK_QUEUE", json!(message).to_string(), || {});
    }

    fn put_into(&self, queue: &'static str, message: String, refused: impl FnOnce() + 'static) {
        let Ok(queue) = self.env.queue(queue) else {
            return report("queue_missing", queue);
        };
        // As text: the platform's own serialisation would make maps of the objects, and lose them.
        let message = RawMessageBuilder::new(message.into());
        wasm_bindgen_futures::spawn_local(async move {
            let sent = queue
                .send_raw(message.build_with_content_type(QueueContentType::Text))
                .await;
            if let Err(error) = sent {
                report("queue_failed", &error.to_string());
                refused();
            }
        });
    }
}
