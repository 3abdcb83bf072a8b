//! Futures that go on in the very turn in which what they wait for is there. One that is spawned goes on a microtask later,
//! and has promises and closures around it: for a call to a Worker that is half of what the call costs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

type Errand = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// Those under way, but for the one that is being polled.
    static ERRANDS: RefCell<BTreeMap<u32, Errand>> = const { RefCell::new(BTreeMap::new()) };
    /// Whoever wakes an errand next has nothing borrowed, and sees it panic.
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
}

struct Bell(u32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let number = self.0;
        match IS_OPEN.take() {
            true => go_on(number),
            false => wasm_bindgen_futures::spawn_local(async move { go_on(number) }),
        }
    }
}

/// Runs `errand` as far as it goes. Nobody else may have its number while it is under way.
pub fn run(number: u32, errand: impl Future<Output = ()> + 'static) {
    poll(number, Box::pin(errand));
}

/// Drops an errand, and with it all that it waits for.
pub fn leave(number: u32) {
    let errand = ERRANDS.with_borrow_mut(|errands| errands.remove(&number));
    drop(errand);
}

/// Wakes an errand that goes on before this returns. For who comes straight from JavaScript.
pub fn wake(waker: Waker) {
    IS_OPEN.set(true);
    waker.wake();
    IS_OPEN.set(false);
}

/// One that is not there has ended or was left.
fn go_on(number: u32) {
    let errand = ERRANDS.with_borrow_mut(|errands| errands.remove(&number));
    if let Some(errand) = errand {
        poll(number, errand);
    }
}

fn poll(number: u32, mut errand: Errand) {
    let waker = Waker::from(Arc::new(Bell(number)));
    if errand.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        ERRANDS.with_borrow_mut(|errands| errands.insert(number, errand));
    }
}
