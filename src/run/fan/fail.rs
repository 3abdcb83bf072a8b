//! A join fails: its quorum is out of reach, its wait timed out or its results cannot be merged. Everything in the
//! instance ends.

use crate::base::failure::Failure;
use crate::run::fan::instance::{FanIn, InstanceId};
use crate::run::header::RunStatus;
use crate::run::state::Run;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    /// Ends waiting tokens as `waiting_become` and aborts running ones. Then a join around the instance decides, or the
    /// run fails.
    pub(super) fn fail_fan_in(&mut self, id: InstanceId, waiting_become: TokenStatus, failure: Failure) {
        let instance = self.fans.get(id).expect("only a join of an open instance fails");
        let parent = instance.parent.clone();
        let reason = failure.code.clone();
        // By arrival: a waiting token may be a member of an inner instance.
        let arrivals = instance.fan_ins.values().filter_map(FanIn::arrivals);
        let waiting: Vec<TokenId> = arrivals
            .flat_map(|arrivals| arrivals.iter().map(|(_, arrival)| arrival.token))
            .collect();
        for token in waiting {
            self.mark_interrupted(token);
            self.end(token, waiting_become, |token| token.reason = Some(reason.clone()));
        }
        let parent = parent.filter(|parent| self.will_be_joined(Some(parent)));
        // The end of the run lets them report: their work must be undone if it was done.
        if parent.is_none() && !self.settling_tokens(RunStatus::Failed).is_empty() {
            return self.fail(failure);
        }
        self.interrupt_members(id);
        self.end_members(id, &reason, true);
        self.close_instance(id);
        match parent {
            Some(parent) => self.fans.set_error(parent.instance, failure),
            None => self.fail(failure),
        }
    }

    /// Records the state of each live member for a resume.
    fn interrupt_members(&mut self, id: InstanceId) {
        let (members, inner) = self.members_of(id);
        for inside in inner {
            self.interrupt_members(inside);
        }
        for token in members {
            self.mark_interrupted(token);
        }
    }

    /// Ends every live member of an instance and of the instances inside it.
    pub(super) fn end_members(&mut self, id: InstanceId, reason: &str, abort: bool) {
        let (members, inner) = self.members_of(id);
        for inside in inner {
            self.end_members(inside, reason, abort);
            self.close_instance(inside);
        }
        for token in members {
            // A branch may have left this instance for a join around it. Its arrival there ends with it.
            self.fans.withdraw_arrival(self.tokens.live(token));
            self.cancel_token(token, TokenStatus::Cancelled, reason, abort);
        }
    }

    fn members_of(&self, id: InstanceId) -> (Vec<TokenId>, Vec<InstanceId>) {
        let instance = self.fans.get(id).expect("only open instances have members");
        (instance.members(), instance.inner())
    }
}
