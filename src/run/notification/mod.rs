//! Notifications: events of the run that are posted to targets outside. Each is a row before it is sent and stays one, so that
//! none is lost and what became of it can be read.
//!
//! A target gets its notifications in their order: the next one is sent when the one before it was delivered or given up.

mod body;
mod post;
mod queues;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::text::json_text;
use crate::base::time::{DAY, Millis, SECOND};
use crate::definition::notify::{NotifyTarget, parse_variable};
use crate::protocol::caller::WorkflowScope;
use crate::protocol::notification::NotificationTarget;

pub(in crate::run) use queues::Notifications;

/// One notification to one target. Also its row, so its fields are those of the row; `number` is the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    #[serde(skip)]
    pub number: u64,
    /// For receivers: the same when it is sent again, and no other notification has it.
    pub id: String,
    pub target: NotificationTarget,
    /// The target is one of the deployment's variable, which callers of the API may not read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_deployment: bool,
    pub kind: String,
    /// The number of the event; of a summary that of the first event in it.
    pub seq: u64,
    pub status: NotificationStatus,
    pub created_at: Millis,
    /// Attempts that were answered: one whose answer was lost is not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Millis>,
    /// When it was delivered or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    /// The target wants no more notifications of this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Events that it stands for, because too many notifications waited for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// Only while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// The kind of a notification that stands for events which were not posted one by one.
pub const NOTIFICATIONS_SKIPPED: &str = "notifications_skipped";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub count: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub kinds: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationStatus {
    /// It waits for its turn, or for the next attempt.
    Pending,
    Delivered,
    /// Given up: no attempt was successful in time.
    Failed,
    /// The target wants no more notifications, or the executor does not call its address.
    Refused,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Notification {
    pub fn is_pending(&self) -> bool {
        self.status == NotificationStatus::Pending
    }

    /// The body to post. With the URL of the API it has links.
    pub fn text(&self, run_id: &str, public_url: Option<&str>) -> String {
        let mut body = self.body.clone().unwrap_or_default();
        if let Some(skipped) = &self.skipped {
            body["skipped"] = json!(skipped);
        }
        if let Some(base) = public_url {
            let run = format!("{}/v1/runs/{run_id}", base.trim_end_matches('/'));
            let mut links =
                json!({"run": run, "events": format!("{run}/events?after={}", self.seq.saturating_sub(1))});
            if let Some(gate) = body["gate"]["id"].as_str() {
                links["decide"] = json!(format!("{run}/gates/{gate}"));
            }
            body["links"] = links;
        }
        json_text(&body)
    }
}

/// What a deployment sets for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// Targets for all workflows. They count when an event happens, also for runs that were started before.
    pub targets: &'static [DeploymentTarget],
    /// Why the variable with the targets is invalid. Its targets get nothing until it is corrected.
    pub invalid: Option<&'static str>,
    /// The delay after the first failed attempt. It doubles with each further one, up to `RETRY_MAX_MS`.
    pub retry_ms: u64,
    /// How long after its event a notification is given up.
    pub give_up_ms: u64,
}

impl NotifySettings {
    pub const DEFAULT: NotifySettings = NotifySettings {
        targets: &[],
        invalid: None,
        retry_ms: 5 * SECOND,
        give_up_ms: DAY,
    };
}

impl Default for NotifySettings {
    fn default() -> NotifySettings {
        NotifySettings::DEFAULT
    }
}

/// A target of the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentTarget {
    pub target: NotifyTarget,
    pub workflows: WorkflowScope,
}

impl DeploymentTarget {
    /// The targets in the text of the variable. The error says what is wrong and quotes no value.
    pub fn parse(text: &str) -> Result<Vec<DeploymentTarget>, String> {
        let targets = parse_variable(text)?.into_iter().enumerate();
        let with_scope = |(index, target): (usize, NotifyTarget)| {
            let workflows = match target.workflows.clone() {
                None => Some(WorkflowScope::UNLIMITED),
                Some(patterns) => WorkflowScope::new(patterns),
            };
            let workflows = workflows.ok_or_else(|| {
                format!("at /{index}/workflows: a pattern has 1-64 of a-z 0-9 - _, and * for any characters")
            })?;
            Ok(DeploymentTarget { target, workflows })
        };
        targets.map(with_scope).collect()
    }
}
