//! The artifacts of a task that did not complete: the results of its finished steps and the text that had arrived of a stopped
//! one. Each is cut when it is added, so that memory holds no more than a report does.

use std::io;
use std::rc::Rc;

use serde_json::Value;

use crate::protocol::task::Artifact;

/// The text limits of one artifact and of all artifacts of a report.
pub const ARTIFACT_BYTES: usize = 16 << 10;
pub const ARTIFACTS_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Partial(Vec<Rc<Artifact>>);

impl Partial {
    pub(super) fn finished(&mut self, step: &str, result: &Value) {
        let mut start = Start::default();
        match result {
            Value::String(text) => start.take(text.as_bytes()),
            other => serde_json::to_writer(&mut start, other).expect("the writer accepts everything"),
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
        self.0.push(Rc::new(Artifact {
            name: step.to_string(),
            complete: finished && text.len() as u64 == start.bytes,
            bytes: start.bytes,
            text,
        }));
    }

    /// All artifacts so far, shared.
    pub(super) fn so_far(&self) -> Vec<Rc<Artifact>> {
        self.0.clone()
    }

    /// All artifacts in the order of their steps.
    pub(super) fn into_artifacts(self) -> Vec<Artifact> {
        bounded(self.0.into_iter().map(Rc::unwrap_or_clone).collect())
    }
}

/// Cuts the texts to what all artifacts of a report may have. The latest are cut last, because they show where the task is.
pub fn bounded(artifacts: Vec<Artifact>) -> Vec<Artifact> {
    bounded_to(artifacts, ARTIFACTS_BYTES)
}

/// As `bounded`, to so many bytes of text.
pub fn bounded_to(mut artifacts: Vec<Artifact>, bytes_max: usize) -> Vec<Artifact> {
    let mut left = bytes_max;
    for artifact in artifacts.iter_mut().rev() {
        let end = artifact.text.floor_char_boundary(left);
        if end < artifact.text.len() {
            artifact.text.truncate(end);
            artifact.complete = false;
        }
        left -= end;
    }
    artifacts
}

/// The valid UTF-8 that bytes begin with. The last character may have arrived only in part.
pub fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(end);
        String::from_utf8(bytes).expect("all bytes up to here are valid")
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
        let left = ARTIFACT_BYTES.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(left)]);
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
