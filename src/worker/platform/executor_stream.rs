//! One order to an executor by a connection of its own, for a sender that awaits the lines that come back.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::worker::platform::executor_client::{Connection, Handlers, Intervals};
use crate::worker::platform::http_client::Peer;

thread_local! {
    static STREAMS: RefCell<Streams> = RefCell::default();
    /// One for all connections: it must be there as long as JavaScript may call it.
    static HANDLERS: Handlers = Handlers::new(
        |id, lines| arrived(id, Incoming::Lines(lines)),
        |id, reason| arrived(id, Incoming::Closed(reason)),
    );
}

/// The open connections, by their id.
#[derive(Default)]
struct Streams {
    last_id: u32,
    open: BTreeMap<u32, Open>,
}

#[derive(Default)]
struct Open {
    incoming: VecDeque<Incoming>,
    waker: Option<Waker>,
}

pub enum Incoming {
    /// Reports and progress that arrived together, one a line.
    Lines(String),
    /// Nothing more comes. With a reason if the connection broke.
    Closed(Option<String>),
}

/// Called from JavaScript. A connection that is not there was dropped.
fn arrived(id: u32, incoming: Incoming) {
    let waker = STREAMS.with_borrow_mut(|streams| {
        let open = streams.open.get_mut(&id)?;
        match (open.incoming.back_mut(), incoming) {
            // Lines that waited for their reader are read together.
            (Some(Incoming::Lines(before)), Incoming::Lines(lines)) => {
                before.push('\n');
                before.push_str(&lines);
            }
            (Some(_) | None, incoming) => open.incoming.push_back(incoming),
        }
        open.waker.take()
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Dropping it ends the task.
pub struct ExecutorStream {
    id: u32,
    connection: Connection,
}

impl ExecutorStream {
    pub fn open(executor: &Peer, intervals: Intervals, order: &str) -> ExecutorStream {
        let id = STREAMS.with_borrow_mut(|streams| {
            streams.last_id = streams.last_id.wrapping_add(1);
            streams.open.insert(streams.last_id, Open::default());
            streams.last_id
        });
        let connection = HANDLERS.with(|handlers| handlers.connect(executor, id, intervals));
        connection.send(order);
        ExecutorStream { id, connection }
    }

    pub async fn next(&mut self) -> Incoming {
        poll_fn(|context| {
            STREAMS.with_borrow_mut(|streams| {
                let open = streams.open.get_mut(&self.id);
                let open = open.expect("it stays until the stream is dropped");
                match open.incoming.pop_front() {
                    Some(incoming) => Poll::Ready(incoming),
                    None => {
                        open.waker = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }
}

impl Drop for ExecutorStream {
    fn drop(&mut self) {
        STREAMS.with_borrow_mut(|streams| streams.open.remove(&self.id));
        self.connection.abort();
    }
}
