//! `mcp_tool`: opens a session with a server and calls one tool in it, under one deadline.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::definition::mcp_tool::McpTool;
use crate::task::mcp::{self, McpCall, MessageReader, Notes, ServerMessage, Session, invalid};
use crate::task::redirect::{self, REDIRECTS_MAX, Reach};
use crate::task::request::Outgoing;
use crate::task::runtime::{ActionCall, Stopped};
use crate::task::sse::{EVENT_BYTES, SseEvent, SseParser};
use crate::task::status::{self, ResponseParts};
use crate::worker::executor::http::{self, failure_of, network_failure};
use crate::worker::platform::background::run_in_background;
use crate::worker::platform::http_client::{Response, internet};
use crate::worker::platform::{deadline, now};

/// How long the messages that close a session may take. The step does not wait for them.
const CLOSE_TIMEOUT_MS: u64 = 300;

/// How long sending a reply to a request of the server may take.
const REPLY_TIMEOUT_MS: u64 = 1_000;

/// How far a call has come. It is kept outside the call, so that it is still there after the deadline.
#[derive(Default)]
struct CallProgress {
    session: Session,
    /// The id of the tool call, while it has no response.
    pending: Option<u64>,
    notes: Notes,
    last_id: u64,
}

struct Client<'a> {
    mcp_call: McpCall,
    reach: Reach<'a>,
    call: &'a ActionCall<'a>,
}

pub async fn mcp_tool(
    tool: &McpTool,
    private: bool,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let mcp_call = McpCall::of(tool, call, key)?;
    let reach = Reach::Internet { private };
    reach.check(mcp_call.first_request(), call)?;
    let client = Client {
        mcp_call,
        reach,
        call,
    };
    let mut progress = CallProgress::default();
    let run = client.run(&mut progress);
    // Dropping `run` closes its connection.
    let result = match call.deadline_at {
        None => Some(run.await),
        Some(deadline_at) => deadline::within(deadline_at.saturating_sub(now()), run).await,
    };
    client.close(&progress);
    match result {
        Some(result) => result.map_err(Stopped::Failed),
        None => Err(Stopped::Deadline {
            partial: progress.notes.into_text(),
        }),
    }
}

impl Client<'_> {
    async fn run(&self, progress: &mut CallProgress) -> Result<Value, Failure> {
        let mut result = self.run_session(progress).await;
        // The server has lost its own session: it restarted, or another machine has the same address.
        if let Err(failure) = &result
            && failure.class == FailureClass::NotFound
            && progress.session.id.is_some()
        {
            progress.session = Session::default();
            result = self.run_session(progress).await;
        }
        progress.pending = None;
        mcp::fold_result(self.mcp_call.tool(), &result?, self.call.secrets.redactor())
    }

    /// From `initialize` to the result of the tool.
    async fn run_session(&self, progress: &mut CallProgress) -> Result<Value, Failure> {
        progress.pending = None;
        let id = progress.next_id();
        let initialize = self.mcp_call.initialize(id);
        let response = self.send(&progress.session, &initialize).await?;
        let session_id = response.header("mcp-session-id");
        let initialized = self.result_of(id, response, progress).await?;
        // There is no session before the server has responded.
        progress.session = Session {
            id: session_id,
            protocol: Some(mcp::protocol_of(&initialized)?),
        };
        // The body of this response is empty, and dropped unread.
        self.send(&progress.session, &mcp::initialized()).await?;
        let id = progress.next_id();
        progress.pending = Some(id);
        let response = self.send(&progress.session, &self.mcp_call.call(id)).await?;
        self.result_of(id, response, progress).await
    }

    /// A response with a status that says that the server accepted the message.
    async fn send(&self, session: &Session, message: &Value) -> Result<Response, Failure> {
        let response = self
            .follow_redirects(self.mcp_call.post(session, message)?)
            .await?;
        let status = response.status();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let retry_after = response.header("retry-after");
        // The body explains the failure; one that cannot be read is not another failure.
        let text = http::read_text(response).await.unwrap_or_default();
        let parts = ResponseParts {
            status,
            retry_after: retry_after.as_deref(),
            text: &text,
        };
        Err(status::refusal(&parts, self.call.secrets.redactor(), now()))
    }

    async fn follow_redirects(&self, first: Outgoing) -> Result<Response, Failure> {
        let mut request = first;
        for _ in 0..=REDIRECTS_MAX {
            let response = http::send(&internet(), &request).await?;
            let location = response.header("location");
            let status = response.status();
            match redirect::next(&request, status, location.as_deref(), self.reach, self.call)? {
                // A GET opens a stream that the server never ends.
                Some(next) if next.method != request.method => {
                    let message = format!("the answer has status {status}, which drops the message");
                    return Err(Failure::permanent("invalid_redirect", message));
                }
                Some(next) => request = next,
                None => return Ok(response),
            }
        }
        Err(redirect::too_many())
    }

    async fn result_of(
        &self,
        id: u64,
        mut response: Response,
        progress: &mut CallProgress,
    ) -> Result<Value, Failure> {
        let session = progress.session.clone();
        let mut reader = MessageReader {
            awaited: id,
            notes: &mut progress.notes,
            redactor: self.call.secrets.redactor(),
        };
        let kind = response.header("content-type");
        if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream")) {
            let text = http::read_text(response).await?;
            let messages = reader.read(&text)?;
            return match self.handle(messages, &session).await {
                Some(result) => result,
                None => Err(invalid("its answer is for another request")),
            };
        }
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failure_of)? {
            let parsed = parser.push(&chunk, &mut events);
            for event in events.drain(..) {
                let messages = read_event(&mut reader, &event)?;
                if let Some(result) = self.handle(messages, &session).await {
                    return result;
                }
            }
            parsed.map_err(|_| {
                Failure::validation(
                    "response_too_large",
                    format!("an event is larger than the limit of {EVENT_BYTES} bytes"),
                )
            })?;
        }
        if let Some(event) = parser.finish() {
            let messages = read_event(&mut reader, &event)?;
            if let Some(result) = self.handle(messages, &session).await {
                return result;
            }
        }
        Err(network_failure(
            "the server closed its stream before it answered".into(),
        ))
    }

    /// Replies to the server's requests. Returns the result of the awaited request if it is among the messages.
    async fn handle(
        &self,
        messages: Vec<ServerMessage>,
        session: &Session,
    ) -> Option<Result<Value, Failure>> {
        let mut awaited = None;
        for message in messages {
            match message {
                ServerMessage::Response(result) => awaited = Some(result),
                ServerMessage::Request { reply } => {
                    // A reply that is lost or refused concerns the server's request, not ours.
                    let _ = deadline::within(REPLY_TIMEOUT_MS, self.send(session, &reply)).await;
                }
            }
        }
        awaited
    }

    /// Cancels a call that has no response, then ends the session.
    fn close(&self, progress: &CallProgress) {
        let session = &progress.session;
        let cancelled = progress.pending.map(mcp::cancelled);
        let cancelled = cancelled.and_then(|notice| self.mcp_call.post(session, &notice).ok());
        let requests: Vec<Outgoing> = cancelled
            .into_iter()
            .chain(self.mcp_call.delete(session))
            .collect();
        if requests.is_empty() {
            return;
        }
        run_in_background(CLOSE_TIMEOUT_MS, async move {
            for request in requests {
                // A server expires sessions that were not ended.
                let _ = http::send(&internet(), &request).await;
            }
        });
    }
}

impl CallProgress {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

fn read_event(reader: &mut MessageReader, event: &SseEvent) -> Result<Vec<ServerMessage>, Failure> {
    let is_message = event.name.is_empty() || event.name == "message";
    // Some servers begin a stream with an event that only carries an id.
    match is_message && !event.data.is_empty() {
        true => reader.read(&event.data),
        false => Ok(Vec::new()),
    }
}
