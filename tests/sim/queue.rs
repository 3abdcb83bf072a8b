//! The task queue and its consumers: messages that are lost, late or duplicated, and consumers that stop with a claim, send no
//! heartbeats, report twice, or report to a run that went on without them.

use std::rc::Rc;

use curfew::host::Attempt;
use curfew::protocol::run::{RunRequest, RunResponse};
use curfew::protocol::task::TaskMessage;

use super::environment::Environment;
use super::executor::ReceivedOrder;
use super::in_flight::InFlight;
use super::simulation::Simulation;

/// How often a consumer sends a heartbeat.
const HEARTBEAT_MS: u64 = 10_000;
/// How often the queue delivers a message again that was not acknowledged.
const DELIVERIES: u64 = 3;

impl Environment {
    pub fn enqueue(&self, message: &TaskMessage) {
        if self.fault(|faults| faults.queue_message_lost) {
            return;
        }
        let copies = 1 + u64::from(self.fault(|faults| faults.duplicated));
        for _ in 0..copies {
            let delay = match self.fault(|faults| faults.slow) {
                true => self.below(60_000),
                false => self.below(100),
            };
            self.queued.set(self.queued.get() + 1);
            let queued = InFlight::QueueMessage {
                message: message.clone(),
                number: self.queued.get(),
                deliveries_left: DELIVERIES,
            };
            self.post(delay, queued);
        }
    }

    /// A consumer has its order.
    fn work(&self, order: &ReceivedOrder) {
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
            self.next_heartbeat(&run, attempt, delay / HEARTBEAT_MS);
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

    fn next_heartbeat(&self, run: &str, attempt: Attempt, left: u64) {
        if left > 0 {
            let heartbeat = InFlight::Heartbeat {
                run: run.to_string(),
                attempt,
                left: left - 1,
            };
            self.post(HEARTBEAT_MS, heartbeat);
        }
    }
}

impl Simulation {
    /// A consumer claims the attempt of its message.
    pub(super) fn claim(&mut self, message: TaskMessage, number: u64, deliveries_left: u64) {
        let request = RunRequest::Claim {
            token_id: message.token_id.clone(),
            epoch: message.epoch,
            claimant: Some(format!("message-{number}")),
        };
        let response = self.request(&message.run_id, request);
        let environment = &self.environment;
        let is_lost = environment.fault(|faults| faults.claim_response_lost);
        match response {
            Some(RunResponse::Done(order)) if !is_lost => {
                environment.outcome.borrow_mut().claims += 1;
                environment.work(&ReceivedOrder::read(&order));
            }
            Some(RunResponse::Conflict(_) | RunResponse::NotFound(_)) if !is_lost => {
                environment.outcome.borrow_mut().claims_refused += 1;
            }
            // No response: the queue delivers the message again.
            response => {
                let was_claimed = matches!(response, Some(RunResponse::Done(_)));
                environment.outcome.borrow_mut().claim_responses_lost += u64::from(was_claimed);
                if deliveries_left > 0 {
                    let again = InFlight::QueueMessage {
                        message,
                        number,
                        deliveries_left: deliveries_left - 1,
                    };
                    environment.post(2_000, again);
                }
            }
        }
    }

    pub(super) fn heartbeat(&mut self, run: &str, attempt: Attempt, left: u64) {
        let environment = Rc::clone(&self.environment);
        let progress = environment
            .chance(60)
            .then(|| environment.progress_of(run, attempt));
        let request = RunRequest::Heartbeat {
            token_id: attempt.0.to_string(),
            epoch: attempt.1,
            progress,
        };
        if environment.fault(|faults| faults.duplicated) {
            let again = InFlight::Request {
                run: run.to_string(),
                caller: None,
                request: request.clone(),
            };
            environment.post(environment.below(60_000), again);
        }
        let response = self.request(run, request);
        match response {
            // The attempt does not count any more. Most consumers stop; a report that is sent all the same changes nothing.
            Some(RunResponse::Conflict(_) | RunResponse::NotFound(_)) => {
                if environment.chance(70) {
                    let is_dropped = |message: &InFlight| {
                        matches!(message, InFlight::Result { run: other, attempt: of, .. }
                            if other == run && *of == attempt)
                    };
                    environment
                        .in_flight
                        .borrow_mut()
                        .retain(|_, message| !is_dropped(message));
                }
            }
            Some(_) | None => environment.next_heartbeat(run, attempt, left),
        }
    }

    pub(super) fn result_arrived(&mut self, run: String, attempt: Attempt, request: RunRequest) {
        let response = self.request(&run, request.clone());
        if matches!(response, None | Some(RunResponse::Refused { .. })) {
            let result = InFlight::Result {
                run,
                attempt,
                request,
            };
            self.environment.post(1_000, result);
        }
    }
}
