//! The history of a run, read from its rows on request: one page of them at a time, however many there are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::error::Error as ApiError;
use crate::api::export;
use crate::api::notifications;
use crate::api::recovery;
use crate::api::views;
use crate::base::failure::Failure;
use crate::base::from_json::from_json;
use crate::base::ordered::{map_of, sort_by_key};
use crate::base::text::json_bytes;
use crate::definition::snapshot::Snapshot;
use crate::host::object::Host;
use crate::host::platform::{Error, Platform, Result, Storage};
use crate::host::requests::{done, refused};
use crate::protocol::run::{PageRequest, RunResponse};
use crate::run::{
    HistoryEvent, InstanceId, NeededRows, Past, Progress, ReadRows, Rejection, RestartPoint, ResumePlan,
    ResumeRows, Rewind, Run, RunEvent, Token, TokenId, WrittenAt,
};
use crate::storage::pages::{ListedRow, page_length, pages};
use crate::storage::restore::{self, PastReader};
use crate::storage::rows::{self, TokenRow, parse_status};

/// Records of one timeout log.
const LINES: u64 = 10_000;

/// More rows than there can be.
const ALL: u64 = u32::MAX as u64;

/// Items of one answer.
pub(super) const ITEMS: u64 = 1_000;

impl<P: Platform> Host<P> {
    pub(super) fn tokens(&self, page: PageRequest) -> Result<RunResponse> {
        let PageRequest { after, limit } = bounded(page);
        let mut listed = self.platform.storage().list_tokens(after, limit + 1)?;
        // The progress of a token is in memory. The page is as long as fits with it.
        self.with_run(|run| {
            for row in &mut listed {
                row.bytes += progress_of(run, row.number).map_or(0, json_bytes) as u64;
            }
        })?;
        let (page, next) = first_page(listed, limit);
        let run_ends_at = self.with_run(|run| run.header.limit_due_at())?;
        let mut items = Vec::new();
        self.each_row(&page, |listed, row| {
            let mut row = from_json::<TokenRow>(row)?;
            row.progress = self.with_run(|run| progress_of(run, listed.number).cloned().map(Box::new))?;
            let status = parse_status(&listed.status).map_err(Error)?;
            items.push(views::token(listed.number, status, row, run_ends_at));
            Ok(())
        })?;
        done(&json!({"items": items, "next_cursor": next}))
    }

    pub(super) fn events(&self, page: PageRequest) -> Result<RunResponse> {
        let (events, more) = self.events_after(bounded(page))?;
        let next = events.last().map(|event| event.seq.to_string()).filter(|_| more);
        let run_id = self.run_id();
        let events = events.into_iter().map(|event| recovery::event(&run_id, event));
        done(&json!({"items": events.collect::<Vec<Value>>(), "next_cursor": next}))
    }

    /// A page of the whole history: events with a row of their own, and those on other rows, in the order of their numbers; and
    /// whether there are more.
    pub(super) fn events_after(&self, page: PageRequest) -> Result<(Vec<HistoryEvent>, bool)> {
        let PageRequest { after, limit } = page;
        let storage = self.platform.storage();
        let (page, next) = first_page(storage.list_events(after, limit + 1)?, limit);
        // Events on other rows are shown up to where the page of rows ends.
        let last = match &next {
            Some(_) => page.last().map_or(after, |row| row.number),
            None => u64::MAX,
        };
        let mut events: Vec<HistoryEvent> = Vec::new();
        for listed in storage.list_row_events(after, limit + 1)? {
            if listed.event.seq < last {
                events.push(listed.history_event().map_err(Error)?);
            }
        }
        self.each_row(&page, |listed, row| {
            events.push(HistoryEvent::of_log(&entry(listed, row)?));
            Ok(())
        })?;
        sort_by_key(&mut events, |event| event.seq);
        let more = next.is_some() || events.len() as u64 > limit;
        events.truncate(limit as usize);
        Ok((events, more))
    }

    /// From memory: the run holds the few that are kept.
    pub(super) fn notifications(&self, page: PageRequest) -> Result<RunResponse> {
        let PageRequest { after, limit } = bounded(page);
        let view = self.with_run(|run| {
            let mut kept = run.notifications().filter(|it| it.number > after).peekable();
            let (mut items, mut last) = (Vec::new(), after);
            while let Some(next) = kept.next_if(|_| (items.len() as u64) < limit) {
                last = next.number;
                items.push(notifications::view(next));
            }
            let next_cursor = kept.peek().map(|_| last.to_string());
            let mut view = json!({"items": items, "next_cursor": next_cursor});
            if let Some(message) = run.invalid_notify_setting() {
                view["problem"] = json!(message);
            }
            view
        })?;
        done(&view)
    }

    pub(super) fn timeouts(&self, page: PageRequest) -> Result<RunResponse> {
        let PageRequest { after, limit } = bounded(page);
        let mut listed = self.platform.storage().list_timeouts(after, limit + 1)?;
        // Every record has the state that a retry would start from. The page is as long as fits with it.
        let state_bytes = self.with_run(|run| json_bytes(run.context().state()))?;
        for row in &mut listed {
            row.bytes += state_bytes as u64;
        }
        let (page, next) = first_page(listed, limit);
        let ended = match page.is_empty() {
            true => Vec::new(),
            false => self.past()?.tokens,
        };
        let mut items: Vec<Value> = Vec::new();
        self.each_row(&page, |listed, row| {
            let entry = entry(listed, row)?;
            items.extend(self.with_run(|run| recovery::timeout(run, &entry, &ended))?);
            Ok(())
        })?;
        done(&json!({"items": items, "next_cursor": next}))
    }

    /// One line per timeout; the API makes text of them.
    pub(super) fn timeout_lines(&self) -> Result<RunResponse> {
        let listed = self.platform.storage().list_timeouts(0, LINES)?;
        let mut lines: Vec<Value> = Vec::new();
        self.each_row(&listed, |listed, row| {
            let entry = entry(listed, row)?;
            lines.extend(self.with_run(|run| recovery::timeout_line(&run.header, &entry))?);
            Ok(())
        })?;
        done(&lines)
    }

    pub(super) fn timeout(&self, id: u64) -> Result<RunResponse> {
        let mut found = self.platform.storage().list_timeouts(id.saturating_sub(1), 1)?;
        found.retain(|listed| listed.number == id);
        let mut view = None;
        self.each_row(&found, |listed, row| {
            let entry = entry(listed, row)?;
            let ended = self.past()?.tokens;
            view = self.with_run(|run| recovery::timeout(run, &entry, &ended))?;
            if let Some(view) = &mut view {
                view["why"] = self.why(&entry)?;
            }
            Ok(())
        })?;
        match view {
            Some(view) => done(&view),
            None => Ok(refused(&ApiError::not_found("the timeout"))),
        }
    }

    /// What an export has besides the lists.
    pub(super) fn recording(&self) -> Result<RunResponse> {
        let now = self.platform.now();
        let recording = self.with_run(|run| export::recording(run, &self.config.settings, now))?;
        done(&recording)
    }

    pub(super) fn resume_options(&self) -> Result<RunResponse> {
        let past = self.past()?;
        let plan = self.with_run(|run| run.resume_plan(&past))?;
        let errors = self.errors_of(&plan.failed)?;
        let view = self.with_run(|run| recovery::resume(run, &past, &plan, &errors))?;
        done(&view)
    }

    pub(super) fn deliverable(&self) -> Result<RunResponse> {
        let past = match self.with_run(|run| recovery::shows_tokens(&run.header))? {
            true => self.past()?,
            false => Past::default(),
        };
        let errors = self.errors_of(&recovery::tokens_with_errors(&past.tokens))?;
        let lateness = self.platform.storage().lateness()?;
        let timeouts = lateness.iter().map(|(_, count, _, _)| count).sum();
        let view = self.with_run(|run| recovery::deliverable(run, &past.tokens, &errors, timeouts))?;
        match view {
            Ok(view) => done(&view),
            Err(error) => Ok(refused(&error)),
        }
    }

    /// Every token and instance of the run, as far as a resume plan needs them.
    pub(super) fn past(&self) -> Result<Past> {
        let tokens = self.platform.storage().list_tokens(0, ALL)?;
        let instances = self.platform.storage().list_instances()?;
        let mut past = PastReader::default();
        self.each_row(&tokens, |listed, row| {
            let read = past.token(listed.number, &listed.status, row);
            read.map_err(Error)
        })?;
        self.each_row(&instances, |_, row| past.instance(row).map_err(Error))?;
        Ok(past.finish())
    }

    pub(super) fn read_rows(&self, needed: NeededRows) -> Result<ReadRows> {
        match needed {
            NeededRows::Past => Ok(ReadRows::Past(Box::new(self.past()?))),
            NeededRows::Token(id) => Ok(ReadRows::Token(Box::new(self.ended_token(id)?))),
        }
    }

    fn ended_token(&self, id: TokenId) -> Result<Token> {
        let snapshot = self.with_run(|run| run.snapshot().clone())?;
        let listed = self.platform.storage().list_tokens(id.0.saturating_sub(1), 1)?;
        let mut found = None;
        self.each_row(&listed, |listed, row| {
            let token = restore::token(listed.number, &listed.status, row, &snapshot);
            found = Some(token.map_err(Error)?);
            Ok(())
        })?;
        found
            .filter(|token: &Token| token.id == id)
            .ok_or_else(|| Error(format!("token {id} has no row")))
    }

    /// The rows that a retried run goes on with, for the version that it goes on with.
    pub(super) fn rows_to_go_on(&self, plan: &ResumePlan, snapshot: &Snapshot) -> Result<ResumeRows> {
        let mut tokens = self.platform.storage().list_tokens(0, ALL)?;
        tokens.retain(|listed| plan.tokens.binary_search(&TokenId(listed.number)).is_ok());
        let mut instances = self.platform.storage().list_instances()?;
        instances.retain(|listed| plan.instances.binary_search(&InstanceId(listed.number)).is_ok());
        let mut rows = ResumeRows::default();
        self.each_row(&tokens, |listed, row| {
            let token = restore::token_to_go_on(listed.number, &listed.status, row, snapshot);
            let mut token = match token.map_err(Error)? {
                Ok(token) => token,
                Err(misfit) => {
                    rows.misfits.push(misfit);
                    return Ok(());
                }
            };
            if token.undo.apart.contains(&WrittenAt::Exit) {
                token.undo.writes = self.platform.storage().undo(listed.number, WrittenAt::Exit)?;
            }
            rows.tokens.push(token);
            Ok(())
        })?;
        self.each_row(&instances, |_, row| {
            match restore::instance_to_go_on(row, snapshot).map_err(Error)? {
                Ok(instance) => rows.instances.push(instance),
                Err(misfits) => rows.misfits.extend(misfits),
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// The point that a restart from `node_id` goes back to, with the context of that time. `None`: the version has no such node.
    pub(super) fn restart_point(
        &self,
        node_id: &str,
        snapshot: &Snapshot,
    ) -> Result<Option<std::result::Result<RestartPoint, Rejection>>> {
        let Some(node) = snapshot.workflow.declared_node_index(node_id) else {
            return Ok(None);
        };
        let past = self.past()?;
        let mut rewind = match self.with_run(|run| Rewind::plan(run, snapshot, node, &past.tokens))? {
            Ok(rewind) => rewind,
            Err(rejection) => return Ok(Some(Err(rejection))),
        };
        let listed = self.platform.storage().list_tokens(0, ALL)?;
        let by_id: BTreeMap<u64, &ListedRow> = map_of(listed.iter().map(|row| (row.number, row)));
        let found = rewind.writes().iter().filter_map(|(token, at)| {
            let row = by_id.get(&token.0)?;
            Some(((*row).clone(), *at))
        });
        let (rows, moments): (Vec<ListedRow>, Vec<WrittenAt>) = found.unzip();
        let mut moments = moments.into_iter();
        self.each_row(&rows, |listed, row| {
            if let Some(at) = moments.next() {
                let patches = match rows::patches_of(row, at)? {
                    Some(patches) => patches,
                    None => self.platform.storage().undo(listed.number, at)?,
                };
                rewind.undo(&patches);
            }
            Ok(())
        })?;
        Ok(Some(Ok(rewind.finish())))
    }

    /// `tokens` in the order of their ids.
    fn errors_of(&self, tokens: &[TokenId]) -> Result<BTreeMap<TokenId, Failure>> {
        if tokens.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut listed = self.platform.storage().list_tokens(0, ALL)?;
        listed.retain(|row| tokens.binary_search(&TokenId(row.number)).is_ok());
        let mut errors = BTreeMap::new();
        self.each_row(&listed, |listed, row| {
            errors.extend(rows::error_of(row)?.map(|error| (TokenId(listed.number), error)));
            Ok(())
        })?;
        Ok(errors)
    }

    /// Reads the rows in their order and holds a page of them at a time.
    pub(super) fn each_row(
        &self,
        listed: &[ListedRow],
        mut read: impl FnMut(&ListedRow, &str) -> Result<()>,
    ) -> Result<()> {
        for page in pages(listed) {
            for (listed, row) in page.iter().zip(self.platform.storage().values(page)?) {
                read(listed, &row)?;
            }
        }
        Ok(())
    }
}

/// How far the attempt of a token that is executing has come.
fn progress_of(run: &Run, token: u64) -> Option<&Progress> {
    run.live_token(TokenId(token))?.progress.as_deref()
}

fn bounded(page: PageRequest) -> PageRequest {
    PageRequest {
        limit: page.limit.clamp(1, ITEMS),
        ..page
    }
}

/// As many of the rows as make one answer, and where the next one begins.
pub(super) fn first_page(mut listed: Vec<ListedRow>, limit: u64) -> (Vec<ListedRow>, Option<String>) {
    let length = page_length(&listed, limit as usize);
    let more = listed.len() > length;
    listed.truncate(length);
    let last = listed.last().map(|row| row.number.to_string());
    (listed, last.filter(|_| more))
}

pub(super) fn entry(listed: &ListedRow, row: &str) -> Result<RunEvent> {
    let entry: RunEvent =
        from_json(row).map_err(|wrong| Error(format!("event {} cannot be read: {wrong}", listed.number)))?;
    Ok(RunEvent {
        seq: listed.number,
        ..entry
    })
}
