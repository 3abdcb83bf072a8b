//! Posts the notifications of a decision's events.

use crate::base::hmac::{hex_128, hmac_sha256};
use crate::definition::notify::{EventKinds, NotifyTarget};
use crate::protocol::notification::{NotificationReport, NotificationTarget};
use crate::run::decision::Write;
use crate::run::notification::Notification;
use crate::run::notification::queues::Posted;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::row_events::RowEvent;

impl Run {
    /// All notifications that are kept, in the order of their numbers.
    pub fn notifications(&self) -> impl Iterator<Item = &Notification> {
        self.notifications.iter()
    }

    /// Why the deployment's own targets get nothing.
    pub fn invalid_notify_setting(&self) -> Option<&'static str> {
        self.settings.notify.invalid
    }

    pub(in crate::run) fn notification_answered(&mut self, number: u64, report: NotificationReport) {
        let (now, settings) = (self.changes.now, self.settings.notify);
        self.notifications.answered(number, report, now, settings);
    }

    /// Those of the workflow, then those of the deployment, with whether they are the deployment's.
    fn notify_targets(&self) -> impl Iterator<Item = (&NotifyTarget, bool)> {
        let workflow_id = &self.header.workflow_id;
        let of_workflow = self.snapshot.workflow.notify.iter().map(|target| (target, false));
        let of_deployment = self.settings.notify.targets.iter();
        let of_deployment = of_deployment.filter(|it| it.workflows.contains(workflow_id));
        of_workflow.chain(of_deployment.map(|it| (&it.target, true)))
    }

    /// Posts a notification of each event that `writes` save to each target that asks for its kind.
    pub(in crate::run) fn post_notifications(&mut self, writes: &[Write]) {
        let after = self.notifications.seen_seq;
        self.notifications.seen(self.event_log.last_seq());
        if self.snapshot.workflow.notify.is_empty() && self.settings.notify.targets.is_empty() {
            return;
        }
        let targets = self.notify_targets();
        let asked = targets.fold(EventKinds::default(), |all, (target, _)| all.union(target.on));
        if !writes.iter().any(|write| saves_one_of(write, asked, after)) {
            return;
        }
        let targets: Vec<(NotificationTarget, EventKinds, bool)> = self
            .notify_targets()
            .map(|(target, of_deployment)| (address_of(target), target.on, of_deployment))
            .collect();
        for event in self.new_events(writes, after) {
            let kind = event.kind as usize;
            let mut body = None;
            for (index, (target, on, of_deployment)) in targets.iter().enumerate() {
                // The same address twice, in the workflow and in the variable, gets it once.
                let is_repeated = targets[..index]
                    .iter()
                    .any(|(other, on, _)| other == target && on.contains(kind));
                if !on.contains(kind) || is_repeated {
                    continue;
                }
                let posted = Posted {
                    target,
                    of_deployment: *of_deployment,
                    kind: event.kind.name(),
                    seq: event.seq,
                    is_end: event.kind.is_end(),
                    now: self.changes.now,
                };
                let mut notifications = std::mem::take(&mut self.notifications);
                notifications.post(
                    &posted,
                    |number| self.notification_id(number),
                    |is_summary| match is_summary {
                        true => self.summary_body(event.at),
                        false => body.get_or_insert_with(|| self.notification_body(&event)).clone(),
                    },
                );
                self.notifications = notifications;
            }
        }
    }

    /// No dots: the signature separates its parts by them. The start time distinguishes it from an earlier run with the same id.
    fn notification_id(&self, number: u64) -> String {
        let place = format!("{}/{number}", self.header.started_at);
        let digest = hmac_sha256(self.header.id.as_bytes(), place.as_bytes());
        format!("ntf_{}", hex_128(&digest))
    }
}

fn address_of(target: &NotifyTarget) -> NotificationTarget {
    NotificationTarget {
        url: target.url.clone(),
        headers: target.headers.clone(),
        secret: target.secret.clone(),
    }
}

/// A cheap look before events are built: most decisions have none that a target asks for.
fn saves_one_of(write: &Write, asked: EventKinds, after: u64) -> bool {
    let is_asked = |kind: RunEventKind, seq: u64| seq > after && asked.contains(kind as usize);
    let on_row = |events: &[RowEvent]| {
        let new = events.iter().rev().take_while(|event| event.seq > after);
        new.into_iter().any(|event| is_asked(event.kind, event.seq))
    };
    match write {
        Write::SaveRun(header) => on_row(&header.events),
        Write::SaveToken(token) => on_row(&token.events),
        Write::SaveInstance(instance) => on_row(&instance.events),
        Write::SaveGate(gate) => on_row(&gate.events),
        Write::SaveEvent(event) => is_asked(event.kind, event.seq),
        Write::SaveSnapshot(_)
        | Write::SaveInput(_)
        | Write::SaveContext { .. }
        | Write::DeleteContext { .. }
        | Write::SaveSignals { .. }
        | Write::SaveMessage { .. }
        | Write::DeleteMessage { .. }
        | Write::SaveNotification(_)
        | Write::DeleteNotification { .. }
        | Write::DeleteFailedWakes => false,
    }
}
