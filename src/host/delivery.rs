//! Messages of the outbox: the request that each becomes, and the events that its result leads to.

use std::rc::Rc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::base::trace::TraceParent;
use crate::host::object::Host;
use crate::host::platform::{Error, Platform, Result};
use crate::host::subrequests::SubrequestBudget;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::start::{EventRef, StartRun};
use crate::run::{
    DecisionBatch, Event, Header, Message, ParentSender, StartRefusal, StartRequest, TokenId, token_of_key,
};

/// A message of the outbox on its way.
#[derive(Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub kind: DeliveryKind,
    pub payload: Payload,
}

/// A message, as the run that is in memory numbers it. A run that is loaded again may give the number of a message that has
/// arrived to another, while a repeated delivery of the first is still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryId {
    message: u64,
    /// How often the run had been loaded.
    load: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    StartOfChild,
    ToChild,
    ToParent,
    Event,
}

#[derive(Clone)]
pub enum Payload {
    Request {
        run_id: String,
        request: Box<RunRequest>,
    },
    Event(EmittedEvent),
}

/// An event that starts every workflow it triggers.
#[derive(Clone, Debug)]
pub struct EmittedEvent {
    pub name: String,
    pub key: String,
    pub payload: Value,
    pub hops: u32,
    /// The workflows up to this one were started before.
    pub after: Option<String>,
    pub root: Option<EventRef>,
    /// The name that the runs it starts are given.
    pub started_by: Option<String>,
    /// The trace context that the runs it starts continue.
    pub traceparent: Option<TraceParent>,
}

/// What came of a delivery.
pub enum DeliveryResult {
    Response(RunResponse),
    Published(Published),
    /// Nothing is known: the message is sent again.
    Failed(String),
}

/// How far the starts of an event came.
pub struct Published {
    /// `Some`: the invocation's budget was used up after this workflow. The next invocation continues.
    pub unfinished_after: Option<Option<String>>,
    /// Workflows that the event was not allowed to start.
    pub refused: Vec<String>,
}

impl<P: Platform> Host<P> {
    pub(super) fn deliver(&self, budget: &SubrequestBudget, id: u64, message: Message) {
        match self.delivery(id, message) {
            Ok(delivery) => self.platform.deliver(budget, delivery),
            // The outbox sends the message again.
            Err(error) => self.report("delivery_failed", &error),
        }
    }

    fn delivery(&self, id: u64, message: Message) -> Result<Delivery> {
        // The receiver compares the sender with the parent in its header.
        let sender = |token_id: Option<String>| ParentSender {
            run_id: self.run_id(),
            token_id,
        };
        let (kind, payload) = match message {
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
                let stored = self.child_snapshot(&node_id)?;
                let token = TokenId::parse(&token_id);
                let command = self.with_run(|run| StartRun {
                    callback_secret: run.header.callback_secret_of(&run_id),
                    run_id: run_id.clone(),
                    stored,
                    input,
                    request: StartRequest {
                        version: None,
                        timeout_ms,
                        budget_ms,
                        node_decides,
                    },
                    parent: Some(run.header.link_to_child(token_id, epoch)),
                    triggered_by: None,
                    started_by: run.header.started_by.clone(),
                    traceparent: token.and_then(|token| self.context_after(&run.header, token)),
                })?;
                let wait_ms = None;
                let request = RunRequest::Start { command, wait_ms };
                (
                    DeliveryKind::StartOfChild,
                    Payload::Request {
                        run_id,
                        request: Box::new(request),
                    },
                )
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
                (
                    DeliveryKind::ToChild,
                    Payload::Request {
                        run_id,
                        request: Box::new(request),
                    },
                )
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
                (
                    DeliveryKind::ToChild,
                    Payload::Request {
                        run_id,
                        request: Box::new(request),
                    },
                )
            }
            Message::TellParent { run_id, news } => {
                let request = RunRequest::ChildStatusUpdate(news);
                (
                    DeliveryKind::ToParent,
                    Payload::Request {
                        run_id,
                        request: Box::new(request),
                    },
                )
            }
            Message::NotifyParent { run_id, report } => {
                let request = RunRequest::ChildEnded(report);
                (
                    DeliveryKind::ToParent,
                    Payload::Request {
                        run_id,
                        request: Box::new(request),
                    },
                )
            }
            Message::Emit {
                key,
                name,
                payload,
                hops,
                after,
                root,
            } => {
                let token = token_of_key(&key);
                let traceparent =
                    self.with_run(|run| token.and_then(|token| self.context_after(&run.header, token)))?;
                let event = EmittedEvent {
                    traceparent,
                    name,
                    key,
                    payload,
                    hops,
                    after,
                    root,
                    started_by: self.with_run(|run| run.header.started_by.clone())?,
                };
                (DeliveryKind::Event, Payload::Event(event))
            }
        };
        let id = DeliveryId {
            message: id,
            load: self.loads.get(),
        };
        Ok(Delivery { id, kind, payload })
    }

    /// The trace context of what a token starts.
    fn context_after(&self, header: &Header, token: TokenId) -> Option<TraceParent> {
        let context = self.context_of(header, || header.spans().token(token.0));
        context.map(|context| context.traceparent)
    }

    /// The snapshot of the workflow that a node calls, as text: written once for all children that start together.
    fn child_snapshot(&self, node_id: &str) -> Result<Rc<RawValue>> {
        let mut known = self.child_snapshots.borrow_mut();
        known.retain(|(_, text)| text.strong_count() > 0);
        let found = known.iter().find(|(node, _)| node == node_id);
        if let Some(text) = found.and_then(|(_, text)| text.upgrade()) {
            return Ok(text);
        }
        let text = self.with_run(|run| {
            let node = run.snapshot().workflow.node_index(node_id)?;
            let child = run.snapshot().stored.child(node)?;
            Some(Rc::<RawValue>::from(to_raw_value(&child).ok()?))
        })?;
        let text = text.ok_or_else(|| Error("the called workflow is not in the snapshot".into()))?;
        known.push((node_id.to_string(), Rc::downgrade(&text)));
        Ok(text)
    }

    /// The result of a delivery. One commit: a refused start is recorded if and only if its message leaves the outbox. A result
    /// from before the run was loaded again counts for nothing: the loaded run sends every message that is left.
    pub fn delivery_ended(
        &self,
        budget: &SubrequestBudget,
        id: DeliveryId,
        kind: DeliveryKind,
        result: DeliveryResult,
    ) {
        if id.load != self.loads.get() {
            return;
        }
        let id = id.message;
        let events = match events_of(id, kind, result) {
            Ok(events) => events,
            Err(error) => {
                self.report("delivery_failed", &error);
                vec![Event::DeliveryFailed { id, is_gone: false }]
            }
        };
        if let Err(error) = self.feed_all(budget, events) {
            self.report("feed_failed", &error);
        }
    }

    fn feed_all(&self, budget: &SubrequestBudget, events: Vec<Event>) -> Result<()> {
        let mut batch = DecisionBatch::default();
        for event in events {
            // A rejection means that the message left the outbox before.
            let _accepted = self.feed_into(&mut batch, budget, event)?;
        }
        self.carry_out_batch(batch, budget)
    }
}

fn events_of(id: u64, kind: DeliveryKind, result: DeliveryResult) -> Result<Vec<Event>> {
    let response = match result {
        DeliveryResult::Response(response) => response,
        DeliveryResult::Failed(message) => return Err(Error(message)),
        DeliveryResult::Published(published) => {
            let workflows = published.refused;
            let refused = (!workflows.is_empty()).then_some(Event::StartsRefused { id, workflows });
            let delivered = match published.unfinished_after {
                Some(after) => Event::DeliveryUnfinished { id, after },
                None => Event::Delivered { id },
            };
            return Ok(refused.into_iter().chain([delivered]).collect());
        }
    };
    let refused = |refusal| vec![Event::ChildRefused { id, refusal }];
    Ok(match (response, kind) {
        (RunResponse::Conflict(_), DeliveryKind::StartOfChild) => refused(StartRefusal::IdTaken),
        (RunResponse::TooLarge(_), DeliveryKind::StartOfChild) => refused(StartRefusal::TooLarge),
        // After a conflict there is nothing left to do either: the message arrived.
        (RunResponse::Created(_) | RunResponse::Done(_) | RunResponse::Conflict(_), _) => {
            vec![Event::Delivered { id }]
        }
        // A parent that is gone needs no messages.
        (RunResponse::NotFound(_), DeliveryKind::ToParent) => vec![Event::Delivered { id }],
        (RunResponse::NotFound(_), _) => vec![Event::DeliveryFailed { id, is_gone: true }],
        // Not the body, which may quote an input.
        (response @ (RunResponse::TooLarge(_) | RunResponse::Refused { .. }), _) => {
            let (status, _) = response.into_parts();
            return Err(Error(format!("the message was answered with status {status}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: DeliveryKind, status: u16, expected: &str) {
        let response = RunResponse::from_parts(status, "{}".into());
        let events = events_of(7, kind, DeliveryResult::Response(response));
        assert_eq!(format!("{events:?}"), expected, "{kind:?} {status}");
    }

    #[test]
    fn what_a_response_means_depends_on_the_message() {
        let delivered = "Ok([Delivered { id: 7 }])";
        let gone = "Ok([DeliveryFailed { id: 7, is_gone: true }])";
        for kind in [
            DeliveryKind::StartOfChild,
            DeliveryKind::ToChild,
            DeliveryKind::ToParent,
        ] {
            check(kind, 200, delivered);
            check(
                kind,
                500,
                "Err(Error(\"the message was answered with status 500\"))",
            );
        }
        check(DeliveryKind::StartOfChild, 201, delivered);
        check(
            DeliveryKind::StartOfChild,
            409,
            "Ok([ChildRefused { id: 7, refusal: IdTaken }])",
        );
        check(
            DeliveryKind::StartOfChild,
            413,
            "Ok([ChildRefused { id: 7, refusal: TooLarge }])",
        );
        check(DeliveryKind::ToChild, 409, delivered);
        check(DeliveryKind::ToChild, 404, gone);
        check(DeliveryKind::ToParent, 404, delivered);
        check(
            DeliveryKind::ToChild,
            413,
            "Err(Error(\"the message was answered with status 413\"))",
        );
    }

    #[test]
    fn an_event_that_could_not_start_everything_continues_later() {
        let published = |after, refused: &[&str]| {
            let result = DeliveryResult::Published(Published {
                unfinished_after: after,
                refused: refused.iter().map(|id| id.to_string()).collect(),
            });
            format!("{:?}", events_of(7, DeliveryKind::Event, result))
        };
        assert_eq!(published(None, &[]), "Ok([Delivered { id: 7 }])");
        assert_eq!(
            published(Some(Some("b".into())), &["a"]),
            "Ok([StartsRefused { id: 7, workflows: [\"a\"] }, DeliveryUnfinished { id: 7, after: Some(\"b\") }])"
        );
    }
}
