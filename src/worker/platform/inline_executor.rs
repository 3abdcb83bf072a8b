//! Runs tasks as futures that are polled inside the call that wakes them. A spawned future is polled a microtask later and has
//! promises and closures around it, which is half of what a call to a Worker costs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// The tasks under way, except for the one that is being polled.
    static TASKS: RefCell<BTreeMap<u32, TaskFuture>> = const { RefCell::new(BTreeMap::new()) };
    /// The next wake comes straight from JavaScript: nothing is borrowed, and a panic is reported.
    static MAY_POLL: Cell<bool> = const { Cell::new(false) };
}

struct TaskWaker(u32);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let id = self.0;
        match MAY_POLL.take() {
            true => resume(id),
            false => wasm_bindgen_futures::spawn_local(async move { resume(id) }),
        }
    }
}

/// Runs `task` as far as it goes. The id is its own until it has ended.
pub fn run(id: u32, task: impl Future<Output = ()> + 'static) {
    poll(id, Box::pin(task));
}

/// Drops a task, and with it the requests it waits for.
pub fn cancel(id: u32) {
    let task = TASKS.with_borrow_mut(|tasks| tasks.remove(&id));
    drop(task);
}

/// Wakes a task, which is polled before this returns. Only for calls that come straight from JavaScript.
pub fn wake(waker: Waker) {
    MAY_POLL.set(true);
    waker.wake();
    MAY_POLL.set(false);
}

/// A task that is not there has ended or was cancelled.
fn resume(id: u32) {
    let task = TASKS.with_borrow_mut(|tasks| tasks.remove(&id));
    if let Some(task) = task {
        poll(id, task);
    }
}

fn poll(id: u32, mut task: TaskFuture) {
    let waker = Waker::from(Arc::new(TaskWaker(id)));
    if task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
    }
}
