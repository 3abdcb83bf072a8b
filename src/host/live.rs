//! What clients that watch the run are sent: pages of its history first, then the events of each commit. Both have the events of
//! `/events`, one a line.

use serde_json::json;

use crate::api::live::PROGRESS;
use crate::api::recovery;
use crate::base::text;
use crate::host::object::Host;
use crate::host::platform::{LiveEvents, Platform, Result};
use crate::protocol::run::{LivePage, PageRequest, RunResponse};
use crate::run::{HistoryEvent, Run, Token, TokenId, Write};

/// Events of one page. A watcher that lags behind gets several.
const PAGE: u64 = 200;

impl<P: Platform> Host<P> {
    /// The commit of `writes` has succeeded.
    pub(super) fn publish_events(&self, writes: &[Write]) -> Result<()> {
        let last = self.with_run(Run::last_event_seq)?;
        let after = self.published_seq.replace(last);
        if last == after || !self.platform.is_watched() {
            return Ok(());
        }
        let events = self.with_run(|run| LiveEvents {
            after,
            last,
            lines: lines(&run.header.id, run.new_events(writes, after)),
            has_ended: run.header.status.is_terminal(),
        })?;
        self.platform.publish_events(events);
        Ok(())
    }

    /// The progress of an attempt, unless it has ended in the same commit.
    pub(super) fn publish_progress(&self, token: TokenId, epoch: u64) -> Result<()> {
        if !self.platform.is_watched() {
            return Ok(());
        }
        let line = self.with_run(|run| {
            let token = run.live_token(token).filter(|token| token.epoch == epoch);
            token.and_then(|token| progress_line(run, token))
        })?;
        if let Some(line) = line {
            self.platform.publish_progress(&line);
        }
        Ok(())
    }

    /// The history after number `after`: a line that says how far it goes, then a line for each event. Behind the
    /// last event comes the progress of what is executing.
    pub(super) fn live_page(&self, after: u64) -> Result<RunResponse> {
        let (events, more) = self.events_after(PageRequest { after, limit: PAGE })?;
        let head = self.with_run(|run| {
            let last_of_run = run.last_event_seq();
            let last_of_page = events.last().filter(|_| more);
            LivePage {
                last: last_of_page.map_or(last_of_run, |event| event.seq),
                last_of_run,
                ended: run.header.status.is_terminal(),
            }
        })?;
        let mut text = text::to_json(&head)?;
        let events = self.with_run(|run| {
            let mut lines: Vec<String> = events
                .into_iter()
                .map(|event| line(&run.header.id, event))
                .collect();
            if !more {
                lines.extend(run.live_tokens().filter_map(|token| progress_line(run, token)));
            }
            lines.join("\n")
        })?;
        text.push('\n');
        text.push_str(&events);
        Ok(RunResponse::Done(text))
    }
}

/// One line for each event.
fn lines(run_id: &str, events: Vec<HistoryEvent>) -> String {
    let lines: Vec<String> = events.into_iter().map(|event| line(run_id, event)).collect();
    lines.join("\n")
}

/// The number of an event, its kind, and the event as `/events` shows it. Number and kind stand apart, so that what passes the
/// line on need not read JSON.
fn line(run_id: &str, event: HistoryEvent) -> String {
    let (seq, kind) = (event.seq, event.kind.name());
    format!("{seq} {kind} {}", recovery::event(run_id, event))
}

/// Progress is no part of the history and has no number. `None`: the attempt has sent none.
fn progress_line(run: &Run, token: &Token) -> Option<String> {
    let progress = token.progress.as_deref()?;
    let node = &run.snapshot_of(token.id).workflow.nodes[token.node];
    let mut view = json!(progress);
    view["kind"] = json!(PROGRESS);
    view["token_id"] = json!(token.id.to_string());
    view["node_id"] = json!(node.shown_id());
    view["epoch"] = json!(token.epoch);
    Some(format!("- {PROGRESS} {view}"))
}
