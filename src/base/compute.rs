//! Owns how much computation one decision may take, counted in steps.
//!
//! A run's object has one thread, and its isolate is shared with other runs: whoever computes for long keeps all of them
//! waiting. Expressions, schemas, inline tasks and the copies around them are paid from one [`Meter`]. It counts steps from
//! fixed prices and never looks at a clock, so the same history makes the same decisions on every machine. A step is about
//! 8 ns of the release build in workerd for the worst kinds of work, dense patterns and many small objects, and 4 ns natively;
//! `npm run engine` prints what the worst documents take.
//!
//! A decision consists of units: one token's begin, one token's end with the merge it causes, one inline task with both. A
//! unit is atomic. The budget of the decision is looked at between units, and the rest waits for the next turn; what a
//! single unit may take is bounded too, and a unit that needs more fails its token.

use std::cell::Cell;
use std::fmt::{self, Display};

use serde_json::Value;

use crate::base::failure::Failure;

/// Steps of one decision, after which no further unit begins: about 50 ms.
pub const DECISION_STEPS: u64 = 6_000_000;

/// Steps of one unit: a decision takes at most this and its reserve beyond its budget.
pub const UNIT_STEPS: u64 = DECISION_STEPS;

/// What a unit that ran out may still take, once, to deal with its own failure: failure routes have conditions too.
pub const RESERVE_STEPS: u64 = DECISION_STEPS / 10;

/// One operation of an expression: a node evaluated, an element looked at.
pub const OPERATION_STEPS: u64 = 6;

/// One object made, beside its entries: its first entry takes room for eleven.
pub const OBJECT_STEPS: u64 = 40;

/// Bytes of values made by an expression, or of text, that cost one step.
pub const BYTES_PER_STEP: u64 = 16;

/// One value copied, compared or written as JSON, with its place in the list or the object that holds it.
const VALUE_STEPS: u64 = 4;

/// What a token costs apart from what its document computes, each at its birth, at its begin, and at its end: its row, and
/// the account of it.
pub const TOKEN_STEPS: u64 = 800;

/// The computation of the decision under way.
#[derive(Debug)]
pub struct Meter {
    spent: Cell<u64>,
    /// Where the unit under way must stop.
    stop: Cell<u64>,
    has_reserve: Cell<bool>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::after(0)
    }
}

impl Meter {
    /// The meter of a decision in whose turn others were made already, which took `spent`.
    pub fn after(spent: u64) -> Meter {
        Meter {
            spent: Cell::new(spent),
            stop: Cell::new(spent.saturating_add(UNIT_STEPS)),
            has_reserve: Cell::new(true),
        }
    }

    pub fn begin_unit(&self) {
        self.stop.set(self.spent.get().saturating_add(UNIT_STEPS));
        self.has_reserve.set(true);
    }

    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// No further unit is to begin in this turn.
    pub fn is_spent(&self) -> bool {
        self.spent.get() >= DECISION_STEPS
    }

    /// What the unit under way may still take.
    pub fn left(&self) -> u64 {
        self.stop.get().saturating_sub(self.spent.get())
    }

    /// Counts what was done, or cannot be left undone.
    pub fn count(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    /// Pays for what is about to be done. Where the unit has not as much left it is not to be done.
    pub fn pay(&self, steps: u64) -> Result<(), Exhausted> {
        if steps <= self.left() {
            self.count(steps);
            return Ok(());
        }
        Err(self.exhaust())
    }

    /// As `pay`, with the failure of the token that was to do it; `what` is what was too expensive.
    pub fn pay_for(&self, what: impl Display, steps: u64) -> Result<(), Failure> {
        self.pay(steps)
            .map_err(|exhausted| Failure::validation("limit_exceeded", format!("{what}: {exhausted}")))
    }

    /// The unit asked for more than it has.
    pub fn exhaust(&self) -> Exhausted {
        if self.has_reserve.replace(false) {
            self.stop.set(self.spent.get().saturating_add(RESERVE_STEPS));
        } else {
            self.stop.set(self.spent.get());
        }
        Exhausted
    }
}

/// A unit needs more computation than one unit may take.
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

/// Steps that a copy of `value` takes.
pub fn copy_steps(value: &Value) -> u64 {
    walk(value, OBJECT_STEPS)
}

/// Steps that one look at all of `value` takes: to measure it, or to write it as JSON.
pub fn write_steps(value: &Value) -> u64 {
    walk(value, VALUE_STEPS)
}

fn walk(value: &Value, object_steps: u64) -> u64 {
    let text_steps = |text: &str| text.len() as u64 / BYTES_PER_STEP;
    VALUE_STEPS
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text_steps(text),
            Value::Array(items) => items.iter().map(|item| walk(item, object_steps)).sum(),
            Value::Object(fields) => {
                let entry =
                    |(key, item): (&String, &Value)| VALUE_STEPS + text_steps(key) + walk(item, object_steps);
                object_steps + fields.iter().map(entry).sum::<u64>()
            }
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_unit_stops_at_its_share_and_has_one_reserve() {
        let meter = Meter::default();
        assert_eq!(meter.pay(UNIT_STEPS), Ok(()));
        assert_eq!(meter.pay(1), Err(Exhausted));
        assert_eq!(meter.left(), RESERVE_STEPS);
        assert_eq!(meter.pay(RESERVE_STEPS), Ok(()));
        assert_eq!(meter.pay(1), Err(Exhausted));
        assert_eq!(meter.left(), 0);
        assert!(meter.is_spent());
        meter.begin_unit();
        assert_eq!(meter.left(), UNIT_STEPS);
        meter.count(u64::MAX);
        assert_eq!(meter.left(), 0);
    }

    #[test]
    fn what_was_spent_in_the_turn_is_carried_along() {
        let meter = Meter::after(DECISION_STEPS - 1);
        assert!(!meter.is_spent());
        assert_eq!(meter.left(), UNIT_STEPS);
        meter.count(1);
        assert!(meter.is_spent());
    }

    #[test]
    fn the_price_grows_with_values_and_with_text() {
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
