//! The consumers of the task queue: claims whose messages or responses are lost, heartbeats, and reports that are sent until
//! they are answered.

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::host::Attempt;
use crate::protocol::run::{HeartbeatResponse, RunRequest, RunResponse};
use crate::protocol::task::TaskMessage;
use crate::simulate::environment::Environment;
use crate::simulate::in_flight::InFlight;
use crate::simulate::simulator::Simulator;
use crate::simulate::world::{Happening, World};

/// How soon a consumer asks again whether the run is over that should be.
const RECHECK_MS: u64 = 250;

/// The next heartbeat of an attempt; `left` more follow it. One is sent at the moment at which the run ends.
pub fn post_heartbeat(
    environment: &Environment,
    run: &str,
    attempt: Attempt,
    left: u64,
    run_ends_at: Option<Millis>,
) {
    let now = environment.now.get();
    let until_end = run_ends_at.map(|at| at.saturating_sub(now).max(RECHECK_MS));
    let delay = until_end.map_or(environment.heartbeat_ms, |millis| {
        millis.min(environment.heartbeat_ms)
    });
    let heartbeat = InFlight::Heartbeat {
        run: run.to_string(),
        attempt,
        left,
    };
    environment.post(delay, heartbeat);
}

impl<W: World> Simulator<W> {
    /// A consumer claims the attempt of its message.
    pub(super) fn claim(&mut self, message: TaskMessage, number: u64, deliveries_left: u64) {
        let request = RunRequest::Claim {
            token_id: message.token_id.clone(),
            epoch: message.epoch,
            claimant: Some(format!("message-{number}")),
        };
        let response = self.request(&message.run_id, request);
        let world = &self.world;
        let is_lost = world.fault(|faults| faults.claim_response_lost);
        match response {
            Some(RunResponse::Done(order)) if !is_lost => {
                world.happened(Happening::Claimed);
                if let Some(run) = self.runs.get(&message.run_id) {
                    world.order_claimed(&run.store(), &order);
                }
            }
            Some(RunResponse::Conflict(_) | RunResponse::NotFound(_)) if !is_lost => {
                world.happened(Happening::ClaimRefused);
            }
            // No response: the queue delivers the message again.
            response => {
                if matches!(response, Some(RunResponse::Done(_))) {
                    world.happened(Happening::ClaimResponseLost);
                }
                if deliveries_left > 0 {
                    let again = InFlight::QueueMessage {
                        message,
                        number,
                        deliveries_left: deliveries_left - 1,
                    };
                    world.environment().post(2_000, again);
                }
            }
        }
    }

    pub(super) fn heartbeat(&mut self, run: &str, attempt: Attempt, left: u64) {
        let Some(progress) = self.world.progress_of(run, attempt) else {
            return;
        };
        let request = RunRequest::Heartbeat {
            token_id: attempt.0.to_string(),
            epoch: attempt.1,
            progress,
        };
        let environment = self.world.environment();
        if self.world.fault(|faults| faults.duplicated) {
            let again = InFlight::Request {
                run: run.to_string(),
                caller: None,
                request: request.clone(),
                is_repeated: false,
            };
            environment.post(environment.below(60_000), again);
        }
        let run_ends_at = match self.request(run, request) {
            Some(RunResponse::Conflict(_) | RunResponse::NotFound(_)) => {
                return self.world.claim_ended(run, attempt);
            }
            Some(RunResponse::Done(body)) => {
                let read: HeartbeatResponse = from_json(&body).unwrap_or_default();
                read.run_ends_at
            }
            Some(RunResponse::Created(_) | RunResponse::TooLarge(_) | RunResponse::Refused { .. }) | None => {
                None
            }
        };
        if left > 0 {
            post_heartbeat(self.world.environment(), run, attempt, left - 1, run_ends_at);
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
            self.world.environment().post(1_000, result);
        }
    }
}
