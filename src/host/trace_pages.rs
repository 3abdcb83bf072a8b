//! What the trace of an ended run is made of, read from its rows: a page at a time, however many there are.

use crate::base::ordered::sort_by_key;
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::definition::node::{NodeKind, NodeRole};
use crate::definition::snapshot::Snapshot;
use crate::definition::step::{Step, StepAction};
use crate::host::history::{ITEMS, entry, first_page};
use crate::host::object::Host;
use crate::host::platform::{Error, Platform, Result, Storage};
use crate::host::requests::done;
use crate::protocol::child::RunStatus;
use crate::protocol::run::RunResponse;
use crate::protocol::trace::{
    TraceCursor, TracePage, TracedError, TracedEvent, TracedGate, TracedKind, TracedRun, TracedToken,
};
use crate::run::{GateKind, GateState, GateStatus, Header, Run, RunEventKind, TokenId};
use crate::storage::rows::{parse_status, traced_event, traced_row_event, traced_token};

/// The size of a page, without its run. A larger token is a page of its own.
const PAGE_BYTES: usize = 256 << 10;

/// Gates of the run as a whole, the oldest first.
const RUN_GATES: usize = 100;

/// More events than there can be.
const ALL: u64 = u32::MAX as u64;

/// The part of the history that belongs to one end. Numbers are those of events.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    number: u64,
    after: u64,
    up_to: u64,
    began_at: Millis,
    ended_at: Millis,
    status: RunStatus,
    /// The end is the state of the header, which has its error.
    is_current: bool,
}

/// An event at which the run started, went on or ended.
#[derive(Clone, Copy)]
struct Turn {
    seq: u64,
    at: Millis,
    kind: RunEventKind,
}

impl<P: Platform> Host<P> {
    pub(super) fn trace_page(&self, end: Option<u64>, cursor: TraceCursor) -> Result<RunResponse> {
        let (is_sampled, ends) = self.with_run(|run| (run.header.is_sampled(), run.header.ends))?;
        let number = end.unwrap_or(ends);
        let part = match is_sampled && number > 0 {
            true => self.part_of(number)?,
            false => None,
        };
        let Some(part) = part else {
            return done(&TracePage::default());
        };
        let is_first = cursor == TraceCursor::START;
        let mut page = TracePage {
            run: Some(self.with_run(|run| traced_run(run, part, is_first))?),
            ..TracePage::default()
        };
        if let TraceCursor::Events(after) = cursor {
            page.next = self.add_events(&mut page.events, part, after)?;
        }
        if page.next.is_none() {
            let after = match cursor {
                TraceCursor::Events(_) => 0,
                TraceCursor::Tokens(after) => after,
            };
            page.next = self.add_tokens(&mut page.tokens, part, after)?;
        }
        done(&page)
    }

    /// `None`: the run has no such end.
    fn part_of(&self, number: u64) -> Result<Option<Part>> {
        let simple = self.with_run(|run| only_part(&run.header).filter(|part| part.number == number))?;
        if simple.is_some() {
            return Ok(simple);
        }
        // The run went on after an end: its events say where each part begins and ends.
        let mut turns = Vec::new();
        self.each_row(&self.platform.storage().list_events(0, ALL)?, |listed, row| {
            let event = entry(listed, row)?;
            turns.push((event.seq, event.at, event.kind));
            Ok(())
        })?;
        let header_turns = self.with_run(|run| {
            let events = run.header.events.iter();
            events.map(|it| (it.seq, it.at, it.kind)).collect::<Vec<_>>()
        })?;
        turns.extend(header_turns);
        sort_by_key(&mut turns, |(seq, _, _)| *seq);
        let turns = turns.into_iter().map(|(seq, at, kind)| Turn { seq, at, kind });
        self.with_run(|run| part_among(&run.header, number, &turns.collect::<Vec<_>>()))
    }

    fn add_events(
        &self,
        events: &mut Vec<TracedEvent>,
        part: Part,
        after: u64,
    ) -> Result<Option<TraceCursor>> {
        if !self.with_run(Run::has_events)? {
            return Ok(None);
        }
        let listed = self
            .platform
            .storage()
            .list_events(after.max(part.after), ITEMS + 1)?;
        let (page, next) = first_page(listed, ITEMS);
        let last = page.last().map_or(after, |row| row.number);
        self.each_row(&page, |listed, row| {
            if listed.number <= part.up_to {
                events.push(traced_event(&entry(listed, row)?));
            }
            Ok(())
        })?;
        let more = next.is_some() && last < part.up_to;
        Ok(more.then_some(TraceCursor::Events(last)))
    }

    fn add_tokens(
        &self,
        tokens: &mut Vec<TracedToken>,
        part: Part,
        after: u64,
    ) -> Result<Option<TraceCursor>> {
        let listed = self.platform.storage().list_tokens(after, ITEMS + 1)?;
        let (page, next) = first_page(listed, ITEMS);
        let (mut bytes, mut last, mut is_full) = (0, after, false);
        self.each_row(&page, |listed, row| {
            if is_full {
                return Ok(());
            }
            let status = parse_status(&listed.status).map_err(Error)?;
            let mut token = traced_token(listed.number, status.name(), row)?;
            if !is_of(&token, part) {
                last = listed.number;
                return Ok(());
            }
            self.with_run(|run| complete(&mut token, run))?;
            bytes += json_bytes(&token);
            is_full = bytes > PAGE_BYTES && !tokens.is_empty();
            if !is_full {
                last = listed.number;
                tokens.push(token);
            }
            Ok(())
        })?;
        Ok((is_full || next.is_some()).then_some(TraceCursor::Tokens(last)))
    }
}

/// The part of a run that has ended once, and not gone on.
fn only_part(header: &Header) -> Option<Part> {
    let ended_at = header.ended_at.filter(|_| header.status.is_terminal())?;
    (header.ends == 1).then_some(Part {
        number: 1,
        after: 0,
        up_to: u64::MAX,
        began_at: header.started_at,
        ended_at,
        status: header.status,
        is_current: true,
    })
}

/// `events` are all events of the run and its header, in their order.
fn part_among(header: &Header, number: u64, events: &[Turn]) -> Option<Part> {
    let ends = events
        .iter()
        .filter_map(|event| Some((event, event.kind.end_status()?)));
    let ends: Vec<(&Turn, RunStatus)> = ends.collect();
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    let (end, status) = *ends.get(index)?;
    let before = index.checked_sub(1).and_then(|index| ends.get(index));
    let after = before.map_or(0, |(end, _)| end.seq);
    let began = events.iter().find(|event| event.seq > after)?;
    let is_current = header.status.is_terminal() && number == header.ends;
    Some(Part {
        number,
        after,
        up_to: end.seq,
        began_at: began.at,
        ended_at: end.at,
        status,
        is_current,
    })
}

/// Tokens of earlier builds have no events; they belong to the first part.
fn is_of(token: &TracedToken, part: Part) -> bool {
    let created = token.events.first().map_or(1, |event| event.seq);
    part.after < created && created <= part.up_to
}

fn traced_run(run: &Run, part: Part, is_first: bool) -> TracedRun {
    let header = &run.header;
    let error = header.error.as_ref().filter(|_| part.is_current);
    let is_of_run = |gate: &&GateState| gate.token_id.is_none() && is_within(gate, part);
    let gates = run.gates().filter(|gate| is_first && is_of_run(gate));
    TracedRun {
        run_id: header.id.clone(),
        started_at: header.started_at,
        workflow_id: header.workflow_id.clone(),
        version: header.version,
        attempt: header.attempt,
        end: part.number,
        status: part.status,
        began_at: part.began_at,
        ended_at: part.ended_at,
        error: error.map(|error| TracedError {
            code: error.code.clone(),
            class: error.class,
            step_ref: None,
        }),
        traceparent: header.traceparent,
        parent_run_id: header.parent.as_ref().map(|parent| parent.run_id.clone()),
        triggered_by: header.triggered_by.as_ref().map(|event| event.event.clone()),
        gates: gates.take(RUN_GATES).map(traced_gate).collect(),
    }
}

/// By the number of its first event: a run may end and go on within a millisecond. Gates of earlier builds have no events.
fn is_within(gate: &GateState, part: Part) -> bool {
    match gate.events.first() {
        Some(opened) => part.after < opened.seq && opened.seq <= part.up_to,
        None => (part.began_at..=part.ended_at).contains(&gate.opened_at),
    }
}

fn traced_gate(gate: &GateState) -> TracedGate {
    let kind = match gate.kind {
        GateKind::Node => "node",
        GateKind::WorkflowTimeout => "workflow_timeout",
        GateKind::Escalation => "escalation",
    };
    let status = match gate.status {
        GateStatus::Open => "open",
        GateStatus::Decided => "decided",
        GateStatus::TimedOut => "timed_out",
        GateStatus::Cancelled => "cancelled",
    };
    let decided_at = gate.decision.as_ref().map(|decision| decision.at);
    let timed_out = gate.events.iter().map(traced_row_event);
    let timed_out = timed_out.filter(|event| event.kind == RunEventKind::GateTimedOut.name());
    TracedGate {
        id: gate.id.clone(),
        kind: kind.into(),
        opened_at: gate.opened_at,
        closed_at: decided_at.or_else(|| timed_out.map(|event| event.at).next()),
        status: status.into(),
    }
}

/// Adds what is not on the token's row.
fn complete(token: &mut TracedToken, run: &Run) {
    let id = TokenId(token.id).to_string();
    let gates = run
        .gates()
        .filter(|gate| gate.token_id.as_deref() == Some(id.as_str()));
    token.gates = gates.map(traced_gate).collect();
    let snapshot = run.snapshot();
    let Some(node) = snapshot.workflow.node_index(&token.node_id) else {
        return;
    };
    token.kind = Some(kind_of(snapshot, node));
    let Some(task) = snapshot.task_of(node) else {
        return;
    };
    let steps = &task.task.steps;
    for step in &mut token.steps {
        let declared = steps.iter().find(|it| it.reference == step.report.reference);
        step.action = declared.and_then(action_of);
    }
    if let [only] = steps.as_slice() {
        token.only_step = action_of(only).map(|action| (only.reference.clone(), action));
    }
}

fn action_of(step: &Step) -> Option<String> {
    match &step.action {
        StepAction::Inline(action) => Some(action.kind.text().to_string()),
        StepAction::Reference { .. } => None,
    }
}

fn kind_of(snapshot: &Snapshot, node: usize) -> TracedKind {
    let declared = &snapshot.workflow.nodes[node];
    match declared.role {
        NodeRole::Declared => {}
        NodeRole::Compensation { .. } => return TracedKind::Compensation,
        NodeRole::EndHandler => return TracedKind::EndHandler,
    }
    match &declared.kind {
        NodeKind::Workflow { .. } => TracedKind::Workflow,
        NodeKind::Task { .. } | NodeKind::Action { .. } => match snapshot.call_of(node) {
            Some(_) => TracedKind::Workflow,
            None => TracedKind::Task,
        },
        NodeKind::Gate(_) => TracedKind::Gate,
        NodeKind::Wait(_) => TracedKind::Wait,
        NodeKind::PassThrough => TracedKind::PassThrough,
    }
}
