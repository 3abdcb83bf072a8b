//! The client of run objects: API, queue consumer, sweep and other run objects send their requests through it.

use worker::Env;

use crate::base::text::to_json;
use crate::protocol::caller::Caller;
use crate::protocol::run::{PROTOCOL, REQUEST_URL, RunCall, RunRequest, RunResponse};
use crate::worker::platform::deadline;
use crate::worker::platform::http_client::{Peer, Request, Response};

/// Set by every object that speaks this protocol; `object_request.mjs` has the same name.
const PROTOCOL_HEADER: &str = "curfew-run-protocol";

pub struct RunClient<'a> {
    env: &'a Env,
    run_id: &'a str,
    timeout_ms: u64,
    caller: Option<&'a Caller>,
    operation: Option<&'a str>,
}

/// Why there is no response. The request may have been carried out all the same.
pub enum CallError {
    TimedOut,
    /// The object is of a build that speaks another protocol, which happens while a new version is rolled out. It did nothing.
    OtherBuild,
    Failed(String),
}

impl From<CallError> for String {
    fn from(error: CallError) -> String {
        match error {
            CallError::TimedOut => "the run's object did not answer in time".into(),
            CallError::OtherBuild => "the run's object is of another build".into(),
            CallError::Failed(message) => message,
        }
    }
}

impl<'a> RunClient<'a> {
    pub fn new(env: &'a Env, run_id: &'a str, timeout_ms: u64) -> RunClient<'a> {
        RunClient {
            env,
            run_id,
            timeout_ms,
            caller: None,
            operation: None,
        }
    }

    /// The caller of the API that sends the requests; by default they come from inside.
    pub fn on_behalf_of(self, caller: Option<&'a Caller>) -> RunClient<'a> {
        RunClient { caller, ..self }
    }

    /// The bulk operation that the requests belong to.
    pub fn for_operation(self, id: &'a str) -> RunClient<'a> {
        let operation = Some(id);
        RunClient { operation, ..self }
    }

    pub async fn send(&self, request: &RunRequest) -> Result<RunResponse, CallError> {
        let sent = async {
            let answer = self.request(request).await?;
            let status = answer.status();
            let body = answer.text().await;
            let body = body.map_err(|error| CallError::Failed(error.into()))?;
            Ok(RunResponse::from_parts(status, body))
        };
        let response = deadline::within(self.timeout_ms, sent).await;
        response.unwrap_or(Err(CallError::TimedOut))
    }

    /// The response as it came, for a caller of the API.
    pub async fn forward(&self, request: &RunRequest) -> Result<web_sys::Response, CallError> {
        let answer = deadline::within(self.timeout_ms, self.request(request)).await;
        Ok(answer.unwrap_or(Err(CallError::TimedOut))?.into_raw())
    }

    async fn request(&self, request: &RunRequest) -> Result<Response, CallError> {
        let call = RunCall {
            caller: self.caller.cloned(),
            operation: self.operation.map(str::to_string),
            request,
        };
        let text = to_json(&call).map_err(|error| CallError::Failed(error.to_string()))?;
        let stub = stub(self.env, self.run_id)?;
        let answer = Request::post(REQUEST_URL, &text).send(&stub).await;
        let answer = answer.map_err(|error| CallError::Failed(error.into()))?;
        match answer.header(PROTOCOL_HEADER).as_deref() == Some(PROTOCOL) {
            true => Ok(answer),
            // A failure is one in every protocol; `entry.mjs` answers so for an object whose wasm panicked.
            false if answer.status() >= 500 => Ok(answer),
            false => Err(CallError::OtherBuild),
        }
    }
}

/// A new stub for each request: a stub stays broken after its object left memory during a call.
pub fn stub(env: &Env, run_id: &str) -> Result<Peer, CallError> {
    let runs = env.durable_object("RUNS");
    let stub = runs.and_then(|runs| runs.get_by_name(run_id));
    stub.map(|stub| stub.into_rpc())
        .map_err(|error| CallError::Failed(error.to_string()))
}
