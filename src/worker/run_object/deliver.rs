//! What leaves the object for other objects.

use std::rc::Rc;

use serde_json::value::{RawValue, to_raw_value};
use worker::Error;

use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::start::StartRun;
use crate::run::{DecisionBatch, Event, Message, ParentLink, ParentSender, StartRefusal, StartRequest};
use crate::worker::api::publish_event::{self, Occurrence};
use crate::worker::platform::deadline;
use crate::worker::run_client::RunClient;
use crate::worker::run_object::object::{Object, report};
use crate::worker::run_object::subrequests::Turn;

/// How long another run's object may take to answer.
const DELIVERY_MS: u64 = 8_000;

/// How long the starts of one page may take, which is shorter than the patience with a message.
const RAISE_MS: u64 = 9_000;

/// What came of a message that was answered.
enum Delivery {
    Done,
    /// There is no such run.
    Gone,
    /// A child that cannot be started.
    Refused(StartRefusal),
    Raised(Raised),
}

/// What came of an event.
struct Raised {
    /// Where the next invocation goes on, if this one had no room for all.
    rest: Option<Rest>,
    /// Workflows that it was not allowed to start.
    refused: Vec<String>,
}

struct Rest {
    after: Option<String>,
}

impl Raised {
    fn events(self, id: u64) -> Vec<Event> {
        let workflows = self.refused;
        let refused = (!workflows.is_empty()).then_some(Event::StartsRefused { id, workflows });
        let delivered = match self.rest {
            Some(Rest { after }) => Event::DeliveryUnfinished { id, after },
            None => Event::Delivered { id },
        };
        refused.into_iter().chain([delivered]).collect()
    }
}

impl Object {
    /// Sends a message of the outbox; how it went comes back as an event.
    pub(in crate::worker) fn deliver(self: &Rc<Self>, turn: &Turn, id: u64, message: Message) {
        let object = Rc::clone(self);
        let turn = turn.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let events = match object.send_message(&turn, message).await {
                Ok(Delivery::Done) => vec![Event::Delivered { id }],
                Ok(Delivery::Refused(refusal)) => vec![Event::ChildRefused { id, refusal }],
                Ok(Delivery::Gone) => vec![Event::DeliveryFailed { id, is_gone: true }],
                Ok(Delivery::Raised(raised)) => raised.events(id),
                Err(message) => {
                    report("delivery_failed", &message);
                    vec![Event::DeliveryFailed { id, is_gone: false }]
                }
            };
            if let Err(error) = object.feed_all(&turn, events) {
                report("feed_failed", &error.to_string());
            }
        });
    }

    /// One commit: what was refused is noted if and only if the message is done with.
    fn feed_all(self: &Rc<Self>, turn: &Turn, events: Vec<Event>) -> worker::Result<()> {
        let mut decided = DecisionBatch::default();
        for event in events {
            self.feed_into(&mut decided, turn, event)?.ok();
        }
        self.carry_out_all(decided, turn)
    }

    /// Starts what an event triggers, as much as this invocation has room for.
    async fn raise(
        &self,
        turn: &Turn,
        event: &Occurrence<'_>,
        after: Option<String>,
    ) -> std::result::Result<Delivery, String> {
        let behind = after.as_deref().unwrap_or_default();
        let starts = publish_event::start_page(&self.env, event, behind, |wanted| turn.take(wanted));
        let page = deadline::within(RAISE_MS, starts).await;
        let page = page.ok_or("the workflows of an event were not started in time")??;
        let refused = page.starts.iter().filter(|start| start.is_over_limit());
        let refused = refused.map(|start| start.workflow_id.clone()).collect();
        let rest = match page.is_last {
            true => None,
            false => Some(Rest {
                after: page.after.or(after),
            }),
        };
        Ok(Delivery::Raised(Raised { rest, refused }))
    }

    /// The snapshot of the workflow that a node calls, as text: written once for all its children that start together.
    fn child_snapshot(&self, node_id: &str) -> worker::Result<Option<Rc<RawValue>>> {
        let mut known = self.child_snapshots.borrow_mut();
        known.retain(|(_, text)| text.strong_count() > 0);
        let found = known.iter().find(|(node, _)| node == node_id);
        if let Some(text) = found.and_then(|(_, text)| text.upgrade()) {
            return Ok(Some(text));
        }
        let text = self.with_run(|run| {
            let node = run.snapshot().workflow.node_index(node_id)?;
            let child = run.snapshot().stored.child(node)?;
            Some(Rc::<RawValue>::from(to_raw_value(&child).ok()?))
        })?;
        known.extend(text.iter().map(|text| (node_id.to_string(), Rc::downgrade(text))));
        Ok(text)
    }

    async fn send_message(&self, turn: &Turn, message: Message) -> std::result::Result<Delivery, String> {
        let wrong = |error: Error| error.to_string();
        // The receiver compares the sender with the parent in its header.
        let sender = |token_id: Option<String>| ParentSender {
            run_id: self.run_id(),
            token_id,
        };
        let is_start = matches!(message, Message::StartChild { .. });
        let (run_id, request, gone) = match message {
            Message::StartChild {
                run_id,
                node_id,
                token_id,
                epoch,
                input,
                timeout_ms,
                budget_ms,
                node_decides,
            } => {
                let stored = self.child_snapshot(&node_id).map_err(wrong)?;
                let stored = stored.ok_or("the called workflow is not in the snapshot")?;
                let command = self.with_run(|run| StartRun {
                    run_id: run_id.clone(),
                    stored,
                    input,
                    request: StartRequest {
                        version: None,
                        timeout_ms,
                        budget_ms,
                        node_decides,
                    },
                    parent: Some(ParentLink {
                        run_id: run.header.id.clone(),
                        token_id,
                        epoch,
                        root_run_id: run.header.root_run_id.clone(),
                        depth: run.header.depth + 1,
                        hops: run.header.hops,
                        root_event: run.header.root_event.clone(),
                    }),
                    triggered_by: None,
                });
                let command = command.map_err(wrong)?;
                let request = RunRequest::Start {
                    command,
                    wait_ms: None,
                };
                (run_id, request, Delivery::Gone)
            }
            Message::CancelChild {
                run_id,
                reason,
                token_id,
            } => {
                let request = RunRequest::CancelChild {
                    sender: sender(token_id),
                    reason: Some(reason),
                };
                (run_id, request, Delivery::Gone)
            }
            Message::HoldChild {
                run_id,
                number,
                held,
                budget_ms,
                token_id,
            } => {
                let request = RunRequest::HoldChild {
                    sender: sender(token_id),
                    number,
                    held,
                    budget_ms,
                };
                (run_id, request, Delivery::Gone)
            }
            // A parent that is gone needs no messages.
            Message::TellParent { run_id, news } => (run_id, RunRequest::ChildNews(news), Delivery::Done),
            Message::NotifyParent { run_id, report } => {
                (run_id, RunRequest::ChildEnded(report), Delivery::Done)
            }
            Message::Emit {
                key,
                name,
                payload,
                hops,
                after,
                root,
            } => {
                let event = Occurrence {
                    root: root.as_ref(),
                    name: &name,
                    key: &key,
                    payload: &payload,
                    hops,
                };
                return self.raise(turn, &event, after).await;
            }
        };
        let client = RunClient::new(&self.env, &run_id, DELIVERY_MS);
        match client.send(&request).await? {
            RunResponse::Conflict(_) if is_start => Ok(Delivery::Refused(StartRefusal::IdTaken)),
            RunResponse::TooLarge(_) if is_start => Ok(Delivery::Refused(StartRefusal::TooLarge)),
            // A conflict is an answer, too: the message arrived and there was nothing left to do.
            RunResponse::Created(_) | RunResponse::Done(_) | RunResponse::Conflict(_) => Ok(Delivery::Done),
            RunResponse::NotFound(_) => Ok(gone),
            // Without the body: it may quote an input.
            RunResponse::TooLarge(_) => Err("the message was answered with status 413".into()),
            RunResponse::Refused { status, .. } => {
                Err(format!("the message was answered with status {status}"))
            }
        }
    }
}
