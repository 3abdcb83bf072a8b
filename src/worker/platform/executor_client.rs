//! Connections to executors, made by `executor_client.mjs`: orders and reports cross without a future for each.

use wasm_bindgen::prelude::*;

use crate::worker::platform::http_client::Peer;

type OnReports = Closure<dyn Fn(u32, String)>;
type OnClosed = Closure<dyn Fn(u32, Option<String>)>;

#[wasm_bindgen(module = "/src/worker/platform/executor_client.mjs")]
extern "C" {
    fn connect(
        executor: &Peer,
        id: u32,
        heartbeat_ms: f64,
        progress_ms: f64,
        on_reports: &OnReports,
        on_closed: &OnClosed,
    ) -> Connection;

    #[wasm_bindgen(js_name = sendOne)]
    fn send_one(
        executor: &Peer,
        id: u32,
        order: &str,
        on_report: &OnReports,
        on_closed: &OnClosed,
    ) -> Connection;

    pub type Connection;

    /// The platform holds the message back until everything that was saved before it is on disk.
    #[wasm_bindgen(method)]
    pub fn send(this: &Connection, orders: &str);

    /// Closes the connection: all orders have their reports.
    #[wasm_bindgen(method)]
    pub fn finish(this: &Connection);

    /// Closes the connection, which ends the tasks that the executor is running for it.
    #[wasm_bindgen(method)]
    pub fn abort(this: &Connection);

    /// The time since the last message; 0 for an executor that sends no heartbeats.
    #[wasm_bindgen(method, js_name = silentMs)]
    pub fn silent_ms(this: &Connection) -> f64;
}

/// How often an executor sends something while it works.
#[derive(Clone, Copy)]
pub struct Intervals {
    pub heartbeat_ms: u64,
    /// At most, and only if there is progress.
    pub progress_ms: u64,
}

/// What an object does with the messages of all its connections.
pub struct Handlers {
    on_reports: OnReports,
    on_closed: OnClosed,
}

impl Handlers {
    /// `on_reports` gets the id of a connection and its reports and progress, one a line. `on_closed` gets its end, with a reason if it
    /// broke.
    pub fn new(
        on_reports: impl Fn(u32, String) + 'static,
        on_closed: impl Fn(u32, Option<String>) + 'static,
    ) -> Handlers {
        Handlers {
            on_reports: Closure::new(on_reports),
            on_closed: Closure::new(on_closed),
        }
    }

    /// Opens a connection for any number of orders.
    pub fn connect(&self, executor: &Peer, id: u32, intervals: Intervals) -> Connection {
        connect(
            executor,
            id,
            intervals.heartbeat_ms as f64,
            intervals.progress_ms as f64,
            &self.on_reports,
            &self.on_closed,
        )
    }

    /// Sends one order that no other follows.
    pub fn send_one(&self, executor: &Peer, id: u32, order: &str) -> Connection {
        send_one(executor, id, order, &self.on_reports, &self.on_closed)
    }
}
