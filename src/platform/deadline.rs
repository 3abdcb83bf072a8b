//! A limit on waiting.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use worker::Delay;

/// The future's value, or `None` if `millis` pass first. The future is dropped then: whatever it waits for must
/// be cancelled by what it holds.
pub async fn within<T>(millis: u64, future: impl Future<Output = T>) -> Option<T> {
    // setTimeout holds 31 bits; a longer wait than that outlives every invocation anyway.
    let delay = Delay::from(Duration::from_millis(millis.min(i32::MAX as u64)));
    match select(pin!(future), pin!(delay)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}
