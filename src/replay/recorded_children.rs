//! Workflows that a replay calls. They last and end as they did.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::base::failure::FailureClass;
use crate::base::time::Millis;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::start::{ParentLink, StartRun};
use crate::replay::comparison::TOLERANCE_MS;
use crate::replay::history::HoldCause;
use crate::replay::outcome::ChildEnd;
use crate::replay::recorded_calls::CallPlace;
use crate::replay::recorded_child::RecordedChild;
use crate::replay::recorded_world::{LAST, RecordedWorld, UnknownCall, place_of};
use crate::replay::unplayed::Unplayed;
use crate::run::{ChildReport, ChildStatusUpdate, RunStatus, TokenId, workflow_timed_out};
use crate::simulate::Store;

pub struct RecordedChildren {
    recorded: RefCell<Unplayed<RecordedChild>>,
    /// Those that were started, by id.
    called: RefCell<BTreeMap<String, Called>>,
}

struct Called {
    link: ParentLink,
    place: CallPlace,
    ends_at: Option<Millis>,
    is_cancelled: bool,
    /// Moments at which requests stopped the clocks of the recorded run.
    held_at: Vec<Millis>,
}

impl RecordedChildren {
    pub fn new(recorded: Vec<RecordedChild>) -> RecordedChildren {
        RecordedChildren {
            recorded: RefCell::new(Unplayed::new(recorded, |child| &child.place)),
            called: RefCell::default(),
        }
    }
}

/// When the limit of the node that calls passes. It stands still while the called workflow waits for a person.
fn passes_after(child: &RecordedChild, limit_ms: u64) -> Option<u64> {
    let (mut ran_ms, mut runs_from) = (0_u64, Some(0));
    for (moment, is_pause, _) in &child.pauses {
        match (is_pause, runs_from) {
            (true, Some(from)) => {
                let ran = moment.saturating_sub(from);
                if ran_ms.saturating_add(ran) >= limit_ms {
                    break;
                }
                ran_ms += ran;
                runs_from = None;
            }
            (false, None) => runs_from = Some(*moment),
            (true, None) | (false, Some(_)) => {}
        }
    }
    runs_from.map(|from| from.saturating_add(limit_ms - ran_ms))
}

/// More time might have helped. The limit of the node that calls takes the place of the child's own.
fn lacked_time(end: &ChildEnd) -> bool {
    match end.status {
        RunStatus::TimedOut => true,
        RunStatus::Failed => {
            let class = end.error.as_ref().map(|error| error.class);
            class == Some(FailureClass::Timeout)
        }
        RunStatus::Completed
        | RunStatus::Cancelled
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Compensating => false,
    }
}

impl RecordedWorld {
    pub(super) fn start_child(&self, parent: &Store, start: &StartRun) -> RunResponse {
        let created = RunResponse::Created("{}".into());
        let Some(link) = &start.parent else {
            return created;
        };
        let Some(token) = TokenId::parse(&link.token_id) else {
            return created;
        };
        // A start may be delivered twice.
        if self.children.called.borrow().contains_key(&start.run_id) {
            return created;
        }
        let attempt = (token, link.epoch);
        let (place, limit_ms) = place_of(parent, attempt);
        let now = self.environment.now.get();
        let recorded = self.children.recorded.borrow_mut().take(&place);
        let Some(recorded) = recorded else {
            let why = "the recorded run did not call this workflow".to_string();
            self.unknown
                .borrow_mut()
                .push(UnknownCall { at: now, place, why });
            return created;
        };
        if recorded.is_refused {
            return RunResponse::Conflict("{}".into());
        }
        if self.called.others.contains(&place.node_id) {
            let why = "it calls another workflow than in the recording".to_string();
            self.unknown
                .borrow_mut()
                .push(UnknownCall { at: now, place, why });
            return created;
        }
        let shortened_to = recorded.limit.shortened_to(limit_ms);
        let held_ms = recorded.holds.first().map_or(u64::MAX, |hold| hold.after_ms);
        let passes_after = shortened_to.and_then(|limit| passes_after(&recorded, limit));
        let missed = passes_after.filter(|after| *after <= recorded.lasted_ms);
        let cut_ms = missed.filter(|limit| *limit <= held_ms);
        // Its limit passes when the clocks have gone on.
        let is_cut_later = missed.is_some() && cut_ms.is_none();
        let is_of_limit =
            recorded.end.as_ref().is_some_and(lacked_time) && !recorded.limit.is_same_as(limit_ms);
        let was_held = recorded
            .holds
            .iter()
            .any(|hold| hold.cause == HoldCause::Decision);
        let is_unknown = !self.is_unchanged && (is_of_limit || was_held || is_cut_later);
        let ends_at = recorded
            .end
            .as_ref()
            .map(|_| now.saturating_add(cut_ms.unwrap_or(recorded.lasted_ms)));
        let held_at = recorded
            .holds
            .iter()
            .map(|hold| now.saturating_add(hold.after_ms));
        let called = Called {
            link: link.clone(),
            place: place.clone(),
            ends_at,
            is_cancelled: false,
            held_at: held_at.collect(),
        };
        self.children
            .called
            .borrow_mut()
            .insert(start.run_id.clone(), called);
        for (number, (after_ms, paused, rank)) in recorded.pauses.iter().enumerate() {
            let request = RunRequest::ChildStatusUpdate(ChildStatusUpdate {
                token_id: link.token_id.clone(),
                epoch: link.epoch,
                run_id: start.run_id.clone(),
                number: number as u64 + 1,
                paused: *paused,
            });
            self.send(&link.run_id, *after_ms, *rank, request);
        }
        match (cut_ms, &recorded.end) {
            // It ends after them.
            (Some(cut_ms), _) if self.called.with_ending.contains(&place.node_id) => {
                let call = UnknownCall {
                    at: now.saturating_add(cut_ms),
                    place,
                    why: "the called workflow would be cut, and have compensations or end handlers to run"
                        .into(),
                };
                self.unanswered(cut_ms, attempt, call);
            }
            (Some(cut_ms), _) => {
                let end = ChildEnd {
                    status: RunStatus::TimedOut,
                    output: None,
                    error: limit_ms.map(workflow_timed_out).map(Rc::new),
                };
                self.child_ends(&start.run_id, link, cut_ms, LAST - 1, &end);
            }
            (None, Some(end)) if !is_unknown => {
                self.child_ends(&start.run_id, link, recorded.lasted_ms, recorded.rank, end)
            }
            (None, Some(_) | None) => {
                let call = UnknownCall {
                    at: now.saturating_add(recorded.lasted_ms),
                    place,
                    why: "the called workflow had not come to an end of its own".into(),
                };
                self.unanswered(recorded.lasted_ms, attempt, call);
            }
        }
        created
    }

    fn child_ends(&self, run_id: &str, link: &ParentLink, after_ms: u64, rank: u64, end: &ChildEnd) {
        let report = ChildReport {
            token_id: link.token_id.clone(),
            epoch: link.epoch,
            run_id: run_id.to_string(),
            status: end.status,
            output: end.output.as_deref().cloned(),
            error: end.error.as_deref().cloned(),
        };
        self.send(&link.run_id, after_ms, rank, RunRequest::ChildEnded(report));
    }

    /// The clocks of the run stop, and those of the workflow that it called. What that has under way goes on, so that it may end
    /// before its clocks go on, or later than in the recording.
    pub(super) fn hold_child(&self, run_id: &str) {
        let called = self.children.called.borrow();
        let Some(child) = called.get(run_id).filter(|child| !child.is_cancelled) else {
            return;
        };
        let now = self.environment.now.get();
        let has_ended = child.ends_at.is_some_and(|at| at <= now);
        let is_recorded = child.held_at.iter().any(|at| at.abs_diff(now) <= TOLERANCE_MS);
        if self.is_unchanged || has_ended || is_recorded {
            return;
        }
        self.unknown.borrow_mut().push(UnknownCall {
            at: now,
            place: child.place.clone(),
            why: "the called workflow stops with the run, as it did not in the recording".into(),
        });
    }

    /// A called workflow that would have gone on is cancelled. One whose recorded end is the cancellation ends when it did.
    pub(super) fn cancel_child(&self, run_id: &str) {
        let mut called = self.children.called.borrow_mut();
        let Some(child) = called.get_mut(run_id).filter(|child| !child.is_cancelled) else {
            return;
        };
        child.is_cancelled = true;
        if child.ends_at.is_none() {
            let end = ChildEnd {
                status: RunStatus::Cancelled,
                output: None,
                error: None,
            };
            let link = child.link.clone();
            self.child_ends(run_id, &link, 0, LAST - 1, &end);
        }
    }
}
