//! How a run would have gone on if its limit had not passed. What had happened until then is as it was. From then on each token
//! begins where those before it end, and takes as long as it did: calls by the wall clock, because they go on while the run waits for
//! a person, and everything else without that time.
//!
//! What would have gone another way, or may have, is an error with the reason: no limit is named then.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::time::{Limit, Millis};
use crate::definition::fan::Strategy;
use crate::definition::node::NodeKind;
use crate::definition::wait::Wait;
use crate::definition::workflow::RunClock;
use crate::run::{FinalAction, GateKind, InstanceId, RunEventKind, TokenId};
use crate::why::Asked;
use crate::why::attempts::{self, Attempt, AttemptEnd};
use crate::why::clock::{Interval, union};
use crate::why::facts::{Noted, TokenTimes};

/// A token begins in the decision that ended the one before it. Wakes of a real clock are a little late.
const AT_ONCE_MS: u64 = 20;

pub(super) struct Needed<'a> {
    /// Of the run's clock.
    pub millis: u64,
    pub last_node: &'a str,
    pub is_retried: bool,
}

pub(super) struct Course<'a> {
    asked: Asked<'a>,
    /// When the limit passed for the first time.
    passed_at: Millis,
    /// In which the run waited for a person to extend it.
    holds: Vec<Interval>,
    retried_at: Option<Millis>,
    /// Tokens that a retry put others in the place of.
    replaced: BTreeSet<TokenId>,
    /// Branches that arrived at joins.
    arrivals: BTreeMap<InstanceId, Vec<&'a TokenTimes>>,
    /// Tokens about whose failures a person decided.
    escalated: BTreeSet<String>,
    times: BTreeMap<TokenId, Span>,
}

/// When a token would have begun and ended.
#[derive(Clone, Copy)]
struct Span {
    from: Millis,
    to: Millis,
    stands_at_gate: bool,
}

type Known<T> = Result<T, &'static str>;

impl<'a> Course<'a> {
    /// How long the limit must be, so that the part of the run that began at this moment completes.
    pub fn without_limit(asked: Asked<'a>, began_at: Millis) -> Known<Needed<'a>> {
        let flow = first_timeout(asked, began_at)?;
        let mut course = Course {
            holds: holds(asked, flow.due_at)?,
            retried_at: retried_at(asked, &flow)?,
            passed_at: flow.due_at,
            asked,
            replaced: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            escalated: escalated(asked),
            times: BTreeMap::new(),
        };
        course.check_events()?;
        course.index_tokens();
        let tokens = asked.facts.tokens.values();
        for token in tokens.filter(|token| !token.node_id.contains('~')) {
            let span = course.span_of(token)?;
            course.times.insert(token.id, span);
        }
        let last = course.times.iter().max_by_key(|(_, span)| span.to);
        let (last, span) = last.ok_or("the run has no tokens")?;
        let clock_after_ms = match asked.run.snapshot().workflow.clock {
            RunClock::Runs => span.to.saturating_sub(course.passed_at),
            RunClock::StopsAtGates => course.busy_ms(),
        };
        Ok(Needed {
            millis: flow.limit_ms.saturating_add(clock_after_ms),
            last_node: &asked.facts.tokens[last].node_id,
            is_retried: course.retried_at.is_some(),
        })
    }

    fn index_tokens(&mut self) {
        for token in self.asked.facts.tokens.values() {
            if let Some(before) = self.replaced_by(token) {
                self.replaced.insert(before.id);
            }
            if let (Some((instance, _)), Some(_)) = (token.branch, &token.joins_at) {
                self.arrivals.entry(instance).or_default().push(token);
            }
        }
    }

    /// How long after the limit something was at work.
    fn busy_ms(&self) -> u64 {
        let at_work = self.times.values().filter(|span| !span.stands_at_gate);
        let after = at_work.map(|span| (span.from.max(self.passed_at), span.to));
        union(after.collect()).iter().map(|(from, to)| to - from).sum()
    }

    fn check_events(&self) -> Known<()> {
        let facts = self.asked.facts;
        if facts.tokens.values().any(|token| token.lacked_time) {
            return Err("a step failed, and with more time it might have been tried again");
        }
        let is_later = |event: &&Noted| event.at >= self.passed_at;
        if facts.of_kind(RunEventKind::SyncTimedOut).any(|it| is_later(&it)) {
            return Err("the limit of a join passed after it");
        }
        Ok(())
    }

    fn span_of(&self, token: &'a TokenTimes) -> Known<Span> {
        let ended_at = token.ended_at.ok_or("a token has no end")?;
        let kind = self.kind_of(token);
        let as_recorded = Span {
            from: token.created_at,
            to: ended_at,
            stands_at_gate: matches!(kind, Some(NodeKind::Gate(_))),
        };
        if ended_at <= self.passed_at && !self.is_cut(token) {
            return Ok(as_recorded);
        }
        let from = match token.created_at <= self.passed_at {
            true => token.created_at,
            false => self.begins_at(token)?,
        };
        if let Some(before) = self.replaced_by(token)
            && before.joins_at.is_some()
        {
            return Ok(self.times[&before.id]);
        }
        if self.is_cut(token) {
            // Its successor has the time.
            return Ok(Span {
                to: from,
                from,
                ..as_recorded
            });
        }
        let length_ms = match kind {
            None => return Err("a node is not known"),
            Some(NodeKind::Gate(_)) => self.length_at_gate(token)?,
            Some(NodeKind::Wait(wait)) => match &**wait {
                Wait::Sleep(_) => self.length_of_sleep(token),
                Wait::Until(_) => return Err("a wait ended later, at a moment of the calendar"),
                Wait::Signal { .. } => return Err("a wait for a signal ended later"),
            },
            Some(NodeKind::Workflow { .. }) => self.length_of_child(token)?,
            Some(NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::PassThrough) => {
                self.length_of_work(token)?
            }
        };
        let to = from.saturating_add(length_ms);
        let cut_at = self.replaced_by(token).and_then(|before| before.ended_at);
        if cut_at.is_some_and(|cut_at| to.saturating_add(AT_ONCE_MS) < cut_at) {
            return Err("the repeated work took less time than it had had before");
        }
        Ok(Span {
            from,
            to,
            ..as_recorded
        })
    }

    fn kind_of(&self, token: &TokenTimes) -> Option<&'a NodeKind> {
        let workflow = &self.asked.run.snapshot().workflow;
        let node = workflow.node_index(&token.node_id)?;
        Some(&workflow.nodes[node].kind)
    }

    /// The token that this one was put in the place of, when the run was retried.
    fn replaced_by(&self, token: &TokenTimes) -> Option<&'a TokenTimes> {
        let before = self.asked.facts.tokens.get(&token.parent?)?;
        let is_successor = self.retried_at == Some(token.created_at) && before.node_id == token.node_id;
        is_successor.then_some(before)
    }

    fn is_cut(&self, token: &TokenTimes) -> bool {
        self.replaced.contains(&token.id) && token.joins_at.is_none()
    }

    fn begins_at(&self, token: &TokenTimes) -> Known<Millis> {
        let unknown = "a token began whose beginning does not follow from others";
        let parent = self.asked.facts.tokens.get(&token.parent.ok_or(unknown)?);
        let parent = parent.ok_or(unknown)?;
        let span = |token: &TokenTimes| self.times.get(&token.id).copied().ok_or(unknown);
        if self.replaced_by(token).is_some() {
            let first = attempts::all(parent).into_iter().next();
            return Ok(first.map_or(span(parent)?.from, |first| first.dispatched_at));
        }
        let arrivals: Vec<&TokenTimes> = match &parent.joins_at {
            Some(node_id) if *node_id == token.node_id => self.arrivals_of(parent),
            Some(_) | None => vec![parent],
        };
        let recorded = arrivals.iter().filter_map(|arrival| arrival.ended_at).max();
        let waited_ms = token.created_at.saturating_sub(recorded.ok_or(unknown)?);
        let waited_ms = waited_ms.saturating_sub(self.held_ms(recorded.ok_or(unknown)?, token.created_at));
        if waited_ms > AT_ONCE_MS {
            return Err("a token began later than those before it ended");
        }
        let ends: Known<Vec<Millis>> = arrivals.iter().map(|arrival| Ok(span(arrival)?.to)).collect();
        let ends = ends?;
        if parent.joins_at.is_some() {
            self.check_join(parent, &ends)?;
        }
        ends.into_iter().max().ok_or(unknown)
    }

    /// All branches that arrived at the join of this one.
    fn arrivals_of(&self, arrival: &TokenTimes) -> Vec<&'a TokenTimes> {
        let of_instance = arrival
            .branch
            .and_then(|(instance, _)| self.arrivals.get(&instance));
        let beside = of_instance.into_iter().flatten().copied();
        beside
            .filter(|token| token.joins_at == arrival.joins_at)
            .collect()
    }

    /// A join waits for all of its branches, and long enough.
    fn check_join(&self, arrival: &TokenTimes, ends: &[Millis]) -> Known<()> {
        let instance = arrival.branch.map(|(instance, _)| instance);
        let joins = self.asked.facts.joins.iter();
        let mut of_instance = joins.filter(|join| {
            Some(join.instance) == instance && arrival.joins_at.as_deref() == Some(&*join.node_id)
        });
        let join = of_instance.next().ok_or("a join is not known")?;
        let transitions = &self.asked.run.snapshot().workflow.transitions;
        let transition = transitions
            .iter()
            .find(|transition| transition.id == join.transition_id);
        let rule = transition.and_then(|transition| transition.synchronization.as_ref());
        let Some(rule) = rule.filter(|rule| rule.strategy == Strategy::All) else {
            return Err("a join went on without all of its branches, and others may come first");
        };
        let limit_ms = match rule.timeout {
            Limit::After(millis) => Some(millis),
            Limit::Never => None,
            // A retry begins its wait anew.
            Limit::Unset if self.retried_at.is_some() => return Err("a join waited again after the retry"),
            Limit::Unset => join.timeout_at.map(|at| {
                let held_ms = self.asked.facts.paused_ms(join.started_at, at);
                at.saturating_sub(join.started_at).saturating_sub(held_ms)
            }),
        };
        let (first, last) = (ends.iter().min(), ends.iter().max());
        let spread_ms = last.unwrap_or(&0).saturating_sub(*first.unwrap_or(&0));
        match limit_ms.is_some_and(|limit_ms| limit_ms <= spread_ms.saturating_add(AT_ONCE_MS)) {
            true => Err("the branches of a join would have come too late for its limit"),
            false => Ok(()),
        }
    }

    fn held_ms(&self, from: Millis, to: Millis) -> u64 {
        let parts = self.holds.iter();
        parts
            .map(|(start, end)| (*end).min(to).saturating_sub((*start).max(from)))
            .sum()
    }

    fn is_held(&self, from: Millis, to: Millis) -> bool {
        self.holds.iter().any(|(start, end)| *start < to && from < *end)
    }

    fn length_at_gate(&self, token: &TokenTimes) -> Known<u64> {
        let to = token.ended_at.unwrap_or(token.created_at);
        if self.replaced_by(token).is_some() {
            return Err("its gate was opened again");
        }
        match self.is_held(token.created_at, to) {
            true => Err("a gate was open while the run waited at the gate of its limit"),
            false => Ok(to.saturating_sub(token.created_at)),
        }
    }

    /// A retry sleeps the rest.
    fn length_of_sleep(&self, token: &TokenTimes) -> u64 {
        let own_ms = |token: &TokenTimes| {
            let to = token.ended_at.unwrap_or(token.created_at);
            to.saturating_sub(token.created_at)
                .saturating_sub(self.held_ms(token.created_at, to))
        };
        let before_ms = self.replaced_by(token).map_or(0, own_ms);
        before_ms.saturating_add(own_ms(token))
    }

    fn length_of_child(&self, token: &TokenTimes) -> Known<u64> {
        let to = token.ended_at.unwrap_or(token.created_at);
        let stopped = |event: &Noted| event.kind == RunEventKind::SubworkflowPaused;
        if self.is_held(token.created_at, to) || token.events.iter().any(stopped) {
            return Err("a called workflow waited with the run, or for a person");
        }
        self.length_of_work(token)
    }

    fn length_of_work(&self, token: &TokenTimes) -> Known<u64> {
        if let Some(before) = self.replaced_by(token)
            && attempts::all(before).len() > 1
        {
            return Err("work was repeated that had been retried");
        }
        if self.escalated.contains(&token.id.to_string()) {
            return Err("a person decided about a failure");
        }
        let to = token.ended_at.unwrap_or(token.created_at);
        let running_ms =
            |from: Millis, to: Millis| to.saturating_sub(from).saturating_sub(self.held_ms(from, to));
        let (mut length_ms, mut waits_from) = (0_u64, token.created_at);
        for attempt in attempts::all(token) {
            let end = attempt.ended_at.unwrap_or(to).min(to);
            self.check_attempt(token, &attempt, end)?;
            length_ms += running_ms(waits_from, attempt.dispatched_at);
            length_ms += end.saturating_sub(attempt.dispatched_at);
            waits_from = end;
        }
        Ok(length_ms + running_ms(waits_from, to))
    }

    fn check_attempt(&self, token: &TokenTimes, attempt: &Attempt, end: Millis) -> Known<()> {
        if end <= self.passed_at {
            return Ok(());
        }
        let is_held = self.is_held(attempt.dispatched_at, end);
        match attempt.end {
            AttemptEnd::Completed => {}
            AttemptEnd::Failed if attempt.child_run_id.is_none() => {}
            AttemptEnd::TimedOut if attempt.child_run_id.is_none() && !is_held => {}
            AttemptEnd::Failed | AttemptEnd::TimedOut => {
                return Err("work ended at a limit that might have been another one");
            }
            AttemptEnd::Silent | AttemptEnd::Repeated | AttemptEnd::CutOff | AttemptEnd::Running => {
                return Err("work was cut off, or repeated while the run waited");
            }
        }
        let snapshot = self.asked.run.snapshot();
        let node = snapshot
            .workflow
            .node_index(&token.node_id)
            .ok_or("a node is not known")?;
        let limit_ms = snapshot.execution_limit(node).limit.millis();
        let took_ms = end.saturating_sub(attempt.dispatched_at);
        match is_held && limit_ms.is_some_and(|limit_ms| limit_ms <= took_ms) {
            true => Err("work in flight took longer than its own limit, which stood still with the run"),
            false => Ok(()),
        }
    }
}

fn escalated(asked: Asked) -> BTreeSet<String> {
    let gates = asked.run.gates().filter(|gate| gate.kind == GateKind::Escalation);
    gates.filter_map(|gate| gate.token_id.clone()).collect()
}

/// The first time that the limit of the run passed.
struct FirstTimeout {
    due_at: Millis,
    limit_ms: u64,
    action: FinalAction,
    /// It passed again.
    is_repeated: bool,
}

fn first_timeout(asked: Asked, began_at: Millis) -> Known<FirstTimeout> {
    let mut flows = asked.facts.flow_timeouts(began_at);
    let first = flows.next().ok_or("the timeout is not in the log")?;
    let is_repeated = flows.next().is_some();
    if asked.facts.flow_timeouts(0).any(|other| other.at < began_at) {
        return Err("the limit had passed before, and the run was retried");
    }
    let mut extensions = asked.facts.of_kind(RunEventKind::RunExtended);
    if extensions.any(|event| event.at >= began_at && event.seq < first.seq) {
        return Err("the run had been extended before, which counts besides its limit");
    }
    let times = first.flow.as_ref().ok_or("the timeout has no record")?;
    Ok(FirstTimeout {
        due_at: times.due_at,
        limit_ms: times.limit_ms,
        action: times.action,
        is_repeated,
    })
}

/// When the run stood still after its limit. Each time it waited for a person to extend it, and for nothing else.
fn holds(asked: Asked, passed_at: Millis) -> Known<Vec<Interval>> {
    let pauses: Vec<Interval> = asked.facts.pauses().filter(|(_, to)| *to > passed_at).collect();
    let is_at_limit = |(from, to): &Interval| {
        let mut flows = asked.facts.flow_timeouts(0);
        let is_begun = flows.any(|event| event.flow.as_ref().is_some_and(|flow| flow.due_at == *from));
        let mut gates = asked.run.gates();
        let is_decided = gates.any(|gate| {
            let decided_at = gate.decision.as_ref().map(|decision| decision.at);
            gate.kind == GateKind::WorkflowTimeout && decided_at == Some(*to)
        });
        is_begun && is_decided
    };
    let is_other = |event: &Noted| event.at >= passed_at && event.flow.is_none();
    let has_others = asked.facts.of_kind(RunEventKind::RunPaused).any(is_other);
    match pauses.iter().all(is_at_limit) && !has_others {
        true => Ok(pauses),
        false => Err("the run was paused after it, which would have come at another moment of its work"),
    }
}

fn retried_at(asked: Asked, first: &FirstTimeout) -> Known<Option<Millis>> {
    let retries: Vec<&Noted> = asked
        .facts
        .of_kind(RunEventKind::RunRetried)
        .filter(|event| event.at >= first.due_at)
        .collect();
    match (retries.as_slice(), first.action) {
        ([], _) => Ok(None),
        ([retry], FinalAction::Cancel | FinalAction::Fail)
            if !first.is_repeated && retry.more().mode.as_deref() == Some("retry_step") =>
        {
            Ok(Some(retry.at))
        }
        (_, _) => Err("the run ended and went on in a way that it would not have gone"),
    }
}
