//! One invocation of the object, and what it has spent. The platform counts the calls of an invocation to other Workers,
//! however long it lasts: whatever begins in the wake of a request or of an alarm is that one's.

use std::cell::Cell;
use std::rc::Rc;

/// The platform allows 32; the rest is left to what is not an executor.
const CALLS: u32 = 24;

#[derive(Clone, Default)]
pub struct Turn(Rc<Cell<u32>>);

impl Turn {
    /// Calls to executors, and starts of what an event triggers, that may still begin.
    pub fn room(&self) -> u32 {
        CALLS.saturating_sub(self.0.get())
    }

    /// As many of `wanted` calls as there is room for; they count from now on.
    pub fn take(&self, wanted: u32) -> u32 {
        let taken = wanted.min(self.room());
        self.0.set(self.0.get() + taken);
        taken
    }

    pub fn spend(&self) {
        self.0.set(self.0.get() + 1);
    }
}
