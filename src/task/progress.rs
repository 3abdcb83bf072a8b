//! How far a task has come, for the heartbeats of its attempt. The task writes it as it goes; the sender of heartbeats reads it at
//! most once a second. Texts are cut and redacted when they are read, because most tasks end before that.

use std::cell::RefCell;
use std::rc::Rc;

use crate::protocol::task::{Artifact, StepProgress};
use crate::task::partial::{ARTIFACT_BYTES, bounded};
use crate::task::redact::Redactor;

#[derive(Debug, Default)]
pub struct ProgressCell(RefCell<Written>);

#[derive(Debug, Default)]
struct Written {
    /// Something was written since it was last read.
    is_changed: bool,
    step_ref: String,
    step_index: u32,
    steps_total: u32,
    attempt: u32,
    /// The artifacts of the steps before, redacted.
    finished: Vec<Rc<Artifact>>,
    /// The first bytes of the text that has arrived of the call under way, and the size of all of it. Not redacted.
    text: String,
    text_bytes: u64,
    /// The artifacts that were read last.
    sent: Vec<Artifact>,
}

impl ProgressCell {
    /// A step begins that calls a peer.
    pub(super) fn step_began(&self, step: &str, index: usize, total: usize, finished: Vec<Rc<Artifact>>) {
        let mut written = self.0.borrow_mut();
        written.step_ref.clear();
        written.step_ref.push_str(step);
        written.step_index = index as u32;
        written.steps_total = total as u32;
        written.finished = finished;
        written.begin_call(1);
    }

    /// A call of the step begins, from 1. The text of the call before it counts for nothing.
    pub(super) fn call_began(&self, attempt: u32) {
        self.0.borrow_mut().begin_call(attempt);
    }

    /// `text` is all that has arrived of the call, and begins with what had arrived before.
    pub fn streamed(&self, text: &str) {
        let mut written = self.0.borrow_mut();
        if text.len() as u64 == written.text_bytes {
            return;
        }
        written.is_changed = true;
        written.text_bytes = text.len() as u64;
        let kept = written.text.len();
        let end = text.floor_char_boundary(ARTIFACT_BYTES);
        if let Some(more) = text.get(kept..end) {
            written.text.push_str(more);
        }
    }

    /// What has changed since it was last read, if anything has.
    pub fn take_change(&self, redactor: &Redactor) -> Option<StepProgress> {
        let mut written = self.0.borrow_mut();
        if !std::mem::take(&mut written.is_changed) {
            return None;
        }
        let mut partial = written.artifacts(redactor);
        let unchanged = written.sent.iter().zip(&partial);
        let keep = unchanged.take_while(|(before, now)| before == now).count();
        written.sent.clone_from(&partial);
        Some(StepProgress {
            step_ref: written.step_ref.clone(),
            step_index: written.step_index,
            steps_total: written.steps_total,
            attempt: written.attempt,
            keep,
            partial: partial.split_off(keep),
        })
    }
}

impl Written {
    fn begin_call(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.text.clear();
        self.text_bytes = 0;
        self.is_changed = true;
    }

    fn artifacts(&self, redactor: &Redactor) -> Vec<Artifact> {
        let mut artifacts: Vec<Artifact> = self.finished.iter().map(|it| (**it).clone()).collect();
        let mut text = redactor.text_so_far(&self.text);
        text.truncate(text.floor_char_boundary(ARTIFACT_BYTES));
        if !text.is_empty() {
            artifacts.push(Artifact {
                name: self.step_ref.clone(),
                complete: false,
                bytes: self.text_bytes,
                text,
            });
        }
        bounded(artifacts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began(cell: &ProgressCell) {
        cell.step_began("ask", 1, 3, Vec::new());
    }

    fn read(cell: &ProgressCell, redactor: &Redactor) -> Option<(usize, Vec<String>)> {
        let progress = cell.take_change(redactor)?;
        let texts = progress.partial.into_iter().map(|artifact| artifact.text);
        Some((progress.keep, texts.collect()))
    }

    #[test]
    fn only_changes_are_read() {
        let (cell, redactor) = (ProgressCell::default(), Redactor::default());
        assert_eq!(cell.take_change(&redactor), None);
        let done = Rc::new(Artifact {
            name: "plan".into(),
            complete: true,
            bytes: 4,
            text: "done".into(),
        });
        cell.step_began("ask", 1, 3, vec![done]);
        let first = cell.take_change(&redactor).expect("a step began");
        let place = (
            &*first.step_ref,
            first.step_index,
            first.steps_total,
            first.attempt,
        );
        assert_eq!(place, ("ask", 1, 3, 1));
        assert_eq!(cell.take_change(&redactor), None);
        cell.streamed("Hel");
        assert_eq!(read(&cell, &redactor), Some((1, vec!["Hel".into()])));
        cell.streamed("Hel");
        assert_eq!(read(&cell, &redactor), None);
        cell.streamed("Hello");
        assert_eq!(read(&cell, &redactor), Some((1, vec!["Hello".into()])));
        cell.call_began(2);
        let again = cell.take_change(&redactor).expect("the call is made again");
        assert_eq!((again.attempt, again.keep, again.partial), (2, 1, Vec::new()));
    }

    #[test]
    fn changes_after_each_other_make_the_whole() {
        let (cell, redactor) = (ProgressCell::default(), Redactor::default());
        let mut known = Vec::new();
        began(&cell);
        for text in ["a", "ab", "abc"] {
            cell.streamed(text);
            let change = cell.take_change(&redactor).expect("it has changed");
            known = change.after(known).partial;
            assert_eq!(known.iter().map(|it| &*it.text).collect::<Vec<_>>(), [text]);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_still_counted() {
        let (cell, redactor) = (ProgressCell::default(), Redactor::default());
        began(&cell);
        for characters in [10_000, 10_923, 10_930] {
            cell.streamed(&"ü€".repeat(characters / 2));
        }
        let progress = cell.take_change(&redactor).expect("text has come");
        let [artifact] = &progress.partial[..] else {
            panic!("{progress:?}");
        };
        assert_eq!(artifact.bytes, 5 * 10_930 / 2);
        assert!(artifact.text.len() <= ARTIFACT_BYTES && artifact.text.len() > ARTIFACT_BYTES - 4);
        assert!(!artifact.complete);
    }

    #[test]
    fn a_secret_never_shows_wherever_its_text_ends() {
        let secret = "sk-0123456789-abcdef";
        let redactor = Redactor::new([secret.to_string(), "9-abcdefghij".to_string()]);
        let said = format!("the key is {secret}, I repeat {secret}");
        let mut shown_before = String::new();
        for end in 1..=said.len() {
            let cell = ProgressCell::default();
            began(&cell);
            cell.streamed(&said[..end]);
            let shown = read(&cell, &redactor).map_or_else(String::new, |(_, texts)| texts.concat());
            assert!(!shown.contains("sk-"), "{shown}");
            assert!(
                !shown.contains("s") || !shown.ends_with('s') || shown.ends_with("is"),
                "{shown}"
            );
            assert!(
                shown.starts_with(&shown_before),
                "{shown_before:?} became {shown:?}"
            );
            shown_before = shown;
        }
        assert_eq!(shown_before, "the key is [redacted], I repeat [redacted]");
    }
}
