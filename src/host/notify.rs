//! Notifications on their way: the order for the executor, and the event that its report becomes.

use serde_json::json;

use crate::host::object::Host;
use crate::host::platform::Platform;
use crate::host::subrequests::SubrequestBudget;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::run::{Event, Notification};

/// How long a target may take to answer.
const TIMEOUT_MS: u64 = 15_000;

impl<P: Platform> Host<P> {
    pub(super) fn send_notification(&self, budget: &SubrequestBudget, notification: &Notification) {
        budget.spend();
        let run_id = self.run_id();
        let public_url = self.platform.public_url().ok();
        let order = NotificationOrder {
            id: notification.id.clone(),
            target: notification.target.clone(),
            body: notification.text(&run_id, public_url.as_deref()),
            timeout_ms: TIMEOUT_MS,
            run_id,
        };
        self.platform.notify(budget, notification.number, order);
    }

    /// What became of a notification. If it is lost, the notification is sent again.
    pub fn notification_ended(&self, budget: &SubrequestBudget, number: u64, report: NotificationReport) {
        self.log_notification(number, &report);
        // The engine ignores an answer to a notification that has ended.
        if let Err(error) = self.feed(budget, Event::NotificationAnswered { number, report }) {
            self.report("feed_failed", &error);
        }
    }

    /// The executor has redacted the message. The address is not logged: it may hold a credential.
    fn log_notification(&self, number: u64, report: &NotificationReport) {
        let refused = |message: &str| json!({"event": "notification_refused", "message": message});
        let mut line = match report {
            NotificationReport::Delivered => return,
            NotificationReport::Gone => refused("the target answered with status 410"),
            NotificationReport::Refused { message } => refused(message),
            NotificationReport::Failed { message, .. } => {
                json!({"event": "notification_failed", "message": message})
            }
        };
        let known = self.with_run(|run| {
            let mut all = run.notifications();
            let found = all.find(|notification| notification.number == number);
            found.map(|it| (it.id.clone(), it.kind.clone(), it.attempts))
        });
        if let Ok(Some((id, kind, attempts))) = known {
            line["level"] = json!("warn");
            line["run_id"] = json!(self.run_id());
            line["notification_id"] = json!(id);
            line["kind"] = json!(kind);
            line["attempts"] = json!(attempts);
            self.platform.log(line);
        }
    }
}
