//! Owns checking an instance against compiled nodes. A `Check` carries the
//! step budget, the recursion depth and the place in the instance; once the
//! budget or the depth runs out it only unwinds, and the answer is that one
//! fact, because half of a check can be wrong in either direction under `not`.

use std::fmt::{self, Arguments};

use serde_json::Value;

use super::messages::Found;
use super::values::{nests_deeper_than, text_weight};
use super::{Node, NodeId, Pattern, Problem, limits, references};
use crate::base::compute::Meter;

/// Why an instance does not fit, or could not be checked to the end.
pub(super) enum Misfit {
    Problems(Vec<Problem>),
    TooExpensive,
}

pub(super) fn check(nodes: &[Node], instance: &Value, meter: Option<&Meter>) -> Result<(), Misfit> {
    let left = meter.map_or(u64::MAX, Meter::remaining);
    let steps = limits::STEPS.min(usize::try_from(left).unwrap_or(usize::MAX));
    let mut check = Check {
        nodes,
        path: String::new(),
        problems: Vec::new(),
        room: limits::VALIDATE_PROBLEMS,
        quiet: false,
        steps,
        depth: 0,
        stopped: None,
    };
    if nests_deeper_than(instance, limits::NESTING) {
        check.stopped = Some(Stop::Reason("instance nests too deeply to check"));
    } else {
        check.node(0, instance);
    }
    if let Some(meter) = meter {
        meter.count((steps - check.steps) as u64);
        if matches!(check.stopped, Some(Stop::OutOfSteps)) {
            meter.exhaust();
        }
    }
    match check.stopped {
        Some(Stop::OutOfSteps) => Err(Misfit::TooExpensive),
        Some(Stop::Reason(reason)) => Err(Misfit::Problems(vec![Problem {
            pointer: String::new(),
            message: reason.to_owned(),
        }])),
        None if check.problems.is_empty() => Ok(()),
        None => Err(Misfit::Problems(check.problems)),
    }
}

/// Why a check was given up.
#[derive(Clone, Copy)]
enum Stop {
    OutOfSteps,
    Reason(&'static str),
}

pub(super) struct Check<'s> {
    pub(super) nodes: &'s [Node],
    /// JSON pointer to the value being checked.
    pub(super) path: String,
    problems: Vec<Problem>,
    /// Length of `problems` at which there is nothing more to learn.
    room: usize,
    /// Whether only the verdict is wanted, which saves writing messages.
    quiet: bool,
    steps: usize,
    depth: usize,
    stopped: Option<Stop>,
}

impl<'s> Check<'s> {
    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() || self.problems.len() >= self.room
    }

    /// Pays for work about to be done; false when it must not be done.
    pub(super) fn pay(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => self.stopped = Some(Stop::OutOfSteps),
        }
        !self.is_done()
    }

    pub(super) fn report(&mut self, message: Arguments<'_>) {
        if self.quiet {
            self.problems.push(Problem {
                pointer: String::new(),
                message: String::new(),
            });
        } else if self.pay(limits::MESSAGE_STEPS + text_weight(&self.path)) {
            self.problems.push(Problem {
                pointer: self.path.clone(),
                message: fmt::format(message),
            });
        }
    }

    pub(super) fn node(&mut self, node: NodeId, instance: &Value) {
        if !self.pay(1) {
            return;
        }
        let nodes = self.nodes;
        match &nodes[node] {
            Node::Always => {}
            Node::Never => self.report(format_args!("expected no value here, found {}", Found(instance))),
            Node::Rules { types, .. } if !types.allows(instance) => {
                self.report(format_args!("expected {types}, found {}", Found(instance)));
            }
            Node::Rules { rules, .. } => {
                if self.depth >= limits::DEPTH {
                    self.stopped = Some(Stop::Reason("schema nests too deeply to check"));
                    return;
                }
                self.depth += 1;
                for rule in rules {
                    if self.pay(1) {
                        self.rule(rule, instance);
                    }
                }
                self.depth -= 1;
            }
        }
    }

    /// Checks a part of the instance, one step further along the path.
    pub(super) fn part(&mut self, node: NodeId, step: &str, part: &Value) {
        if self.pay(text_weight(step)) {
            let end = self.path.len();
            references::push_step(&mut self.path, step);
            self.node(node, part);
            self.path.truncate(end);
        }
    }

    /// The first problem the node has with the instance, not reported.
    pub(super) fn attempt(&mut self, node: NodeId, instance: &Value) -> Option<Problem> {
        let (start, room) = (self.problems.len(), self.room);
        self.room = start + 1;
        self.node(node, instance);
        self.room = room;
        self.problems.drain(start..).next()
    }

    pub(super) fn matches(&mut self, node: NodeId, instance: &Value) -> bool {
        let quiet = std::mem::replace(&mut self.quiet, true);
        let problem = self.attempt(node, instance);
        self.quiet = quiet;
        problem.is_none()
    }

    pub(super) fn finds(&mut self, pattern: &Pattern, text: &str) -> bool {
        let cost = (text.len() + 1).saturating_mul(pattern.cost);
        self.pay(cost) && pattern.regex.is_match(text)
    }
}
