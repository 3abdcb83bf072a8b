//! The budget of an evaluation, and the ways it fails.
//!
//! Time is counted in steps and memory in bytes created, both with fixed costs, so
//! a limit is hit at the same point on every platform and on every replay. Bytes
//! are never returned: the budget bounds the total, not the peak.

use crate::base::compute::{BYTES_PER_STEP, Exhausted, Meter, OPERATION_STEPS};

pub(super) const FUEL: u64 = 100_000;
pub(super) const MEMORY_BYTES: u64 = 4 * 1024 * 1024;
/// One list element or map entry. Not `size_of`, which differs between platforms.
pub(super) const ENTRY_BYTES: u64 = 32;
const BYTES_PER_FUEL: u64 = 64;
const BYTES_SEARCHED_PER_STEP: u64 = 4;

#[derive(Debug)]
pub(super) enum Fault {
    /// This evaluation exceeded its limits. `&&` and `||` never absorb it.
    Exhausted(String),
    /// All evaluations of the unit together exceeded its bound. `&&` and `||` never absorb it.
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

/// The remaining fuel and memory of one evaluation, and the remaining steps of its unit. Dropping it adds the steps taken
/// to the unit's meter.
pub(super) struct Budget<'m> {
    fuel: u64,
    memory: u64,
    unit_steps: u64,
    unit_steps_at_start: u64,
    has_exhausted_unit: bool,
    meter: Option<&'m Meter>,
}

impl<'m> Budget<'m> {
    pub fn new(meter: Option<&'m Meter>) -> Self {
        let unit_steps = meter.map_or(u64::MAX, Meter::remaining);
        Budget {
            fuel: FUEL,
            memory: MEMORY_BYTES,
            unit_steps,
            unit_steps_at_start: unit_steps,
            has_exhausted_unit: false,
            meter,
        }
    }

    /// Charges for operations, to this evaluation and to the unit.
    pub fn charge(&mut self, units: u64) -> Result<(), Fault> {
        self.consume_fuel(units)?;
        // At most `FUEL` operations get here, so this cannot overflow.
        self.charge_unit(units * OPERATION_STEPS)
    }

    fn consume_fuel(&mut self, units: u64) -> Result<(), Fault> {
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

    /// Charges for reading text, which takes time but no memory.
    pub fn read(&mut self, bytes: usize) -> Result<(), Fault> {
        self.consume_fuel(bytes as u64 / BYTES_PER_FUEL)?;
        self.charge_unit(bytes as u64 / BYTES_PER_FUEL)
    }

    /// Charges for searching or splitting text, which inspects each byte.
    pub fn search(&mut self, bytes: usize) -> Result<(), Fault> {
        self.read(bytes)?;
        self.charge_unit(bytes as u64 / BYTES_SEARCHED_PER_STEP)
    }

    pub fn allocate(&mut self, bytes: u64) -> Result<(), Fault> {
        self.consume_fuel(bytes / BYTES_PER_FUEL)?;
        match self.memory.checked_sub(bytes) {
            Some(left) => self.memory = left,
            None => {
                self.memory = 0;
                let limit = MEMORY_BYTES / (1024 * 1024);
                return Err(Fault::Exhausted(format!(
                    "expression too expensive: it produces more than {limit} MiB"
                )));
            }
        }
        self.charge_unit(bytes / BYTES_PER_STEP)
    }

    /// Charges to the unit only, for costs that the limits of a single evaluation do not cover.
    pub fn charge_unit(&mut self, steps: u64) -> Result<(), Fault> {
        match self.unit_steps.checked_sub(steps) {
            Some(left) => {
                self.unit_steps = left;
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
        meter.count(self.unit_steps_at_start - self.unit_steps);
        if self.has_exhausted_unit {
            meter.exhaust();
        }
    }
}
