//! Sends messages of the outbox to other run objects, and events to the workflows that they trigger.

use worker::Env;

use crate::host::{DeliveryResult, EmittedEvent, Payload, Published, SubrequestBudget};
use crate::worker::api::publish_event::{self, Occurrence};
use crate::worker::platform::deadline;
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
