//! Conversations with executors, held by `ask.mjs`: orders go out and reports come back without a future for each.

use wasm_bindgen::prelude::*;

use crate::worker::platform::call::Peer;

type Heard = Closure<dyn Fn(u32, String)>;
type Over = Closure<dyn Fn(u32, Option<String>)>;

#[wasm_bindgen(module = "/src/worker/platform/executor_client.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = ask)]
    fn open(executor: &Peer, id: u32, heartbeat_ms: f64, heard: &Heard, over: &Over) -> Conversation;

    #[wasm_bindgen(js_name = askOnce)]
    fn open_once(executor: &Peer, id: u32, order: &str, heard: &Heard, over: &Over) -> Conversation;

    pub type Conversation;

    /// Leaves the object when what was saved before it is on disk: the platform holds it back that long.
    #[wasm_bindgen(method)]
    pub fn send(this: &Conversation, order: &str);

    /// Nothing more to say: the executor ends when it has answered.
    #[wasm_bindgen(method)]
    pub fn finish(this: &Conversation);

    /// Whatever the executor is at, it ends now.
    #[wasm_bindgen(method)]
    pub fn abort(this: &Conversation);

    /// For how long nothing was heard of an executor that says from time to time that it lives. Zero for any other.
    #[wasm_bindgen(method, js_name = silentMs)]
    pub fn silent_ms(this: &Conversation) -> f64;
}

/// Who hears what comes of the conversations of one object.
pub struct Listener {
    heard: Heard,
    over: Over,
}

impl Listener {
    /// `heard` gets reports, a line each, with the number of their conversation, `over` the end of one, with a reason if it broke.
    pub fn new(
        heard: impl Fn(u32, String) + 'static,
        over: impl Fn(u32, Option<String>) + 'static,
    ) -> Listener {
        Listener {
            heard: Closure::new(heard),
            over: Closure::new(over),
        }
    }

    /// The executor is asked to say every so often that it lives.
    pub fn ask(&self, executor: &Peer, id: u32, heartbeat_ms: u64) -> Conversation {
        open(executor, id, heartbeat_ms as f64, &self.heard, &self.over)
    }

    /// For one order that nothing follows.
    pub fn ask_once(&self, executor: &Peer, id: u32, order: &str) -> Conversation {
        open_once(executor, id, order, &self.heard, &self.over)
    }
}
