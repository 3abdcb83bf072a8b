//! How many executors and objects one invocation of the object may still call. The platform counts the calls of an invocation
//! however long it lasts, so everything that follows from a request or an alarm shares its budget.

use std::cell::Cell;
use std::rc::Rc;

/// The platform allows 32; the rest is left to calls that are not counted here.
const CALLS_MAX: u32 = 24;

#[derive(Clone)]
pub struct SubrequestBudget {
    remaining: Rc<Cell<u32>>,
}

impl Default for SubrequestBudget {
    fn default() -> SubrequestBudget {
        SubrequestBudget::new(CALLS_MAX)
    }
}

impl SubrequestBudget {
    pub fn new(calls: u32) -> SubrequestBudget {
        SubrequestBudget {
            remaining: Rc::new(Cell::new(calls)),
        }
    }

    pub fn remaining(&self) -> u32 {
        self.remaining.get()
    }

    /// Takes as many of `wanted` calls as remain.
    pub fn take(&self, wanted: u32) -> u32 {
        let taken = wanted.min(self.remaining.get());
        self.remaining.set(self.remaining.get() - taken);
        taken
    }

    /// A call that is made in any case.
    pub fn spend(&self) {
        self.take(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_budget_and_it_never_goes_below_zero() {
        let budget = SubrequestBudget::new(3);
        let clone = budget.clone();
        assert_eq!(clone.take(2), 2);
        assert_eq!(budget.remaining(), 1);
        assert_eq!(budget.take(2), 1);
        clone.spend();
        assert_eq!((budget.take(1), clone.remaining()), (0, 0));
    }
}
