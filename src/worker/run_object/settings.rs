//! What the variables of a deployment set for its run objects.

use std::cell::Cell;

use worker::Env;

use crate::base::limits::TIMEOUT_CEILING_MS;
use crate::definition::notify::NOTIFY;
use crate::host::Config;
use crate::run::{DeploymentTarget, NotifySettings, Routes, Settings};
use crate::worker::index::traces;
use crate::worker::platform::{self, http_client};
use crate::worker::task_consumer::heartbeat_ms;

thread_local! {
    /// Variables do not change during the life of an isolate.
    static CONFIG: Cell<Option<Config>> = const { Cell::new(None) };
}

pub fn config(env: &Env) -> Config {
    CONFIG.get().unwrap_or_else(|| {
        let config = Config {
            settings: settings(env),
            silence_ms: silence_ms(env),
            exports_traces: traces::is_configured(env),
        };
        CONFIG.set(Some(config));
        config
    })
}

/// At least two heartbeats, so that one that is a little late does not count as silence.
fn silence_ms(env: &Env) -> u64 {
    let silence_ms = platform::number(env, "CURFEW_CALL_SILENCE_MS").unwrap_or(90_000);
    silence_ms.max(heartbeat_ms(env).saturating_mul(2))
}

fn settings(env: &Env) -> Settings {
    let default = Settings::default();
    let number = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    Settings {
        grace_ms: number("CURFEW_GRACE_MS", default.grace_ms),
        // Bounded, because a check that is due again at once would repeat forever. The same holds for `pending_ms`.
        watch_ms: number("CURFEW_WATCH_MS", default.watch_ms).max(1_000),
        queue: env
            .var("CURFEW_QUEUE")
            .is_ok_and(|value| value.to_string() == "on"),
        routes: Routes {
            executor: http_client::service(env, "EXECUTOR").is_some(),
            queue: env.queue("TASK_QUEUE").is_ok(),
        },
        pending_ms: number("CURFEW_PENDING_MS", default.pending_ms).max(100),
        no_route_ms: number("CURFEW_NO_ROUTE_MS", default.no_route_ms),
        resend_ms: number("CURFEW_RING_MS", default.resend_ms),
        claim_ms: number("CURFEW_CLAIM_MS", default.claim_ms),
        heartbeat_ms: number("CURFEW_SILENCE_MS", default.heartbeat_ms),
        // With the heartbeats of the consumer.
        progress_save_ms: heartbeat_ms(env),
        suspend_ms: number("CURFEW_SUSPEND_MS", default.suspend_ms),
        retry_delay_ms: number("CURFEW_RETRY_DELAY_MS", default.retry_delay_ms),
        retention_ms: number("CURFEW_RETENTION_MS", default.retention_ms),
        timeout_max_ms: number("CURFEW_TIMEOUT_MAX_MS", default.timeout_max_ms).min(TIMEOUT_CEILING_MS),
        notify: notify_settings(env),
        ..default
    }
}

/// A variable that is invalid stops no run: its targets get nothing, and the log and the list of notifications say why.
fn notify_settings(env: &Env) -> NotifySettings {
    let default = NotifySettings::DEFAULT;
    let number = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    let text = platform::json_variable(env, NOTIFY).filter(|text| !text.trim().is_empty());
    let (targets, invalid) = match text.map(|text| DeploymentTarget::parse(&text)) {
        None => (Vec::new(), None),
        Some(Ok(targets)) => (targets, None),
        Some(Err(wrong)) => {
            let message = format!("{NOTIFY} is invalid: {wrong}");
            platform::log_error("invalid_setting", &message);
            (Vec::new(), Some(message))
        }
    };
    NotifySettings {
        // Leaked, because they last as long as the isolate.
        targets: targets.leak(),
        invalid: invalid.map(|message| &*message.leak()),
        retry_ms: number("CURFEW_NOTIFY_RETRY_MS", default.retry_ms).max(100),
        give_up_ms: number("CURFEW_NOTIFY_GIVE_UP_MS", default.give_up_ms),
    }
}
