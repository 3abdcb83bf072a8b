//! Validates an instance with compiled nodes. A `Validator` holds the step
//! budget, the recursion depth and the pointer into the instance. Once the
//! budget or the depth is exhausted it only unwinds and reports exactly that,
//! because a partial result can be wrong in either direction under `not`.

use std::fmt::{self, Arguments};

use serde_json::Value;

use super::messages::Described;
use super::values::{nests_deeper_than, text_steps};
use super::{Node, NodeId, Pattern, Violation, limits, references};
use crate::base::compute::Meter;

/// The instance is invalid, or validation was stopped.
pub(super) enum ValidateError {
    Violations(Vec<Violation>),
    TooExpensive,
}

pub(super) fn check(nodes: &[Node], instance: &Value, meter: Option<&Meter>) -> Result<(), ValidateError> {
    let left = meter.map_or(u64::MAX, Meter::remaining);
    let steps = limits::STEPS.min(usize::try_from(left).unwrap_or(usize::MAX));
    let mut validator = Validator {
        nodes,
        pointer: String::new(),
        violations: Vec::new(),
        violations_max: limits::VIOLATIONS_MAX,
        quiet: false,
        steps,
        depth: 0,
        stopped: None,
    };
    if nests_deeper_than(instance, limits::NESTING) {
        validator.stopped = Some(Stop::Reason("instance nests too deeply to check"));
    } else {
        validator.node(0, instance);
    }
    if let Some(meter) = meter {
        meter.count((steps - validator.steps) as u64);
        if matches!(validator.stopped, Some(Stop::OutOfSteps)) {
            meter.exhaust();
        }
    }
    match validator.stopped {
        Some(Stop::OutOfSteps) => Err(ValidateError::TooExpensive),
        Some(Stop::Reason(reason)) => Err(ValidateError::Violations(vec![Violation {
            pointer: String::new(),
            message: reason.to_owned(),
        }])),
        None if validator.violations.is_empty() => Ok(()),
        None => Err(ValidateError::Violations(validator.violations)),
    }
}

/// Why validation was stopped.
#[derive(Clone, Copy)]
enum Stop {
    OutOfSteps,
    Reason(&'static str),
}

pub(super) struct Validator<'s> {
    pub(super) nodes: &'s [Node],
    /// JSON pointer to the current value.
    pub(super) pointer: String,
    violations: Vec<Violation>,
    violations_max: usize,
    /// Only the verdict is needed, so no messages are formatted.
    quiet: bool,
    steps: usize,
    depth: usize,
    stopped: Option<Stop>,
}

impl<'s> Validator<'s> {
    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() || self.violations.len() >= self.violations_max
    }

    /// Charges for an operation before it is done. The operation must not be done if this returns false.
    pub(super) fn charge(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => self.stopped = Some(Stop::OutOfSteps),
        }
        !self.is_done()
    }

    pub(super) fn report(&mut self, message: Arguments<'_>) {
        if self.quiet {
            self.violations.push(Violation {
                pointer: String::new(),
                message: String::new(),
            });
        } else if self.charge(limits::MESSAGE_STEPS + text_steps(&self.pointer)) {
            self.violations.push(Violation {
                pointer: self.pointer.clone(),
                message: fmt::format(message),
            });
        }
    }

    pub(super) fn node(&mut self, node: NodeId, instance: &Value) {
        if !self.charge(1) {
            return;
        }
        let nodes = self.nodes;
        match &nodes[node] {
            Node::Always => {}
            Node::Never => self.report(format_args!(
                "expected no value here, found {}",
                Described(instance)
            )),
            Node::Rules { types, .. } if !types.allows(instance) => {
                self.report(format_args!("expected {types}, found {}", Described(instance)));
            }
            Node::Rules { rules, .. } => {
                if self.depth >= limits::DEPTH {
                    self.stopped = Some(Stop::Reason("schema nests too deeply to check"));
                    return;
                }
                self.depth += 1;
                for rule in rules {
                    if self.charge(1) {
                        self.rule(rule, instance);
                    }
                }
                self.depth -= 1;
            }
        }
    }

    /// Validates a part of the instance, one pointer segment below it.
    pub(super) fn validate_part(&mut self, node: NodeId, step: &str, part: &Value) {
        if self.charge(text_steps(step)) {
            let end = self.pointer.len();
            references::push_segment(&mut self.pointer, step);
            self.node(node, part);
            self.pointer.truncate(end);
        }
    }

    /// The first violation of the node by the instance, which is not reported.
    pub(super) fn first_violation(&mut self, node: NodeId, instance: &Value) -> Option<Violation> {
        let (start, violations_max) = (self.violations.len(), self.violations_max);
        self.violations_max = start + 1;
        self.node(node, instance);
        self.violations_max = violations_max;
        self.violations.drain(start..).next()
    }

    pub(super) fn matches(&mut self, node: NodeId, instance: &Value) -> bool {
        let quiet = std::mem::replace(&mut self.quiet, true);
        let violation = self.first_violation(node, instance);
        self.quiet = quiet;
        violation.is_none()
    }

    pub(super) fn pattern_matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        let steps = (text.len() + 1).saturating_mul(pattern.steps_per_byte);
        self.charge(steps) && pattern.regex.is_match(text)
    }
}
