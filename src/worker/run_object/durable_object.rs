//! The Durable Object of a run: requests and alarms come in here and go to the host.

use std::rc::Rc;

use wasm_bindgen::prelude::*;
use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use crate::host::{Host, SubrequestBudget};
use crate::worker::platform::inline_executor;
use crate::worker::run_object::workerd::{self, Workerd};

#[wasm_bindgen]
extern "C" {
    /// Takes the response to one request; see `object_request.mjs`.
    pub type ResponseSink;

    #[wasm_bindgen(method)]
    fn respond(this: &ResponseSink, status: u16, body: &str, bill: &str);
}

#[durable_object]
pub struct RunObject {
    host: Rc<Host<Workerd>>,
}

impl DurableObject for RunObject {
    fn new(state: State, env: Env) -> Self {
        RunObject {
            host: workerd::host(state, env),
        }
    }

    /// Unused: the `Request` and `Response` of `worker` cost more than most requests. See `handle_request`.
    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("requests come in by handle_request", 500)
    }

    /// An error goes to `entry.mjs`, which logs it and sets the alarm again: the platform gives up on an alarm that fails.
    async fn alarm(&self) -> Result<Response> {
        self.host.platform.count_invocation();
        let alarm = self.host.alarm(&SubrequestBudget::default()).await;
        alarm.map_err(|error| worker::Error::RustError(error.0))?;
        Response::empty()
    }
}

#[wasm_bindgen]
impl RunObject {
    /// Responds before it returns if nothing has to be waited for. `request` is the JSON of a `RunRequest`.
    pub fn handle_request(&self, number: u32, request: String, sink: ResponseSink) {
        let host = Rc::clone(&self.host);
        inline_executor::run(number, async move {
            host.platform.count_invocation();
            let response = host.respond(&SubrequestBudget::default(), &request).await;
            let (status, body) = response.into_parts();
            let bill = host.platform.bill(host.connections_opened());
            sink.respond(status, &body, &bill);
        });
    }
}
