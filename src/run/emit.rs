//! Events emitted by a task: outbox messages, posted in the commit that completes its token. The host finds the workflows
//! they trigger. Each message has a unique key, so that a repeated delivery starts nothing twice.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{EVENT_HOPS, EVENTS_PER_ATTEMPT_BYTES, RUNS_PER_EVENT, TooLarge};
use crate::base::text::json_bytes;
use crate::protocol::task::Emitted;
use crate::run::message::Message;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::TokenId;

/// The error code of a start refused by the limit of runs per event, and the name of that limit.
pub const EVENT_LIMIT: &str = "event_limit";

/// The token that emitted an event with this key.
pub fn token_of_key(key: &str) -> Option<TokenId> {
    let (_, token) = key.rsplit_once('/')?.0.rsplit_once('/')?;
    TokenId::parse(token)
}

impl Run {
    /// Checks that the events may be emitted: their size, and the length of the event chain.
    pub(in crate::run) fn check_events(&self, events: &[Emitted]) -> Result<(), Failure> {
        let bytes = events.iter().map(|event| json_bytes(&event.payload)).sum();
        TooLarge::check("what the task's events carry", bytes, EVENTS_PER_ATTEMPT_BYTES)?;
        self.check_hops(events)
    }

    /// Bounds the chain of workflows that start each other by events.
    fn check_hops(&self, events: &[Emitted]) -> Result<(), Failure> {
        match events.first() {
            Some(event) if self.header.hops >= EVENT_HOPS => Err(Failure::new(
                "event_loop",
                FailureClass::Permanent,
                format!(
                    "event {} was not emitted: {EVENT_HOPS} events have led to this run, each emitted by a run that the \
                     one before it started; look for workflows that trigger each other, or let one of them wait for a signal",
                    event.name
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// A token completes once, so its id and the event's index identify the emission within the run. The start time
    /// distinguishes it from an earlier run with the same id.
    pub(in crate::run) fn post_events(&mut self, id: TokenId, events: Vec<Emitted>) {
        let hops = self.header.hops + 1;
        for (index, event) in events.into_iter().enumerate() {
            self.post(Message::Emit {
                key: format!("{}/{}/{id}/{index}", self.header.id, self.header.started_at),
                name: event.name,
                payload: event.payload,
                hops,
                after: None,
                root: self.header.root_event.clone(),
            });
        }
    }

    /// Logs that one of the run's events did not start every workflow it triggers.
    pub(in crate::run) fn starts_refused(&mut self, id: u64, workflows: &[String]) {
        // The event has been delivered in the meantime.
        let Some(Message::Emit { key, name, root, .. }) = self.outbox.get(id) else {
            return;
        };
        let fields = json!({
            "limit": EVENT_LIMIT, "most": RUNS_PER_EVENT, "event_name": name, "event_key": key, "root_event": root,
            "workflow_ids": workflows,
        });
        self.note(RunEventKind::LimitExceeded, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_emitted_event_names_its_token() {
        assert_eq!(token_of_key("run-1~t3/1700000000000/t12/0"), Some(TokenId(12)));
        for other in ["", "order-7", "t12", "a/t1", "t1/0/", "a/b/t01/0"] {
            assert_eq!(token_of_key(other), None, "{other}");
        }
    }
}
