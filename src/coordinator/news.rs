//! What leaves the object by a queue: news for the index, and rings for those who run tasks.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use serde_json::{Value, json};
use worker::{QueueContentType, RawMessageBuilder};

use super::consume::Ring;
use super::object::{Object, report};
use crate::engine::TokenId;
use crate::platform::{self, deadline};
use crate::watch::letters::letters;
use crate::watch::standing::Standing;

thread_local! {
    /// The objects of this isolate that have something to tell.
    static TELLERS: RefCell<Vec<Weak<Object>>> = const { RefCell::new(Vec::new()) };
}

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
        let mut told = Vec::new();
        TELLERS.with_borrow_mut(|tellers| {
            tellers.retain(|teller| {
                let teller = teller.upgrade();
                let ready = teller.filter(|other| Rc::ptr_eq(other, self) || other.has_ended());
                let stays = ready.is_none();
                told.extend(ready);
                stays
            });
        });
        let news = told.iter().flat_map(|object| object.take_news()).collect();
        for letter in letters(news) {
            let told = told.clone();
            self.put_into("INDEX_QUEUE", letter, move || {
                for object in &told {
                    object.news.was_refused.set(true);
                }
            });
        }
    }

    fn has_ended(&self) -> bool {
        self.with_run(|run| run.header.status.is_terminal())
            .unwrap_or(true)
    }

    fn take_news(&self) -> Vec<String> {
        let mut news: Vec<String> = self.news.others.take().iter().map(Value::to_string).collect();
        if self.news.of_run.take() {
            news.extend(self.standing());
        }
        news
    }

    /// None: the run was deleted meanwhile, and is nothing to tell of.
    fn standing(&self) -> Option<String> {
        let standing = self.with_run(|run| json!(Standing::of(run, platform::now())));
        standing.ok().map(|standing| standing.to_string())
    }

    /// Says at once how the run stands.
    pub(super) fn tell_standing(self: &Rc<Self>) {
        if let Some(standing) = self.standing() {
            let object = Rc::clone(self);
            self.put_into("INDEX_QUEUE", standing, move || object.news.was_refused.set(true));
        }
    }

    /// A message lost here is rung for again: the token stands in the table.
    pub(super) fn ring(self: &Rc<Self>, token: TokenId, epoch: u64) {
        let ring = Ring {
            run_id: self.run_id(),
            token_id: token.to_string(),
            epoch,
        };
        self.put_into("TASK_QUEUE", json!(ring).to_string(), || {});
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
