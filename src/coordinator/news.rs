//! What leaves the object by a queue: news for the index, and rings for those who run tasks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Value, json};
use worker::{QueueContentType, RawMessageBuilder};

use super::consume::Ring;
use super::object::{Object, report};
use crate::engine::TokenId;
use crate::platform::{self, deadline};
use crate::watch::standing::Standing;

/// The index hears of things this much later: a run that ends within it is one message and not two, and whoever waits
/// for the run is answered first. A message costs what three quarters of a second in memory cost.
const MOMENT_MS: u64 = 250;

#[derive(Default)]
pub struct News {
    /// How the run stands is looked up when it is told.
    of_run: Cell<bool>,
    others: RefCell<Vec<Value>>,
    /// The queue did not take the last word on the run.
    was_refused: Cell<bool>,
}

impl Object {
    /// Tells the index how the run stands. A lost message costs a stale list, never a run, until the sweep asks.
    pub(super) fn announce(self: &Rc<Self>) {
        self.tell_soon();
        self.news.of_run.set(true);
    }

    /// Says again what the queue refused.
    pub(super) fn announce_again(self: &Rc<Self>) {
        if self.news.was_refused.take() {
            self.announce();
        }
    }

    pub(super) fn tell_index(self: &Rc<Self>, message: Value) {
        self.tell_soon();
        self.news.others.borrow_mut().push(message);
    }

    fn tell_soon(self: &Rc<Self>) {
        if self.news.of_run.get() || !self.news.others.borrow().is_empty() {
            return;
        }
        let object = Rc::clone(self);
        wasm_bindgen_futures::spawn_local(async move {
            deadline::sleep(MOMENT_MS).await;
            object.tell();
        });
    }

    fn tell(self: &Rc<Self>) {
        for message in self.news.others.take() {
            self.put_into("INDEX_QUEUE", message, |_| {});
        }
        if self.news.of_run.take() {
            self.tell_standing();
        }
    }

    /// Says at once how the run stands. One that was deleted meanwhile is nothing to tell of.
    pub(super) fn tell_standing(self: &Rc<Self>) {
        if let Ok(standing) = self.with_run(|run| Standing::of(run, platform::now())) {
            let refused = |object: &Object| object.news.was_refused.set(true);
            self.put_into("INDEX_QUEUE", json!(standing), refused);
        }
    }

    /// A message lost here is rung for again: the token stands in the table.
    pub(super) fn ring(self: &Rc<Self>, token: TokenId, epoch: u64) {
        let ring = Ring {
            run_id: self.run_id(),
            token_id: token.to_string(),
            epoch,
        };
        self.put_into("TASK_QUEUE", json!(ring), |_| {});
    }

    fn put_into(self: &Rc<Self>, queue: &'static str, message: Value, refused: fn(&Object)) {
        let Ok(queue) = self.env.queue(queue) else {
            return report("queue_missing", queue);
        };
        // As text: the platform's own serialisation would make maps of the objects, and lose them.
        let message = RawMessageBuilder::new(message.to_string().into());
        let object = Rc::clone(self);
        wasm_bindgen_futures::spawn_local(async move {
            let sent = queue
                .send_raw(message.build_with_content_type(QueueContentType::Text))
                .await;
            if let Err(error) = sent {
                report("queue_failed", &error.to_string());
                refused(&object);
            }
        });
    }
}
