//! The consumers of the task queue: they stop with a claim, send no heartbeats, report twice, or report to a run that went on
//! without them.

use curfew::protocol::run::RunRequest;
use curfew::simulate::{InFlight, World, post_heartbeat};

use super::environment::Environment;
use super::executor::ReceivedOrder;

impl Environment {
    /// A consumer has its order.
    pub fn work(&self, order: &str) {
        let order = &ReceivedOrder::read(order);
        let (run, attempt) = (order.run.clone(), order.attempt);
        assert!(
            self.attempts.borrow_mut().insert((run.clone(), attempt)),
            "{run} {attempt:?} was claimed twice"
        );
        if self.fault(|faults| faults.consumer_stops) {
            return;
        }
        let delay = match self.fault(|faults| faults.slow) {
            true => self.below(900_000),
            false => self.below(400),
        };
        if !self.fault(|faults| faults.no_heartbeats) {
            let heartbeats = delay / self.heartbeat_ms;
            if heartbeats > 0 {
                post_heartbeat(self, &run, attempt, heartbeats - 1, None);
            }
        }
        let (delay, request) = match self.fault(|faults| faults.lost) {
            true => {
                let request = RunRequest::ReportLost {
                    token_id: attempt.0.to_string(),
                    epoch: attempt.1,
                    message: "reset".into(),
                };
                (delay, request)
            }
            false => {
                let (delay, report) = self.report(order, delay);
                (delay, RunRequest::Report(report))
            }
        };
        let copies = 1 + u64::from(self.fault(|faults| faults.duplicated));
        for copy in 0..copies {
            let later = delay + copy * self.below(50_000);
            let result = InFlight::Result {
                run: run.clone(),
                attempt,
                request: request.clone(),
            };
            self.post(later, result);
        }
    }
}
