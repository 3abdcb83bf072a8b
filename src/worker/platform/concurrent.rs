//! Some futures at a time.

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::iter;

/// The platform lets an invocation wait for this many connections at once.
const CONCURRENT_CALLS: usize = 6;

/// Boxed, because the machinery would be compiled again for every other type of future.
pub async fn run_all(calls: Vec<LocalBoxFuture<'_, ()>>) {
    iter(calls)
        .for_each_concurrent(CONCURRENT_CALLS, |call| call)
        .await;
}
