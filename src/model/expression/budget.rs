//! Owns what an evaluation may cost, and how it fails.
//!
//! Time is counted in steps and memory in bytes made, both from fixed prices, so
//! a limit is hit at the same place on every platform and on every replay. Bytes
//! are never given back: the budget bounds the work, not the peak.

pub(super) const FUEL: u64 = 100_000;
pub(super) const MEMORY: u64 = 4 * 1024 * 1024;
/// Price of one list element or map entry. A constant rather than `size_of`, so
/// that a limit is hit at the same place on every platform.
pub(super) const NODE: u64 = 32;
const BYTES_PER_UNIT: u64 = 64;

#[derive(Debug)]
pub(super) enum Fault {
    /// A limit was hit: never absorbed by `&&` and `||`.
    Exhausted(String),
    Failed(String),
}

impl Fault {
    pub fn message(self) -> String {
        match self {
            Fault::Exhausted(message) | Fault::Failed(message) => message,
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

pub(super) struct Budget {
    fuel: u64,
    memory: u64,
}

impl Budget {
    pub fn new() -> Self {
        Budget {
            fuel: FUEL,
            memory: MEMORY,
        }
    }

    pub fn spend(&mut self, units: u64) -> Result<(), Fault> {
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
        self.spend(bytes as u64 / BYTES_PER_UNIT)
    }

    pub fn allocate(&mut self, bytes: u64) -> Result<(), Fault> {
        self.spend(bytes / BYTES_PER_UNIT)?;
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
        Ok(())
    }
}
