//! The clients that watch a run's object: `live_sockets.mjs` holds their sockets.

use js_sys::{Reflect, Symbol};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[derive(Clone)]
    pub type Watchers;

    #[wasm_bindgen(method, getter = isWatched)]
    pub fn is_watched(this: &Watchers) -> bool;

    #[wasm_bindgen(method)]
    pub fn publish(this: &Watchers, after: f64, last: f64, lines: &str, has_ended: bool);

    #[wasm_bindgen(method, js_name = publishProgress)]
    pub fn publish_progress(this: &Watchers, line: &str);
}

impl Watchers {
    /// Those of the object with this state. `None`: the entry point has none.
    pub fn of(state: &JsValue) -> Option<Watchers> {
        let watchers = Reflect::get(state, &Symbol::for_("curfew.watchers")).ok()?;
        watchers.is_object().then(|| watchers.unchecked_into())
    }
}
