//! What the variables of a deployment set for its run objects.

use std::cell::Cell;

use worker::Env;

use crate::base::limits::TIMEOUT_CEILING_MS;
use crate::host::Config;
use crate::run::{Routes, Settings};
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
        suspend_ms: number("CURFEW_SUSPEND_MS", default.suspend_ms),
        retry_delay_ms: number("CURFEW_RETRY_DELAY_MS", default.retry_delay_ms),
        retention_ms: number("CURFEW_RETENTION_MS", default.retention_ms),
        timeout_max_ms: number("CURFEW_TIMEOUT_MAX_MS", default.timeout_max_ms).min(TIMEOUT_CEILING_MS),
        ..default
    }
}
