//! What an executor does with its orders.

use curfew::host::Attempt;
use curfew::protocol::run::RunRequest;
use curfew::protocol::task::{Checkpoint, ReportStatus, TaskOrder, TaskReport};
use curfew::run::{Capability, TokenId};
use curfew::simulate::{ConnectionId, InFlight, World};
use serde_json::json;

use super::environment::Environment;
use super::events::events_of;
use crate::run::driver::{callback_key, failed, succeeded, timed_out};

/// What the simulator reads of an order.
pub struct ReceivedOrder {
    pub run: String,
    pub attempt: Attempt,
    pub deadline_at: Option<u64>,
    /// Of an async action.
    pub capability: Option<String>,
}

impl ReceivedOrder {
    pub fn read(text: &str) -> ReceivedOrder {
        let order: TaskOrder = serde_json::from_str(text).expect("an executor can read its order");
        let token = TokenId::parse(order.token_id).expect("an order names a token");
        let capability = order.callback_url.map(|url| {
            let (_, capability) = url.rsplit_once('/').expect("a capability ends the URL");
            let issued = Capability::parse(capability).expect("a capability can be read");
            // The API knows no more than the key and the id, whatever became of the run and its ancestors.
            assert!(callback_key().proves(&issued), "{capability}");
            capability.to_string()
        });
        ReceivedOrder {
            run: order.run_id.to_string(),
            attempt: (token, order.epoch),
            deadline_at: order.deadline_at,
            capability,
        }
    }

    pub fn name(&self) -> String {
        format!("{}@{}", self.attempt.0, self.attempt.1)
    }
}

impl Environment {
    /// Orders, one per line.
    pub fn orders_arrived(&self, connection: &ConnectionId, orders: &str) {
        {
            let connections = self.connections.borrow();
            let state = connections.get(connection).expect("it was opened");
            assert!(!state.is_closed, "orders were sent by a closed connection");
            self.outcome.borrow_mut().connections_reused += u64::from(state.batches > 1);
        }
        for order in orders.split('\n') {
            self.order_arrived(connection, &ReceivedOrder::read(order));
        }
    }

    fn order_arrived(&self, connection: &ConnectionId, order: &ReceivedOrder) {
        let attempt = (order.run.clone(), order.attempt);
        assert!(
            self.attempts.borrow_mut().insert(attempt),
            "{} {} was ordered twice",
            order.run,
            order.name()
        );
        if self.fault(|faults| faults.frozen) {
            let mut connections = self.connections.borrow_mut();
            let state = connections.get_mut(connection).expect("it was opened");
            state.frozen_since.get_or_insert(self.now.get());
            return;
        }
        let delay = match self.fault(|faults| faults.slow) {
            true => self.below(200_000),
            false => self.below(400),
        };
        self.send_progress(connection, order.attempt, delay);
        let closed = || InFlight::ConnectionClosed {
            connection: connection.clone(),
        };
        if self.fault(|faults| faults.never_answered) {
            // Without a limit the run would rightly wait forever: there the connection breaks some day.
            if order.deadline_at.is_none() {
                self.post(600_000, closed());
            }
            return;
        }
        if self.fault(|faults| faults.lost) {
            return self.post(delay, closed());
        }
        let (delay, report) = self.report(order, delay);
        if self.fault(|faults| faults.duplicated) {
            let again = delay + self.below(50_000);
            let duplicate = match self.chance(50) {
                true => InFlight::Report {
                    connection: connection.clone(),
                    report: report.clone(),
                },
                false => InFlight::Request {
                    caller: None,
                    run: order.run.clone(),
                    request: RunRequest::Report(report.clone()),
                    is_repeated: false,
                },
            };
            self.post(again, duplicate);
        }
        let connection = connection.clone();
        self.post(delay, InFlight::Report { connection, report });
    }

    /// The holder of the capability of an async action brings its result once, twice or never.
    fn call_back(&self, order: &ReceivedOrder, capability: &str, delay: u64) {
        if self.fault(|faults| faults.lost) {
            return;
        }
        let attempt = format!("{}/{}", order.run, order.name());
        let copies = 1 + u64::from(self.fault(|faults| faults.duplicated));
        for _ in 0..copies {
            let most = self.pick(&[300, 40_000]);
            let later = delay + self.below(most);
            let request = RunRequest::Callback {
                capability: capability.to_string(),
                body: json!({"output": {"attempt": attempt, "epoch": order.attempt.1}}),
            };
            self.outcome.borrow_mut().callbacks += 1;
            let result = InFlight::Result {
                run: order.run.clone(),
                attempt: order.attempt,
                request,
            };
            self.post(later, result);
        }
    }

    pub fn report(&self, order: &ReceivedOrder, delay: u64) -> (u64, TaskReport) {
        let name = order.name();
        let left = order.deadline_at.map(|at| at.saturating_sub(self.now.get()));
        if let Some(left) = left.filter(|left| *left < delay) {
            let mut report = timed_out(&name);
            report.checkpoint = Some(Box::new(halfway())).filter(|_| self.chance(50));
            return (left, report);
        }
        if let Some(capability) = &order.capability {
            self.call_back(order, capability, delay);
            let report = TaskReport {
                status: ReportStatus::Suspended,
                ..succeeded(&name, json!({"status": 202}))
            };
            return (delay, report);
        }
        let report = match self.below(20) {
            number @ 0..=17 => {
                let attempt = format!("{}/{name}", order.run);
                let emits = number.saturating_sub(14);
                let mut output = json!({"attempt": attempt, "epoch": order.attempt.1, "emits": emits});
                if self.disturbs(|odds| odds.oversized) {
                    let bytes = self.pick(&[300_000, 520_000, 600_000]);
                    output["padding"] = json!("x".repeat(bytes));
                }
                TaskReport {
                    events: events_of(&attempt, emits),
                    ..succeeded(&name, output)
                }
            }
            18 => failed(&name),
            _ => timed_out(&name),
        };
        (delay, report)
    }
}

/// What an executor had done when its time was over.
fn halfway() -> Checkpoint {
    Checkpoint {
        next: "second".into(),
        state: json!({"first": 1}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(1),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    }
}
