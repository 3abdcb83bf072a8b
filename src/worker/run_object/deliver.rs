//! Sends messages of the outbox to other run objects, and events to the workflows that they trigger.

use worker::Env;

use crate::base::from_json::from_json;
use crate::base::text::to_json;
use crate::host::{DeliveryResult, EmittedEvent, Payload, Published, SubrequestBudget};
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::worker::api::publish_event::{self, Occurrence};
use crate::worker::platform::deadline;
use crate::worker::platform::http_client::{Peer, Request};
use crate::worker::run_client::RunClient;

/// How long another run's object may take to respond.
const DELIVERY_MS: u64 = 8_000;

/// How long the starts of one page may take. Less than the engine waits for the result of a delivery.
const PUBLISH_MS: u64 = 9_000;

pub async fn send(env: &Env, budget: &SubrequestBudget, payload: Payload) -> DeliveryResult {
    match payload {
        Payload::Request { run_id, request } => {
            match RunClient::new(env, &run_id, DELIVERY_MS).send(&request).await {
                Ok(response) => DeliveryResult::Response(response),
                Err(error) => DeliveryResult::Failed(error.into()),
            }
        }
        Payload::Event(event) => match publish(env, budget, event).await {
            Ok(published) => DeliveryResult::Published(published),
            Err(message) => DeliveryResult::Failed(message),
        },
    }
}

/// How much longer than the target an executor may take. Less than the engine waits for the answer.
const EXECUTOR_MS: u64 = 5_000;

/// `executor_client.mjs` has the same path.
const NOTIFY_URL: &str = "http://executor/notify";

/// Lets an executor post a notification.
pub async fn notify(executor: Option<&Peer>, order: &NotificationOrder) -> NotificationReport {
    let Some(executor) = executor else {
        return NotificationReport::failed(
            "no executor is bound; add the binding EXECUTOR to the wrangler file",
        );
    };
    let answered = async {
        let text = to_json(order).map_err(|error| error.to_string())?;
        let response = Request::post(NOTIFY_URL, &text).send(executor).await?;
        let status = response.status();
        let body = response.text().await?;
        match status {
            200 => {
                from_json(&body).map_err(|_| "the executor sent no report of the notification".to_string())
            }
            status => Err(format!("the executor answered with status {status}")),
        }
    };
    let within_ms = order.timeout_ms + EXECUTOR_MS;
    match deadline::within(within_ms, answered).await {
        Some(Ok(report)) => report,
        Some(Err(message)) => NotificationReport::failed(message),
        None => NotificationReport::failed("the executor did not answer in time"),
    }
}

/// Starts what an event triggers, as much of it as the invocation may.
async fn publish(env: &Env, budget: &SubrequestBudget, event: EmittedEvent) -> Result<Published, String> {
    let occurrence = Occurrence {
        name: &event.name,
        key: &event.key,
        payload: &event.payload,
        hops: event.hops,
        root: event.root.as_ref(),
        started_by: event.started_by.as_deref(),
        traceparent: event.traceparent,
    };
    let after = event.after.as_deref().unwrap_or_default();
    let starts = publish_event::start_page(env, &occurrence, after, |wanted| budget.take(wanted));
    let page = deadline::within(PUBLISH_MS, starts).await;
    let page = page.ok_or("the workflows of an event were not started in time")??;
    let refused = page.starts.iter().filter(|start| start.is_over_limit());
    Ok(Published {
        refused: refused.map(|start| start.workflow_id.clone()).collect(),
        unfinished_after: match page.is_last {
            true => None,
            false => Some(page.after.or(event.after)),
        },
    })
}
