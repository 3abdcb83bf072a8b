//! Other durations than the recorded ones: what if this call, this called workflow or this decision had taken so long?
//!
//! Only a recorded answer has a duration. What a call that was cut would have answered is not known, however long it takes.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::text::shorten;
use crate::definition::reader::Reader;
use crate::protocol::task::{RetryReport, StepReport};
use crate::replay::outcome::AttemptEnd;
use crate::replay::recorded_calls::{RecordedAttempt, RecordedLimit};
use crate::replay::recorded_child::RecordedChild;
use crate::replay::recording::{RecordedDecision, Recording};
use crate::run::{GateKind, RunStatus};
use crate::simulate::TIMEOUT_GATE;

pub const DURATIONS_MAX: usize = 1_000;

/// What takes time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// The calls of a node.
    Node(String),
    /// People, at the gate of a node or that of the run's timeout.
    Gate(String),
}

/// All recorded answers of `timed` come after so long.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedDuration {
    timed: Timed,
    after_ms: u64,
}

impl ChangedDuration {
    pub fn read(reader: &Reader) -> Option<ChangedDuration> {
        let [node, gate] = ["node", "gate"].map(|field| reader.string(field).map(str::to_string));
        reader.require("after");
        let after_ms = reader.length("after");
        let timed = match (node, gate) {
            (Some(node), None) => Timed::Node(node),
            (None, Some(gate)) => Timed::Gate(gate),
            (Some(_), Some(_)) => {
                let message = "write \"node\", whose calls take so long, or \"gate\", not both";
                reader.report("gate", "both_forms", message);
                return None;
            }
            (None, None) => {
                if !reader.has("node") && !reader.has("gate") {
                    let message =
                        "write \"node\", whose calls take so long, or \"gate\", where a person takes so long";
                    reader.report("node", "missing_field", message);
                }
                return None;
            }
        };
        Some(ChangedDuration {
            timed,
            after_ms: after_ms?,
        })
    }
}

/// What the recording has of one.
struct Recorded {
    answers: u64,
    shortest_ms: u64,
    longest_ms: u64,
}

/// The recorded durations, in the order of the path.
pub struct RecordedDurations {
    found: Vec<(Timed, Recorded)>,
    by_timed: BTreeMap<Timed, usize>,
}

impl RecordedDurations {
    pub fn of(recording: &Recording) -> RecordedDurations {
        let mut durations = RecordedDurations {
            found: Vec::new(),
            by_timed: BTreeMap::new(),
        };
        for attempt in recording.attempts.iter().filter(|attempt| attempt.has_answer()) {
            durations.add(attempt.timed(), attempt.lasted_ms);
        }
        for child in recording.children.iter().filter(|child| child.has_answer()) {
            durations.add(child.timed(), child.lasted_ms);
        }
        for decision in &recording.decisions {
            durations.add(decision.timed(), decision.after_ms);
        }
        durations
    }

    fn add(&mut self, timed: Timed, lasted_ms: u64) {
        let index = *self.by_timed.entry(timed.clone()).or_insert(self.found.len());
        match self.found.get_mut(index) {
            Some((_, recorded)) => {
                recorded.answers += 1;
                recorded.shortest_ms = recorded.shortest_ms.min(lasted_ms);
                recorded.longest_ms = recorded.longest_ms.max(lasted_ms);
            }
            None => {
                let recorded = Recorded {
                    answers: 1,
                    shortest_ms: lasted_ms,
                    longest_ms: lasted_ms,
                };
                self.found.push((timed, recorded));
            }
        }
    }

    pub fn view(&self) -> Value {
        let view = self.found.iter().map(|(timed, recorded)| {
            let (field, name) = timed.parts();
            json!({
                field: name,
                "answers": recorded.answers,
                "shortest_ms": recorded.shortest_ms,
                "longest_ms": recorded.longest_ms,
            })
        });
        view.collect()
    }

    /// Refuses a change of what is not recorded, and a second one of the same.
    pub fn check(&self, changes: &[ChangedDuration]) -> Result<(), Error> {
        let mut seen: BTreeMap<&Timed, usize> = BTreeMap::new();
        for (number, change) in changes.iter().enumerate() {
            let (field, name) = change.timed.parts();
            let message = match seen.insert(&change.timed, number) {
                Some(first) => format!(
                    "\"{}\" is already the {field} of /durations/{first}; write one duration for all its answers",
                    shorten(name)
                ),
                None if self.by_timed.contains_key(&change.timed) => continue,
                None => self.not_recorded(&change.timed),
            };
            return Err(Error::invalid_request(
                &format!("/durations/{number}/{field}"),
                message,
            ));
        }
        Ok(())
    }

    fn not_recorded(&self, timed: &Timed) -> String {
        let (field, name) = timed.parts();
        let known = self.by_timed.keys().map(Timed::parts);
        let names = known.filter(|(known, _)| *known == field).map(|(_, name)| name);
        let names: Vec<&str> = names.take(NAMED_MAX).collect();
        let what = match timed {
            Timed::Node(_) => "no answer is recorded of node",
            Timed::Gate(_) => "no decision is recorded at gate",
        };
        let known = match names.is_empty() {
            true => "the recording has none".to_string(),
            false => format!("the recording has: {}", names.join(", ")),
        };
        format!(
            "{what} \"{}\", so that it has no duration to change; {known}",
            shorten(name)
        )
    }
}

/// Names in a message.
const NAMED_MAX: usize = 20;

impl Timed {
    /// The field that names it, and its name.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Timed::Node(name) => ("node", name),
            Timed::Gate(name) => ("gate", name),
        }
    }
}

/// Puts the durations into the recording.
pub fn change_durations(recording: &mut Recording, changes: &[ChangedDuration]) {
    let by_timed: BTreeMap<&Timed, u64> = changes
        .iter()
        .map(|change| (&change.timed, change.after_ms))
        .collect();
    if by_timed.is_empty() {
        return;
    }
    for attempt in recording
        .attempts
        .iter_mut()
        .filter(|attempt| attempt.has_answer())
    {
        if let Some(after_ms) = by_timed.get(&attempt.timed()) {
            attempt.last(*after_ms);
        }
    }
    for child in recording.children.iter_mut().filter(|child| child.has_answer()) {
        if let Some(after_ms) = by_timed.get(&child.timed()) {
            child.last(*after_ms);
        }
    }
    for decision in &mut recording.decisions {
        if let Some(after_ms) = by_timed.get(&decision.timed()) {
            decision.after_ms = *after_ms;
        }
    }
}

/// The work of an end has the names that it has in a simulation; all end handlers have one.
fn node_of(key: &str) -> Timed {
    Timed::Node(match key.strip_suffix('~') {
        Some(ON_END) => ON_END.to_string(),
        Some(node_id) => format!("{node_id}~compensate"),
        None => key.to_string(),
    })
}

const ON_END: &str = "on_end";

impl RecordedAttempt {
    fn timed(&self) -> Timed {
        node_of(&self.place.node_id)
    }

    fn has_answer(&self) -> bool {
        match self.end {
            AttemptEnd::Completed { .. } | AttemptEnd::Failed { .. } => true,
            AttemptEnd::TimedOut { .. } | AttemptEnd::Lost | AttemptEnd::Open { .. } => false,
        }
    }

    fn last(&mut self, after_ms: u64) {
        let before_ms = std::mem::replace(&mut self.lasted_ms, after_ms);
        self.is_longer = after_ms > before_ms;
        self.suspended_after = self.suspended_after.map(|accepted| accepted.min(after_ms));
        // Whether it was met does not say any more whether it is met.
        self.limit = RecordedLimit::Known(None);
        match &mut self.end {
            AttemptEnd::Completed { steps, .. }
            | AttemptEnd::Failed { steps, .. }
            | AttemptEnd::TimedOut { steps, .. } => *steps = stretched(steps, before_ms, after_ms),
            AttemptEnd::Lost | AttemptEnd::Open { .. } => {}
        }
    }
}

impl RecordedChild {
    fn timed(&self) -> Timed {
        node_of(&self.place.node_id)
    }

    fn has_answer(&self) -> bool {
        self.end.as_ref().is_some_and(|end| match end.status {
            RunStatus::Completed | RunStatus::Failed => true,
            RunStatus::TimedOut
            | RunStatus::Cancelled
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Compensating => false,
        })
    }

    fn last(&mut self, after_ms: u64) {
        let before_ms = std::mem::replace(&mut self.lasted_ms, after_ms);
        self.limit = RecordedLimit::Known(None);
        for (moment, ..) in &mut self.pauses {
            *moment = part_of(*moment, before_ms, after_ms);
        }
    }
}

impl RecordedDecision {
    fn timed(&self) -> Timed {
        let node = self.node_id.as_deref().unwrap_or_default();
        Timed::Gate(match self.kind {
            GateKind::WorkflowTimeout => TIMEOUT_GATE.to_string(),
            GateKind::Node | GateKind::Escalation => node.to_string(),
        })
    }
}

/// Each step takes the same part of the whole as before.
fn stretched(steps: &[StepReport], before_ms: u64, after_ms: u64) -> Rc<[StepReport]> {
    let part = |millis: u64| part_of(millis, before_ms, after_ms);
    let stretch = |step: &StepReport| {
        let retries = step.retries.iter().map(|retry| RetryReport {
            after_ms: retry.after_ms.map(part),
            delay_ms: part(retry.delay_ms),
            ..retry.clone()
        });
        StepReport {
            duration_ms: part(step.duration_ms),
            retries: retries.collect(),
            ..step.clone()
        }
    };
    let mut steps: Vec<StepReport> = steps.iter().map(stretch).collect();
    // Of nothing no part can be taken.
    if let (0, Some(last)) = (before_ms, steps.last_mut()) {
        last.duration_ms = after_ms;
    }
    steps.into()
}

fn part_of(millis: u64, before_ms: u64, after_ms: u64) -> u64 {
    if before_ms == 0 {
        return millis.min(after_ms);
    }
    let part = u128::from(millis.min(before_ms)) * u128::from(after_ms) / u128::from(before_ms);
    // At most `after_ms`.
    u64::try_from(part).unwrap_or(after_ms)
}
