//! What clients that watch the run are sent: pages of its history first, then the events of each commit. Both have the events of
//! `/events`, one a line.

use crate::api::recovery;
use crate::base::text;
use crate::host::object::Host;
use crate::host::platform::{LiveEvents, Platform, Result};
use crate::protocol::run::{LivePage, PageRequest, RunResponse};
use crate::run::{HistoryEvent, Run, Write};

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

    /// The history after number `after`: a line that says how far it goes, then a line for each event.
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
        let lines = lines(&self.run_id(), events);
        Ok(RunResponse::Done(format!("{}\n{lines}", text::to_json(&head)?)))
    }
}

/// One line for each event: its number, its kind, and the event as `/events` shows it. Number and kind stand apart, so that what
/// passes the line on need not read JSON.
fn lines(run_id: &str, events: Vec<HistoryEvent>) -> String {
    let line = |event: HistoryEvent| {
        let (seq, kind) = (event.seq, event.kind);
        format!("{seq} {} {}", kind.name(), recovery::event(run_id, event))
    };
    let lines: Vec<String> = events.into_iter().map(line).collect();
    lines.join("\n")
}
