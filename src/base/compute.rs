//! Bounds the computation of one decision, counted in steps.
//!
//! A run's object has one thread and shares its isolate with other runs, so a long computation delays all of them.
//! Expressions, schemas, inline tasks and the copies around them are charged to one [`Meter`]. It adds up fixed costs and
//! reads no clock, so the same history leads to the same decisions on every machine. One step is about 8 ns in workerd
//! (release build) for the most expensive operations, which are dense patterns and many small objects, and 4 ns natively.
//! `npm run engine` prints the steps of the most expensive documents.
//!
//! A decision consists of units: the start of a token, the end of a token with the merge it triggers, or an inline task
//! with both. A unit is atomic. The decision's budget is checked between units, and the remaining units run in the next
//! invocation. Each unit is bounded too: one that exceeds its bound fails its token.

use std::cell::Cell;
use std::fmt::{self, Display};

use serde_json::Value;

use crate::base::failure::Failure;

/// No further unit starts after this many steps: about 50 ms.
pub const DECISION_STEPS: u64 = 6_000_000;

/// Steps of one unit. A decision exceeds its budget by at most one unit and its reserve.
pub const UNIT_STEPS: u64 = DECISION_STEPS;

/// Granted once to an exhausted unit, to route its own failure: failure transitions have conditions too.
pub const RESERVE_STEPS: u64 = DECISION_STEPS / 10;

/// One operation of an expression: a node evaluated, an element visited.
pub const OPERATION_STEPS: u64 = 6;

/// One object created, without its entries: the first entry allocates a tree node with room for eleven.
pub const OBJECT_STEPS: u64 = 40;

/// Bytes of text, or of values that an expression creates, for one step.
pub const BYTES_PER_STEP: u64 = 16;

/// One value copied, compared or serialized, with its slot in the list or object that contains it.
const VALUE_STEPS: u64 = 4;

/// The fixed cost of a token at its creation, at its start and at its end: its row and its bookkeeping.
pub const TOKEN_STEPS: u64 = 800;

/// The computation of the current decision.
#[derive(Debug)]
pub struct Meter {
    spent: Cell<u64>,
    /// The value of `spent` at which the current unit is exhausted.
    unit_end: Cell<u64>,
    has_reserve: Cell<bool>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::starting_at(0)
    }
}

impl Meter {
    /// The meter of a decision that follows others in the same invocation, which took `spent` steps.
    pub fn starting_at(spent: u64) -> Meter {
        Meter {
            spent: Cell::new(spent),
            unit_end: Cell::new(spent.saturating_add(UNIT_STEPS)),
            has_reserve: Cell::new(true),
        }
    }

    pub fn begin_unit(&self) {
        self.unit_end.set(self.spent.get().saturating_add(UNIT_STEPS));
        self.has_reserve.set(true);
    }

    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// No further unit may start in this invocation.
    pub fn is_exhausted(&self) -> bool {
        self.spent.get() >= DECISION_STEPS
    }

    /// Steps that the current unit has left.
    pub fn remaining(&self) -> u64 {
        self.unit_end.get().saturating_sub(self.spent.get())
    }

    /// Adds steps for something that was done or cannot be skipped.
    pub fn count(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    /// Charges for an operation before it is done. The operation must not be done if this fails.
    pub fn charge(&self, steps: u64) -> Result<(), Exhausted> {
        if steps <= self.remaining() {
            self.count(steps);
            return Ok(());
        }
        Err(self.exhaust())
    }

    /// Like `charge`, but returns the failure of the token. `what` names the operation.
    pub fn charge_for(&self, what: impl Display, steps: u64) -> Result<(), Failure> {
        self.charge(steps)
            .map_err(|exhausted| Failure::validation("limit_exceeded", format!("{what}: {exhausted}")))
    }

    /// Marks the current unit as exhausted.
    pub fn exhaust(&self) -> Exhausted {
        if self.has_reserve.replace(false) {
            self.unit_end.set(self.spent.get().saturating_add(RESERVE_STEPS));
        } else {
            self.unit_end.set(self.spent.get());
        }
        Exhausted
    }
}

/// The current unit exceeds its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Display for Exhausted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "too much computation for one token: more than {UNIT_STEPS} steps; map less data, use fewer or simpler \
             expressions and patterns, spread the work over several nodes, or do it in a service_call"
        )
    }
}

/// Steps to copy `value`.
pub fn copy_steps(value: &Value) -> u64 {
    traversal_steps(value, OBJECT_STEPS)
}

/// Steps to visit all of `value` once: to measure it or to serialize it.
pub fn write_steps(value: &Value) -> u64 {
    traversal_steps(value, VALUE_STEPS)
}

fn traversal_steps(value: &Value, object_steps: u64) -> u64 {
    let text_steps = |text: &str| text.len() as u64 / BYTES_PER_STEP;
    VALUE_STEPS
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text_steps(text),
            Value::Array(items) => items.iter().map(|item| traversal_steps(item, object_steps)).sum(),
            Value::Object(fields) => {
                let entry = |(key, item): (&String, &Value)| {
                    VALUE_STEPS + text_steps(key) + traversal_steps(item, object_steps)
                };
                object_steps + fields.iter().map(entry).sum::<u64>()
            }
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_unit_stops_at_its_bound_and_has_one_reserve() {
        let meter = Meter::default();
        assert_eq!(meter.charge(UNIT_STEPS), Ok(()));
        assert_eq!(meter.charge(1), Err(Exhausted));
        assert_eq!(meter.remaining(), RESERVE_STEPS);
        assert_eq!(meter.charge(RESERVE_STEPS), Ok(()));
        assert_eq!(meter.charge(1), Err(Exhausted));
        assert_eq!(meter.remaining(), 0);
        assert!(meter.is_exhausted());
        meter.begin_unit();
        assert_eq!(meter.remaining(), UNIT_STEPS);
        meter.count(u64::MAX);
        assert_eq!(meter.remaining(), 0);
    }

    #[test]
    fn steps_of_earlier_decisions_count_towards_the_budget() {
        let meter = Meter::starting_at(DECISION_STEPS - 1);
        assert!(!meter.is_exhausted());
        assert_eq!(meter.remaining(), UNIT_STEPS);
        meter.count(1);
        assert!(meter.is_exhausted());
    }

    #[test]
    fn cost_grows_with_values_and_with_text() {
        assert_eq!(copy_steps(&json!(1)), VALUE_STEPS);
        assert_eq!(copy_steps(&json!([1, null, true])), 4 * VALUE_STEPS);
        assert_eq!(copy_steps(&json!("x".repeat(1_600))), VALUE_STEPS + 100);
        assert_eq!(
            copy_steps(&json!({"a": {"b": 1}})),
            2 * OBJECT_STEPS + 5 * VALUE_STEPS
        );
        assert_eq!(write_steps(&json!({"a": {"b": 1}})), 7 * VALUE_STEPS);
    }
}
