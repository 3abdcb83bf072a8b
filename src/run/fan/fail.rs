//! A join fails: its quorum is out of reach, its wait timed out or its results cannot be merged. Everything in the
//! instance ends.

use std::collections::BTreeSet;

use crate::base::failure::Failure;
use crate::base::ordered::set_of;
use crate::run::fan::instance::{FanIn, InstanceId};
use crate::run::header::RunStatus;
use crate::run::state::Run;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    /// Ends all siblings as `status`, waiting ones and those at work, whose calls are aborted. Then a join around the
    /// instance decides, or the run fails.
    pub(super) fn fail_fan_in(&mut self, id: InstanceId, status: TokenStatus, failure: Failure) {
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
            self.end(token, status, |token| token.reason = Some(reason.clone()));
        }
        let parent = parent.filter(|parent| self.will_be_joined(Some(parent)));
        // The end of the run lets them report: their work must be undone if it was done.
        let settling = self.settling_tokens(RunStatus::Failed);
        if parent.is_none() && !settling.is_empty() {
            let others = self.all_members(id).into_iter();
            for token in others.filter(|token| !settling.contains(token)) {
                self.mark_interrupted(token);
                self.cancel_token(token, status, &reason, true);
            }
            return self.fail(failure);
        }
        for token in self.all_members(id) {
            self.mark_interrupted(token);
        }
        self.end_members(id, status, &reason, true);
        self.close_instance(id);
        match parent {
            Some(parent) => self.fans.set_error(parent.instance, failure),
            None => self.fail(failure),
        }
    }

    /// The live members of an instance and of the instances inside it.
    fn all_members(&self, id: InstanceId) -> Vec<TokenId> {
        let (mut members, inner) = self.members_of(id);
        for inside in inner {
            members.extend(self.all_members(inside));
        }
        members
    }

    /// The members of an instance that have not arrived at its join at `node`.
    pub(super) fn late_members(&self, id: InstanceId, node: usize) -> Vec<TokenId> {
        let arrivals = self.fans.fan_in(id, node).arrivals();
        let arrived: BTreeSet<TokenId> = set_of(
            arrivals
                .into_iter()
                .flat_map(|arrivals| arrivals.iter().map(|(_, arrival)| arrival.token)),
        );
        let mut late = self.all_members(id);
        late.retain(|token| !arrived.contains(token));
        late.sort();
        late
    }

    /// Ends every live member of an instance and of the instances inside it.
    pub(super) fn end_members(&mut self, id: InstanceId, status: TokenStatus, reason: &str, abort: bool) {
        let (members, inner) = self.members_of(id);
        for inside in inner {
            self.end_members(inside, status, reason, abort);
            self.close_instance(inside);
        }
        for token in members {
            // A branch may have left this instance for a join around it. Its arrival there ends with it.
            self.fans.withdraw_arrival(self.tokens.live(token));
            self.cancel_token(token, status, reason, abort);
        }
    }

    fn members_of(&self, id: InstanceId) -> (Vec<TokenId>, Vec<InstanceId>) {
        let instance = self.fans.get(id).expect("only open instances have members");
        (instance.members(), instance.inner())
    }
}
