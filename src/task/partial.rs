//! What is left of a task that did not complete: the results of the steps it finished and the text that had arrived of
//! a step that was stopped. Cut on arrival, so that a task of many large results holds only what it could report.

use std::io;

use serde_json::Value;

use crate::protocol::task::Artifact;

/// The most text of one artifact, and of all artifacts of a report.
pub const ARTIFACT_BYTES: usize = 16 << 10;
pub const ARTIFACTS_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Partial(Vec<Artifact>);

impl Partial {
    pub(super) fn finished(&mut self, step: &str, result: &Value) {
        let mut start = Start::default();
        match result {
            Value::String(text) => start.take(text.as_bytes()),
            // Nothing here fails: the writer takes everything, and a value has no keys but strings.
            other => serde_json::to_writer(&mut start, other).unwrap_or_default(),
        }
        self.push(step, start, true);
    }

    pub(super) fn stopped(&mut self, step: &str, text: &str) {
        if !text.is_empty() {
            let mut start = Start::default();
            start.take(text.as_bytes());
            self.push(step, start, false);
        }
    }

    fn push(&mut self, step: &str, start: Start, finished: bool) {
        let text = text_of(start.kept);
        self.0.push(Artifact {
            name: step.to_string(),
            complete: finished && text.len() as u64 == start.bytes,
            bytes: start.bytes,
            text,
        });
    }

    /// All artifacts in the order of their steps. The latest have the first claim on the room there is: what the last
    /// step was doing is what a person looks for.
    pub(super) fn into_artifacts(mut self) -> Vec<Artifact> {
        let mut room = ARTIFACTS_BYTES;
        for artifact in self.0.iter_mut().rev() {
            let end = artifact.text.floor_char_boundary(room);
            if end < artifact.text.len() {
                artifact.text.truncate(end);
                artifact.complete = false;
            }
            room -= end;
        }
        self.0
    }
}

/// The text that bytes begin with: a character that had arrived only in part is left out, and so is all that follows
/// something that is no text.
pub fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(end);
        String::from_utf8(bytes).unwrap_or_default()
    })
}

/// Keeps the start of what is written and counts all of it.
#[derive(Default)]
struct Start {
    kept: Vec<u8>,
    bytes: u64,
}

impl Start {
    fn take(&mut self, bytes: &[u8]) {
        let room = ARTIFACT_BYTES.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len() as u64;
    }
}

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
