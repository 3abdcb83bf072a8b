//! A token without a route to an executor waits as `pending`, because the next deployment may add the missing binding. The
//! alarm retries the dispatch, and the token fails after a while.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::{Millis, format_duration};
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::{Lane, Token, TokenId, TokenStatus};

/// The dispatch bindings of this deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes {
    /// The service binding to executors. Queue consumers need it, too.
    pub executor: bool,
    /// The queue of tasks.
    pub queue: bool,
}

/// The binding that a lane lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Executor,
    Queue,
}

impl Routes {
    pub const ALL: Routes = Routes {
        executor: true,
        queue: true,
    };

    fn missing_for(self, lane: Lane) -> Option<Missing> {
        match lane {
            Lane::Inline => None,
            Lane::Direct | Lane::Queue if !self.executor => Some(Missing::Executor),
            Lane::Direct => None,
            Lane::Queue => Some(Missing::Queue).filter(|_| !self.queue),
        }
    }
}

impl Missing {
    /// How to fix it.
    fn advice(self) -> &'static str {
        match self {
            Missing::Executor => {
                "no service binding EXECUTOR is configured: add [[services]] binding = \"EXECUTOR\" to the coordinator's \
                 wrangler.toml and deploy it"
            }
            Missing::Queue => {
                "CURFEW_QUEUE is on and no queue is bound as TASK_QUEUE: add [[queues.producers]] binding = \"TASK_QUEUE\" to \
                 the coordinator's wrangler.toml or turn CURFEW_QUEUE off, and deploy it"
            }
        }
    }
}

/// How long a token has had no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unroutable {
    pub since: Millis,
    /// The run's event log mentions it.
    #[serde(rename = "told", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_logged: bool,
}

impl Token {
    /// A route exists again.
    pub(in crate::run) fn found_route(&mut self) {
        if self.unroutable.take().is_some() {
            self.reason = None;
        }
    }
}

impl Run {
    pub(in crate::run) fn missing_route(&self, lane: Lane) -> Option<Missing> {
        self.settings.routes.missing_for(lane)
    }

    /// Schedules the next look for a route, or fails the token after `no_route_ms`.
    pub(in crate::run) fn wait_for_route(&mut self, id: TokenId, missing: Missing) {
        let token = self.tokens.live(id);
        let (epoch, now) = (token.epoch, self.changes.now);
        let next_at = now.saturating_add(self.settings.pending_ms);
        let Some(unroutable) = token.unroutable.as_deref().copied() else {
            let unroutable = Unroutable {
                since: now,
                is_logged: false,
            };
            let ends_at = now.saturating_add(self.settings.no_route_ms);
            return self.change(id, |token| {
                token.unroutable = Some(Box::new(unroutable));
                token.watch_at = Some(next_at.min(ends_at));
                token.reason = Some("no_route".into());
            });
        };
        let ends_at = unroutable.since.saturating_add(self.settings.no_route_ms);
        if ends_at <= now {
            return self.fail_unroutable(id, missing);
        }
        let watch_at = Some(next_at.min(ends_at));
        if unroutable.is_logged {
            // Changed in memory only: after a reload the older time is due, and the dispatch is retried immediately.
            return self.touch(id, |token| token.watch_at = watch_at);
        }
        self.note(
            RunEventKind::DispatchRungAgain,
            json!({"token_id": id.to_string(), "epoch": epoch, "reason": "no_route"}),
        );
        self.change(id, |token| {
            token.unroutable = Some(Box::new(Unroutable {
                is_logged: true,
                ..unroutable
            }));
            token.watch_at = watch_at;
        });
    }

    fn fail_unroutable(&mut self, id: TokenId, missing: Missing) {
        let after = format_duration(self.settings.no_route_ms);
        let failure = Failure::new(
            "no_route",
            FailureClass::Permanent,
            format!("nothing could be dispatched for {after}: {}", missing.advice()),
        );
        self.change(id, |token| {
            token.unroutable = None;
            token.reason = Some("no_route".into());
        });
        self.end_unsuccessfully(id, TokenStatus::Failed, failure);
    }
}
