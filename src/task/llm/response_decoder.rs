//! Decodes a provider's response from chunks, wherever they are cut. After a deadline it has the text that had arrived.

use serde_json::Value;

use super::{anthropic, openai};
use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::definition::llm::Provider;
use crate::task::llm::completion::Completion;
use crate::task::llm::provider_error::{broken_off, error_in, too_large, unreadable};
use crate::task::partial::text_of;
use crate::task::redact::Redactor;
use crate::task::runtime::Stopped;
use crate::task::sse::{SseEvent, SseParser, TooLarge};
use crate::task::trace::CallNotes;

/// The largest stream. Its events wrap a few characters in hundreds of bytes.
const STREAM_BYTES: usize = 128 * RESULT_BYTES;

pub struct ResponseDecoder<'a> {
    provider: Provider,
    redactor: &'a Redactor,
    body: Body,
    pub(super) completion: Completion,
    bytes: usize,
}

/// Some providers send plain JSON although a stream was requested. The first character shows which it is.
enum Body {
    NotBegun,
    Events(SseParser),
    Whole(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeProgress {
    More,
    /// The response is complete, and the connection may be closed.
    Done,
}

impl<'a> ResponseDecoder<'a> {
    pub fn new(provider: Provider, redactor: &'a Redactor) -> ResponseDecoder<'a> {
        ResponseDecoder {
            provider,
            redactor,
            body: Body::NotBegun,
            completion: Completion::default(),
            bytes: 0,
        }
    }

    pub fn take(&mut self, chunk: &[u8]) -> Result<DecodeProgress, Failure> {
        self.bytes += chunk.len();
        let mut chunk = chunk;
        if let Body::NotBegun = self.body {
            // White space and a byte order mark may precede either form.
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            let Some(start) = chunk.iter().position(|byte| !is_blank(byte)) else {
                return self.check_size(STREAM_BYTES);
            };
            chunk = &chunk[start..];
            self.body = match chunk[0] {
                b'{' => Body::Whole(Vec::new()),
                _ => Body::Events(SseParser::default()),
            };
        }
        match &mut self.body {
            Body::NotBegun => Ok(DecodeProgress::More),
            Body::Whole(bytes) => {
                bytes.extend_from_slice(chunk);
                self.check_size(RESULT_BYTES)
            }
            Body::Events(parser) => {
                let mut events = Vec::new();
                let pushed = parser.push(chunk, &mut events);
                for event in events {
                    self.add_event(&event)?;
                    if self.completion.is_done {
                        return Ok(DecodeProgress::Done);
                    }
                }
                pushed.map_err(|TooLarge| too_large("an event of the answer is larger than 1 MiB".into()))?;
                self.check_size(STREAM_BYTES)
            }
        }
    }

    /// Checks at the end of the body that the response is complete.
    pub fn end(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.body, Body::NotBegun) {
            Body::NotBegun => Err(broken_off("it is empty")),
            Body::Whole(bytes) => self.add_whole(bytes),
            Body::Events(parser) => {
                let recognized = parser.recognized();
                if let Some(event) = parser.finish() {
                    // An event that was cut off is ignored.
                    let is_whole =
                        event.data == openai::DONE || serde_json::from_str::<Value>(&event.data).is_ok();
                    if is_whole {
                        self.add_event(&event)?;
                    }
                }
                if self.completion.is_done || self.has_finish_reason() {
                    return Ok(());
                }
                Err(match recognized {
                    true => broken_off("the stream ended before its last event"),
                    false => unreadable("the answer is neither a stream of events nor JSON"),
                })
            }
        }
    }

    /// Some providers with OpenAI's API send no `[DONE]`. A finish reason is enough then.
    fn has_finish_reason(&self) -> bool {
        match self.provider {
            Provider::OpenAi | Provider::WorkersAi => self.completion.finish_reason.is_some(),
            Provider::Anthropic => false,
        }
    }

    /// The failure of a connection that was lost.
    pub fn broken(&self, why: &str) -> Failure {
        broken_off(why)
    }

    /// Notes the model and the tokens, as far as they have arrived.
    pub fn note_usage(&self, notes: &CallNotes) {
        let completion = &self.completion;
        let (input, output) = (completion.input_tokens, completion.output_tokens);
        notes.model_answered(completion.model.as_deref(), input, output, self.redactor);
    }

    /// The text that has arrived; of plain JSON, its source.
    pub fn text_so_far(self) -> String {
        match self.body {
            Body::Whole(bytes) => text_of(bytes),
            Body::NotBegun | Body::Events(_) => self.completion.text,
        }
    }

    /// The text that a stream has brought so far. It only grows. Empty for plain JSON, which is not streamed.
    pub fn streamed(&self) -> &str {
        match self.body {
            Body::Events(_) => &self.completion.text,
            Body::NotBegun | Body::Whole(_) => "",
        }
    }

    /// A model that has used up its tokens may stop inside a secret that it repeats.
    pub(super) fn redact_cut_text(&mut self) {
        let reason = self.completion.finish_reason.as_deref();
        if matches!(reason, Some("length" | "max_tokens")) {
            let text = std::mem::take(&mut self.completion.text);
            self.completion.text = self.redactor.cut_text(text);
        }
    }

    /// A failure, with the text that had arrived.
    pub fn stopped(self, failure: Failure) -> Stopped {
        let partial = self.text_so_far();
        match partial.is_empty() {
            true => Stopped::Failed(failure),
            false => Stopped::FailedMidway { failure, partial },
        }
    }

    fn add_event(&mut self, event: &SseEvent) -> Result<(), Failure> {
        if event.data == openai::DONE {
            self.completion.is_done = true;
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
            Provider::OpenAi | Provider::WorkersAi => openai::fold(&mut self.completion, &chunk),
            Provider::Anthropic => anthropic::fold(&mut self.completion, &chunk),
        }
    }

    fn add_whole(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        let response: Value = match serde_json::from_slice(&bytes) {
            Ok(response) => response,
            Err(error) => {
                self.body = Body::Whole(bytes);
                return Err(match error.is_eof() {
                    true => broken_off("its JSON has no end"),
                    false => unreadable(format!("the answer is not JSON: {error}")),
                });
            }
        };
        if let Some(failure) = error_in(&response, self.redactor) {
            return Err(failure);
        }
        let known = match self.provider {
            Provider::OpenAi => ["choices", "choices"],
            Provider::WorkersAi => ["choices", "response"],
            Provider::Anthropic => ["content", "content"],
        };
        if !known.iter().any(|field| response.get(field).is_some()) {
            self.body = Body::Whole(bytes);
            return Err(unreadable(format!("the answer has no \"{}\"", known[1])));
        }
        match self.provider {
            Provider::OpenAi | Provider::WorkersAi => openai::fold(&mut self.completion, &response),
            Provider::Anthropic => anthropic::fold_message(&mut self.completion, &response),
        }
    }

    fn check_size(&self, max_bytes: usize) -> Result<DecodeProgress, Failure> {
        match self.bytes > max_bytes {
            true => Err(too_large(format!(
                "the answer is larger than the limit of {max_bytes} bytes"
            ))),
            false => Ok(DecodeProgress::More),
        }
    }
}
