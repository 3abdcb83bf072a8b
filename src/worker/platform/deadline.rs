//! Timers, and limits for futures.
//!
//! `worker::Delay` expects the timer's handle to be a number. With a recent compatibility date it is an object, and a timer that
//! cannot be cleared keeps its request alive.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::future::{Either, select};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, millis: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(handle: &JsValue);
}

/// Resolves after `millis`. Dropping it clears its timer.
pub struct Sleep {
    handle: JsValue,
    future: JsFuture,
}

pub fn sleep(millis: u64) -> Sleep {
    // setTimeout has 31 bits, which is longer than any invocation.
    let millis = millis.min(i32::MAX as u64) as f64;
    let mut handle = JsValue::UNDEFINED;
    let promise = Promise::new(&mut |resolve, _| handle = set_timeout(&resolve, millis));
    Sleep {
        handle,
        future: promise.into(),
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.future).poll(context).map(|_| ())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        clear_timeout(&self.handle);
    }
}

/// The future's value, or `None` if `millis` pass first. The future is dropped then, which must cancel what it waits for.
pub async fn within<T>(millis: u64, future: impl Future<Output = T>) -> Option<T> {
    match select(pin!(future), sleep(millis)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}
