//! What leaves the object for other objects and for the index.

use std::rc::Rc;

use serde_json::{Value, json};
use worker::{Error, QueueContentType, RawMessageBuilder, Result};

use super::consume::Ring;
use super::object::{Object, report};
use super::turn::Turn;
use crate::api::raise::{self, Occurrence};
use crate::api::start::Command;
use crate::engine::{Event, Message, ParentLink, StartRequest, TokenId};
use crate::platform::{self, call, deadline};
use crate::watch::standing::Standing;

/// How long another run's object may take to answer.
const DELIVERY_MS: u64 = 8_000;

/// How long the starts of one page may take, which is shorter than the patience with a message.
const RAISE_MS: u64 = 9_000;

/// What came of a message that was answered.
enum Delivery {
    Done,
    /// There is no such run.
    Gone,
    /// The invocation has no room for the rest.
    Unfinished {
        after: Option<String>,
    },
}

impl Object {
    /// Sends a message of the outbox; how it went comes back as an event.
    pub(super) fn deliver(self: &Rc<Self>, turn: &Turn, id: u64, message: Message) {
        let object = Rc::clone(self);
        let turn = turn.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let event = match object.send_message(&turn, message).await {
                Ok(Delivery::Done) => Event::Delivered { id },
                Ok(Delivery::Gone) => Event::DeliveryFailed { id, is_gone: true },
                Ok(Delivery::Unfinished { after }) => Event::DeliveryUnfinished { id, after },
                Err(message) => {
                    report("delivery_failed", &message);
                    Event::DeliveryFailed { id, is_gone: false }
                }
            };
            if let Err(error) = object.feed(&turn, event) {
                report("feed_failed", &error.to_string());
            }
        });
    }

    /// Starts what an event triggers, as much as this invocation has room for.
    async fn raise(
        &self,
        turn: &Turn,
        event: &Occurrence<'_>,
        after: Option<String>,
    ) -> std::result::Result<Delivery, String> {
        let behind = after.as_deref().unwrap_or_default();
        let starts = raise::page(&self.env, event, behind, |wanted| turn.take(wanted));
        let page = deadline::within(RAISE_MS, starts).await;
        let page = page.ok_or("the workflows of an event were not started in time")??;
        Ok(match page.is_last {
            true => Delivery::Done,
            false => Delivery::Unfinished {
                after: page.after.or(after),
            },
        })
    }

    async fn send_message(&self, turn: &Turn, message: Message) -> std::result::Result<Delivery, String> {
        let wrong = |error: Error| error.to_string();
        let (run_id, path, body, gone) = match message {
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
                let command = self.with_run(|run| {
                    let node = run.snapshot().workflow.node_index(&node_id)?;
                    Some(Command {
                        run_id: run_id.clone(),
                        stored: Rc::new(run.snapshot().stored.child(node)?),
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
                        }),
                        triggered_by: None,
                    })
                });
                let command = command
                    .map_err(wrong)?
                    .ok_or("the called workflow is not in the snapshot")?;
                let body = serde_json::to_string(&command).map_err(|error| error.to_string())?;
                (run_id, "/start", body, Delivery::Gone)
            }
            Message::CancelChild { run_id, reason } => (
                run_id,
                "/cancel",
                json!({"reason": reason}).to_string(),
                Delivery::Gone,
            ),
            Message::HoldChild {
                run_id,
                number,
                held,
                budget_ms,
            } => (
                run_id,
                "/hold",
                json!({"number": number, "held": held, "budget_ms": budget_ms}).to_string(),
                Delivery::Gone,
            ),
            Message::TellParent { run_id, news } => {
                let body = serde_json::to_string(&news).map_err(|error| error.to_string())?;
                (run_id, "/child-news", body, Delivery::Done)
            }
            Message::NotifyParent { run_id, report } => {
                let body = serde_json::to_string(&report).map_err(|error| error.to_string())?;
                // A parent that is gone needs no news.
                (run_id, "/child", body, Delivery::Done)
            }
            Message::Emit {
                key,
                name,
                payload,
                hops,
                after,
            } => {
                let event = Occurrence {
                    name: &name,
                    key: &key,
                    payload: &payload,
                    hops,
                };
                return self.raise(turn, &event, after).await;
            }
        };
        let namespace = self.env.durable_object("RUNS").map_err(wrong)?;
        let stub: call::Peer = namespace.get_by_name(&run_id).map_err(wrong)?.into_rpc();
        let url = format!("http://run{path}");
        let answer = deadline::within(DELIVERY_MS, call::send(&stub, call::Call::post(&url, &body))).await;
        match answer.ok_or("no answer in time")??.status() {
            // A conflict is an answer, too: it was heard, and there was nothing left to do.
            200 | 201 | 409 => Ok(Delivery::Done),
            404 => Ok(gone),
            status => Err(format!("{path} answered with status {status}")),
        }
    }

    /// Tells the index how the run stands. A word that could not be sent is said again with the next event; one that was
    /// lost on its way costs a stale list, never a run, until the sweep asks.
    pub(super) fn announce(self: &Rc<Self>) -> Result<()> {
        let standing = self.with_run(|run| Standing::of(run, platform::now()))?;
        self.put_into("INDEX_QUEUE", json!(standing), |object| {
            object.unannounced.set(true)
        });
        Ok(())
    }

    pub(super) fn tell_index(self: &Rc<Self>, message: Value) {
        self.put_into("INDEX_QUEUE", message, |_| {});
    }

    /// A message lost here is rung for again: the token stands in the table.
    pub(super) fn ring(self: &Rc<Self>, token: TokenId, epoch: u64) {
        let ring = Ring {
            run_id: self.run_id(),
            token_id: token.to_string(),
            epoch,
        };
        self.put_into("TASK_QUEUE", json!(ring), |_| {});
    }

    fn put_into(self: &Rc<Self>, queue: &'static str, message: Value, refused: fn(&Object)) {
        let Ok(queue) = self.env.queue(queue) else {
            return report("queue_missing", queue);
        };
        // As text: the platform's own serialisation would make maps of the objects, and lose them.
        let message = RawMessageBuilder::new(message.to_string().into());
        let object = Rc::clone(self);
        wasm_bindgen_futures::spawn_local(async move {
            let sent = queue
                .send_raw(message.build_with_content_type(QueueContentType::Text))
                .await;
            if let Err(error) = sent {
                report("queue_failed", &error.to_string());
                refused(&object);
            }
        });
    }
}
