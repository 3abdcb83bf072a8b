//! Takes an answer in as it arrives, in whatever pieces. Whoever stops halfway finds here what had arrived.

use serde_json::Value;

use super::{anthropic, openai};
use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::definition::llm::Provider;
use crate::task::llm::provider_error::{broken_off, error_in, too_large, unreadable};
use crate::task::llm::reply::Reply;
use crate::task::partial::text_of;
use crate::task::redact::Redactor;
use crate::task::runtime::Stopped;
use crate::task::sse::{Event, Parser, TooLarge};

/// What a stream may weigh in all: its chunks wrap a few letters in hundreds of bytes.
const STREAM_BYTES: usize = 128 * RESULT_BYTES;

pub struct ResponseDecoder<'a> {
    provider: Provider,
    redactor: &'a Redactor,
    body: Body,
    pub(super) reply: Reply,
    bytes: usize,
}

/// Some answer with plain JSON although a stream was asked for; the first letter tells.
enum Body {
    NotBegun,
    Events(Parser),
    Whole(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Nothing follows that matters: the connection need not be held.
    Done,
}

impl<'a> ResponseDecoder<'a> {
    pub fn new(provider: Provider, redactor: &'a Redactor) -> ResponseDecoder<'a> {
        ResponseDecoder {
            provider,
            redactor,
            body: Body::NotBegun,
            reply: Reply::default(),
            bytes: 0,
        }
    }

    pub fn take(&mut self, piece: &[u8]) -> Result<Progress, Failure> {
        self.bytes += piece.len();
        let mut piece = piece;
        if let Body::NotBegun = self.body {
            // Blank lines, and a mark of the byte order, mean nothing in either form.
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            let Some(start) = piece.iter().position(|byte| !is_blank(byte)) else {
                return self.check_size(STREAM_BYTES);
            };
            piece = &piece[start..];
            self.body = match piece[0] {
                b'{' => Body::Whole(Vec::new()),
                _ => Body::Events(Parser::default()),
            };
        }
        match &mut self.body {
            Body::NotBegun => Ok(Progress::More),
            Body::Whole(bytes) => {
                bytes.extend_from_slice(piece);
                self.check_size(RESULT_BYTES)
            }
            Body::Events(parser) => {
                let mut events = Vec::new();
                let pushed = parser.push(piece, &mut events);
                for event in events {
                    self.take_event(&event)?;
                    if self.reply.is_done {
                        return Ok(Progress::Done);
                    }
                }
                pushed.map_err(|TooLarge| too_large("an event of the answer is larger than 1 MiB".into()))?;
                self.check_size(STREAM_BYTES)
            }
        }
    }

    /// The body has ended as bodies do: is it an answer?
    pub fn end(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.body, Body::NotBegun) {
            Body::NotBegun => Err(broken_off("it is empty")),
            Body::Whole(bytes) => self.take_whole(bytes),
            Body::Events(parser) => {
                let recognized = parser.recognized();
                if let Some(event) = parser.finish() {
                    // One that was cut off is no event.
                    let is_whole =
                        event.data == openai::DONE || serde_json::from_str::<Value>(&event.data).is_ok();
                    if is_whole {
                        self.take_event(&event)?;
                    }
                }
                if self.reply.is_done || self.has_said_why() {
                    return Ok(());
                }
                Err(match recognized {
                    true => broken_off("the stream ended before its last event"),
                    false => unreadable("the answer is neither a stream of events nor JSON"),
                })
            }
        }
    }

    /// Not everybody who speaks like OpenAI says goodbye; a reason to finish is as good.
    fn has_said_why(&self) -> bool {
        match self.provider {
            Provider::OpenAi | Provider::WorkersAi => self.reply.finish_reason.is_some(),
            Provider::Anthropic => false,
        }
    }

    /// The connection is gone.
    pub fn broken(&self, why: &str) -> Failure {
        broken_off(why)
    }

    /// What a person can read of it.
    pub fn text_so_far(self) -> String {
        match self.body {
            Body::Whole(bytes) => text_of(bytes),
            Body::NotBegun | Body::Events(_) => self.reply.text,
        }
    }

    /// A failure, with what had arrived by then.
    pub fn stopped(self, failure: Failure) -> Stopped {
        let partial = self.text_so_far();
        match partial.is_empty() {
            true => Stopped::Failed(failure),
            false => Stopped::FailedMidway { failure, partial },
        }
    }

    fn take_event(&mut self, event: &Event) -> Result<(), Failure> {
        if event.data == openai::DONE {
            self.reply.is_done = true;
            return Ok(());
        }
        if event.data.trim().is_empty() {
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(&event.data)
            .map_err(|error| unreadable(format!("an event of the answer is not JSON: {error}")))?;
        if let Some(failure) = error_in(&chunk, self.redactor) {
            return Err(failure);
        }
        match self.provider {
            Provider::OpenAi | Provider::WorkersAi => openai::fold(&mut self.reply, &chunk),
            Provider::Anthropic => anthropic::fold(&mut self.reply, &chunk),
        }
    }

    fn take_whole(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        let answer: Value = match serde_json::from_slice(&bytes) {
            Ok(answer) => answer,
            Err(error) => {
                self.body = Body::Whole(bytes);
                return Err(match error.is_eof() {
                    true => broken_off("its JSON has no end"),
                    false => unreadable(format!("the answer is not JSON: {error}")),
                });
            }
        };
        if let Some(failure) = error_in(&answer, self.redactor) {
            return Err(failure);
        }
        let known = match self.provider {
            Provider::OpenAi => ["choices", "choices"],
            Provider::WorkersAi => ["choices", "response"],
            Provider::Anthropic => ["content", "content"],
        };
        if !known.iter().any(|field| answer.get(field).is_some()) {
            self.body = Body::Whole(bytes);
            return Err(unreadable(format!("the answer has no \"{}\"", known[1])));
        }
        match self.provider {
            Provider::OpenAi | Provider::WorkersAi => openai::fold(&mut self.reply, &answer),
            Provider::Anthropic => anthropic::fold_message(&mut self.reply, &answer),
        }
    }

    fn check_size(&self, most: usize) -> Result<Progress, Failure> {
        match self.bytes > most {
            true => Err(too_large(format!(
                "the answer is larger than the limit of {most} bytes"
            ))),
            false => Ok(Progress::More),
        }
    }
}
