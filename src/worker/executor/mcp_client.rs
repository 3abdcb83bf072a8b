//! `mcp_tool`: one session with a server, one call of a tool in it, under one deadline.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::definition::mcp_tool::McpTool;
use crate::task::mcp::{self, Heard, Listener, Notes, Session, ToolCall, invalid};
use crate::task::redirect::{self, REDIRECTS_MAX, Reach};
use crate::task::request::Outgoing;
use crate::task::sse::{EVENT_BYTES, Event, Parser};
use crate::task::status::{self, Answered};
use crate::task::steps::{ActionCall, Stopped};
use crate::worker::executor::http::{self, network_failure};
use crate::worker::platform::call::{self, Answer};
use crate::worker::platform::{deadline, now};

/// What is sent after the result is known has this long, and nobody waits for it.
const CLOSE_TIMEOUT_MS: u64 = 300;

/// A server that asks something waits no longer for the answer than this, and neither do we for its thanks.
const REPLY_MS: u64 = 1_000;

/// How far a call has come. Outlives the conversation, so that it is still there after the deadline.
#[derive(Default)]
struct Progress {
    session: Session,
    /// The call of the tool, while it is not answered.
    pending: Option<u64>,
    notes: Notes,
    last_id: u64,
}

struct Client<'a> {
    order: ToolCall,
    reach: Reach,
    call: &'a ActionCall<'a>,
}

pub async fn mcp_tool(
    tool: &McpTool,
    private: bool,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let order = ToolCall::of(tool, call, key)?;
    let reach = Reach::Internet { private };
    reach.check(order.first_request())?;
    let client = Client { order, reach, call };
    let mut progress = Progress::default();
    let talk = client.converse(&mut progress);
    // Dropping the conversation closes its connection.
    let result = match call.deadline_at {
        None => Some(talk.await),
        Some(deadline_at) => deadline::within(deadline_at.saturating_sub(now()), talk).await,
    };
    client.part(&progress);
    match result {
        Some(result) => result.map_err(Stopped::Failed),
        None => Err(Stopped::Deadline {
            partial: progress.notes.into_text(),
        }),
    }
}

impl Client<'_> {
    async fn converse(&self, progress: &mut Progress) -> Result<Value, Failure> {
        let mut result = self.visit(progress).await;
        // The server does not know its own session any more: a restart, or another machine behind the same address.
        if let Err(failure) = &result
            && failure.class == FailureClass::NotFound
            && progress.session.id.is_some()
        {
            progress.session = Session::default();
            result = self.visit(progress).await;
        }
        progress.pending = None;
        mcp::fold_result(self.order.tool(), &result?, self.call.redactor)
    }

    /// From the first word to the answer of the tool.
    async fn visit(&self, progress: &mut Progress) -> Result<Value, Failure> {
        progress.pending = None;
        let id = progress.next_id();
        let greeting = self.order.initialize(id);
        let answer = self.send(&progress.session, &greeting).await?;
        let session_id = answer.headers().get("mcp-session-id").ok().flatten();
        let welcome = self.answer_to(id, answer, progress).await?;
        // Only now: before the server has answered there is no session.
        progress.session = Session {
            id: session_id,
            protocol: Some(mcp::protocol_of(&welcome)?),
        };
        // Its body is empty, or nothing we ask for.
        self.send(&progress.session, &mcp::initialized()).await?;
        let id = progress.next_id();
        progress.pending = Some(id);
        let answer = self.send(&progress.session, &self.order.call(id)).await?;
        self.answer_to(id, answer, progress).await
    }

    /// An answer whose status says that the server took the message.
    async fn send(&self, session: &Session, message: &Value) -> Result<Answer, Failure> {
        let answer = self.follow(self.order.post(session, message)?).await?;
        let status = answer.status();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let retry_after = answer.headers().get("retry-after").ok().flatten();
        // What a body says about a failure is worth reading, and not worth another failure.
        let text = http::read_text(answer, &mut Vec::new()).await.unwrap_or_default();
        let answered = Answered {
            status,
            retry_after: retry_after.as_deref(),
            text: &text,
        };
        Err(status::refusal(&answered, self.call.redactor, now()))
    }

    async fn follow(&self, first: Outgoing) -> Result<Answer, Failure> {
        let mut request = first;
        for _ in 0..=REDIRECTS_MAX {
            let answer = http::send(&call::internet(), &request).await?;
            let location = answer.headers().get("location").ok().flatten();
            let status = answer.status();
            match redirect::next(
                &request,
                status,
                location.as_deref(),
                self.reach,
                self.call.redactor,
            )? {
                // A GET is another thing here: it opens a stream that nobody ends.
                Some(next) if next.method != request.method => {
                    let message = format!("the answer has status {status}, which drops the message");
                    return Err(Failure::permanent("invalid_redirect", message));
                }
                Some(next) => request = next,
                None => return Ok(answer),
            }
        }
        Err(redirect::too_many())
    }

    async fn answer_to(&self, id: u64, answer: Answer, progress: &mut Progress) -> Result<Value, Failure> {
        let session = progress.session.clone();
        let mut listener = Listener {
            awaited: id,
            notes: &mut progress.notes,
            redactor: self.call.redactor,
        };
        let kind = answer.headers().get("content-type").ok().flatten();
        if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream")) {
            let text = http::read_text(answer, &mut Vec::new()).await?;
            let heard = listener.hear(&text)?;
            return match self.take(heard, &session).await {
                Some(answer) => answer,
                None => Err(invalid("its answer is for another request")),
            };
        }
        let mut parser = Parser::default();
        let mut chunks = answer.chunks();
        let mut events = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let taken = parser.push(&chunk.map_err(network_failure)?, &mut events);
            for event in events.drain(..) {
                let heard = hear(&mut listener, &event)?;
                if let Some(answer) = self.take(heard, &session).await {
                    return answer;
                }
            }
            taken.map_err(|_| {
                Failure::validation(
                    "response_too_large",
                    format!("an event is larger than the limit of {EVENT_BYTES} bytes"),
                )
            })?;
        }
        if let Some(event) = parser.finish() {
            let heard = hear(&mut listener, &event)?;
            if let Some(answer) = self.take(heard, &session).await {
                return answer;
            }
        }
        Err(network_failure(
            "the server closed its stream before it answered".into(),
        ))
    }

    /// Replies to what the server asked; returns the answer if it is there.
    async fn take(&self, heard: Vec<Heard>, session: &Session) -> Option<Result<Value, Failure>> {
        let mut answer = None;
        for one in heard {
            match one {
                Heard::Answer(result) => answer = Some(result),
                Heard::Reply(reply) => {
                    // A server that does not take it says so on the stream, or not at all.
                    let _ = deadline::within(REPLY_MS, self.send(session, &reply)).await;
                }
            }
        }
        answer
    }

    /// Tells the server that a call is not waited for any more, then that the session is over.
    fn part(&self, progress: &Progress) {
        let session = &progress.session;
        let notice = progress.pending.map(mcp::cancelled);
        let notice = notice.and_then(|notice| self.order.post(session, &notice).ok());
        let words: Vec<Outgoing> = notice.into_iter().chain(self.order.delete(session)).collect();
        if words.is_empty() {
            return;
        }
        call::in_background(CLOSE_TIMEOUT_MS, async move {
            for word in words {
                // The server forgets what it is not told.
                let _ = http::send(&call::internet(), &word).await;
            }
        });
    }
}

impl Progress {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

fn hear(listener: &mut Listener, event: &Event) -> Result<Vec<Heard>, Failure> {
    let is_message = event.name.is_empty() || event.name == "message";
    // Some streams begin with an event that is only there to have an id.
    match is_message && !event.data.is_empty() {
        true => listener.hear(&event.data),
        false => Ok(Vec::new()),
    }
}
