//! The calls to executors this object holds open: what was ordered and not yet answered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;

use futures_util::future::{AbortHandle, abortable};

use crate::engine::TokenId;

#[derive(Default)]
pub struct Calls(RefCell<BTreeMap<(TokenId, u64), AbortHandle>>);

impl Calls {
    /// Lets `call` run on its own. It is dropped, and with it its connection, when the attempt is aborted.
    pub fn start(&self, token: TokenId, epoch: u64, call: impl Future<Output = ()> + 'static) {
        let (call, handle) = abortable(call);
        self.0.borrow_mut().insert((token, epoch), handle);
        wasm_bindgen_futures::spawn_local(async move {
            // Aborted or done: either way nobody waits for this value.
            let _ = call.await;
        });
    }

    pub fn close(&self, token: TokenId, epoch: u64) {
        self.0.borrow_mut().remove(&(token, epoch));
    }

    pub fn abort(&self, token: TokenId, epoch: u64) {
        if let Some(handle) = self.0.borrow_mut().remove(&(token, epoch)) {
            handle.abort();
        }
    }

    pub fn open(&self) -> Vec<(TokenId, u64)> {
        self.0.borrow().keys().copied().collect()
    }
}
