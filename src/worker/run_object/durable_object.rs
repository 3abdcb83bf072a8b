//! The Durable Object of a run: requests and alarms come in here.

use std::rc::Rc;

use serde_json::json;
use wasm_bindgen::prelude::*;
use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use crate::api::error::Error;
use crate::worker::platform::{self, inline_executor};
use crate::worker::run_object::object::Object;
use crate::worker::run_object::requests::refused;
use crate::worker::run_object::subrequests::Turn;

#[wasm_bindgen]
extern "C" {
    /// Takes the response to one request; see `object_request.mjs`.
    pub type ResponseSink;

    #[wasm_bindgen(method)]
    fn respond(this: &ResponseSink, status: u16, body: &str, bill: &str);
}

#[durable_object]
pub struct RunObject {
    object: Rc<Object>,
}

impl DurableObject for RunObject {
    fn new(state: State, env: Env) -> Self {
        RunObject {
            object: Object::new(state, env),
        }
    }

    /// Unused: the `Request` and `Response` of `worker` cost more than most requests. See `handle_request`.
    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("requests come in by handle_request", 500)
    }

    /// An error goes to `entry.mjs`, which logs it and sets the alarm again: the platform gives up on an alarm that fails.
    async fn alarm(&self) -> Result<Response> {
        let turn = Turn::default();
        self.object.count_request();
        if self.object.load(&turn).await? {
            self.object.alarm_rang(&turn)?;
        }
        Response::empty()
    }
}

#[wasm_bindgen]
impl RunObject {
    /// Responds before it returns if nothing has to be waited for. `request` is the JSON of a `RunRequest`.
    pub fn handle_request(&self, number: u32, request: String, sink: ResponseSink) {
        let object = Rc::clone(&self.object);
        inline_executor::run(number, async move {
            object.count_request();
            let response = object.respond(&request).await.unwrap_or_else(|error| {
                platform::log(
                    json!({"level": "error", "event": "request_failed", "message": error.to_string()}),
                );
                refused(&Error::internal())
            });
            let (status, body) = response.into_parts();
            sink.respond(status, &body, &object.bill());
        });
    }
}
