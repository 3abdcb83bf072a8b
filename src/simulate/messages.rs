//! Messages that leave an object: to other runs, to the queue, to receivers of notifications. They may be lost, come late or
//! come twice.

use crate::host::{Delivery, DeliveryResult};
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::protocol::task::TaskMessage;
use crate::simulate::in_flight::{InFlight, Sender};
use crate::simulate::world::{Happening, World};

/// How often the queue delivers a message again that was not acknowledged.
const DELIVERIES: u64 = 3;

/// What every world does with a message.
pub trait Messages: World {
    /// A message of an outbox.
    fn send_message(&self, from: Sender, delivery: Delivery) {
        let environment = self.environment();
        self.happened(Happening::MessageSent);
        if self.fault(|faults| faults.message_lost) {
            if environment.chance(50) {
                let ended = InFlight::DeliveryEnded {
                    to: from,
                    id: delivery.id,
                    kind: delivery.kind,
                    result: DeliveryResult::Failed("lost".into()),
                };
                environment.post(500, ended);
            }
            return;
        }
        let copies = 1 + u64::from(self.fault(|faults| faults.duplicated));
        for _ in 0..copies {
            let is_slow = !environment.messages_are_prompt.get() && self.fault(|faults| faults.slow);
            let delay = match is_slow {
                true => environment.below(15_000),
                false => environment.delay(300),
            };
            let (from, delivery) = (from.clone(), delivery.clone());
            environment.post(delay, InFlight::Message { from, delivery });
        }
    }

    fn send_notification(&self, from: Sender, number: u64, order: NotificationOrder) {
        let environment = self.environment();
        let delay = match self.fault(|faults| faults.slow) {
            true => environment.below(15_000),
            false => environment.delay(300),
        };
        if self.fault(|faults| faults.message_lost) {
            if environment.chance(50) {
                let report = NotificationReport::failed("the executor did not answer in time");
                let ended = InFlight::NotificationEnded {
                    to: from,
                    number,
                    report,
                };
                environment.post(delay, ended);
            }
            return;
        }
        let order = Box::new(order);
        environment.post(delay, InFlight::Notification { from, number, order });
    }

    /// A message of the task queue.
    fn enqueue(&self, message: &TaskMessage) {
        if self.fault(|faults| faults.queue_message_lost) {
            return;
        }
        let environment = self.environment();
        let copies = 1 + u64::from(self.fault(|faults| faults.duplicated));
        for _ in 0..copies {
            let delay = self.queue_delay(message);
            environment.queued.set(environment.queued.get() + 1);
            let queued = InFlight::QueueMessage {
                message: message.clone(),
                number: environment.queued.get(),
                deliveries_left: DELIVERIES,
            };
            environment.post(delay, queued);
        }
    }
}

impl<W: World> Messages for W {}
