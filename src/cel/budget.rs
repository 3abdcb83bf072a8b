//! Owns what an evaluation may cost, and how it fails.
//!
//! Time is counted in steps and memory in bytes made, both from fixed prices, so
//! a limit is hit at the same place on every platform and on every replay. Bytes
//! are never given back: the budget bounds the work, not the peak.

use crate::base::compute::{BYTES_PER_STEP, Exhausted, Meter, OPERATION_STEPS};

pub(super) const FUEL: u64 = 100_000;
pub(super) const MEMORY: u64 = 4 * 1024 * 1024;
/// Price of one list element or map entry. A constant rather than `size_of`, so
/// that a limit is hit at the same place on every platform.
pub(super) const NODE: u64 = 32;
const BYTES_PER_UNIT: u64 = 64;
const BYTES_SEARCHED_PER_STEP: u64 = 4;

#[derive(Debug)]
pub(super) enum Fault {
    /// A limit of this evaluation was hit: never absorbed by `&&` and `||`.
    Exhausted(String),
    /// What all evaluations of the unit may take together was hit; as above.
    UnitExhausted(Exhausted),
    Failed(String),
}

impl Fault {
    pub fn message(self) -> String {
        match self {
            Fault::Exhausted(message) | Fault::Failed(message) => message,
            Fault::UnitExhausted(exhausted) => exhausted.to_string(),
        }
    }
}

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(message.into()))
}

/// Cuts text for a message, which must stay short whatever the data holds.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// What one evaluation has left, of its own limits and of what its unit may take. What it took is counted on the unit's
/// meter when it is over.
pub(super) struct Budget<'m> {
    fuel: u64,
    memory: u64,
    /// Steps of the unit.
    left: u64,
    left_at_first: u64,
    has_exhausted_unit: bool,
    meter: Option<&'m Meter>,
}

impl<'m> Budget<'m> {
    pub fn new(meter: Option<&'m Meter>) -> Self {
        let left = meter.map_or(u64::MAX, Meter::remaining);
        Budget {
            fuel: FUEL,
            memory: MEMORY,
            left,
            left_at_first: left,
            has_exhausted_unit: false,
            meter,
        }
    }

    /// Pays for operations: each is a step of this evaluation, and has its price on the unit.
    pub fn spend(&mut self, units: u64) -> Result<(), Fault> {
        self.burn(units)?;
        // At most the fuel, so it cannot overflow.
        self.pay(units * OPERATION_STEPS)
    }

    fn burn(&mut self, units: u64) -> Result<(), Fault> {
        match self.fuel.checked_sub(units) {
            Some(left) => self.fuel = left,
            None => {
                self.fuel = 0;
                return Err(Fault::Exhausted(format!(
                    "expression too expensive: it takes more than {FUEL} steps"
                )));
            }
        }
        Ok(())
    }

    /// Pays for looking through text, which takes time but no memory.
    pub fn read(&mut self, bytes: usize) -> Result<(), Fault> {
        self.burn(bytes as u64 / BYTES_PER_UNIT)?;
        self.pay(bytes as u64 / BYTES_PER_UNIT)
    }

    /// As above, where the text is searched or taken apart, which looks at each byte.
    pub fn search(&mut self, bytes: usize) -> Result<(), Fault> {
        self.read(bytes)?;
        self.pay(bytes as u64 / BYTES_SEARCHED_PER_STEP)
    }

    pub fn allocate(&mut self, bytes: u64) -> Result<(), Fault> {
        self.burn(bytes / BYTES_PER_UNIT)?;
        match self.memory.checked_sub(bytes) {
            Some(left) => self.memory = left,
            None => {
                self.memory = 0;
                let limit = MEMORY / (1024 * 1024);
                return Err(Fault::Exhausted(format!(
                    "expression too expensive: it produces more than {limit} MiB"
                )));
            }
        }
        self.pay(bytes / BYTES_PER_STEP)
    }

    /// Pays for what no limit of a single evaluation counts, or not at its price.
    pub fn pay(&mut self, steps: u64) -> Result<(), Fault> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.has_exhausted_unit = true;
                Err(Fault::UnitExhausted(Exhausted))
            }
        }
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        let Some(meter) = self.meter else { return };
        meter.count(self.left_at_first - self.left);
        if self.has_exhausted_unit {
            meter.exhaust();
        }
    }
}
