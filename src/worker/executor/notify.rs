//! Posts a notification: the secrets are filled in and the body is signed here, because only the executor may read secrets.

use wasm_bindgen::prelude::*;
use worker::Env;

use crate::base::failure::Failure;
use crate::base::from_json::from_json;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::task::notification;
use crate::worker::executor::execute::{ReportSink, may_call_private, secret_store};
use crate::worker::executor::http;
use crate::worker::platform::inline_executor;
use crate::worker::platform::{deadline, http_client, now};

/// What is read of an answer. Its status says everything; a short body is read to its end, so that the target does not see its
/// connection break.
const ANSWER_BYTES: usize = 1 << 10;

/// The longest exchange, whatever the order says.
const TIMEOUT_MAX_MS: u64 = 60_000;

/// As `execute`, for a notification.
#[wasm_bindgen]
pub fn notify(id: u32, order: String, env: Env, sink: ReportSink) {
    inline_executor::run(id, async move {
        let Ok(order) = from_json::<NotificationOrder>(&order) else {
            return sink.fail("the body is no notification");
        };
        let report = post(&order, &env).await;
        match serde_json::to_string(&report) {
            Ok(report) => sink.report(id, &report),
            Err(error) => sink.fail(&error.to_string()),
        }
    });
}

async fn post(order: &NotificationOrder, env: &Env) -> NotificationReport {
    let secrets = secret_store(env);
    let request = match notification::prepare(order, &secrets, may_call_private(env), now()) {
        Ok(request) => request,
        Err(report) => return report,
    };
    let timeout_ms = order.timeout_ms.min(TIMEOUT_MAX_MS);
    let exchange = async {
        let response = http::send(&http_client::internet(), &request).await?;
        let (status, retry_after) = (response.status(), response.header("retry-after"));
        // The status counts, however the body ends.
        let _body = response.read_into(&mut Vec::new(), ANSWER_BYTES).await;
        Ok::<_, Failure>((status, retry_after))
    };
    match deadline::within(timeout_ms, exchange).await {
        Some(Ok((status, retry_after))) => notification::report_of(status, retry_after.as_deref(), now()),
        Some(Err(failure)) => notification::broken(failure.message, &secrets),
        None => NotificationReport::failed(format!("the target did not answer within {timeout_ms} ms")),
    }
}
