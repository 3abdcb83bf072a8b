//! The calls to executors this object holds open: what was ordered and not yet answered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use futures_util::future::{AbortHandle, abortable};

use crate::engine::TokenId;

#[derive(Default)]
pub struct Calls(RefCell<BTreeMap<(TokenId, u64), Rc<AbortHandle>>>);

impl Calls {
    /// Lets `call` run on its own for all of `attempts`. It is dropped, and with it its connection, when the last of
    /// them is over.
    pub fn start(&self, attempts: &[(TokenId, u64)], call: impl Future<Output = ()> + 'static) {
        let (call, handle) = abortable(call);
        let handle = Rc::new(handle);
        let mut open = self.0.borrow_mut();
        for attempt in attempts {
            open.insert(*attempt, Rc::clone(&handle));
        }
        wasm_bindgen_futures::spawn_local(async move {
            // Aborted or done: either way nobody waits for this value.
            let _ = call.await;
        });
    }

    /// An attempt is over, answered or aborted. With the last of them goes the call: its connection closes. Where
    /// others share it, it runs on for them.
    pub fn end(&self, token: TokenId, epoch: u64) {
        if let Some(handle) = self.0.borrow_mut().remove(&(token, epoch))
            && Rc::strong_count(&handle) == 1
        {
            handle.abort();
        }
    }

    pub fn open(&self) -> Vec<(TokenId, u64)> {
        self.0.borrow().keys().copied().collect()
    }
}
