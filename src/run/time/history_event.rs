//! Events of a run's history, whichever row stores them: one shape for `/events`, the live stream and notifications.

use serde_json::{Map, Value, json};

use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::run::decision::Write;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEvent, RunEventKind};
use crate::run::time::row_events::RowEvent;
use crate::run::time::timeout_record::FinalAction;
use crate::run::token::TokenId;

/// One event, with everything that its readers see besides number, time and kind in `fields`.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEvent {
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    pub fields: Map<String, Value>,
    /// A timeout record is stored with it.
    pub has_record: bool,
}

/// The row that an event is stored on.
#[derive(Clone, Debug, PartialEq)]
pub enum EventSubject<'a> {
    Run,
    Token {
        id: TokenId,
        node_id: Option<&'a str>,
    },
    Gate {
        id: &'a str,
        node_id: Option<&'a str>,
        token_id: Option<&'a str>,
    },
    Instance(u64),
}

/// Kinds whose cause older builds saved as `by`, which now is the name of a caller.
const CAUSED: [RunEventKind; 4] = [
    RunEventKind::RunPaused,
    RunEventKind::RunResumed,
    RunEventKind::RunTimedOut,
    RunEventKind::RunFailed,
];

impl HistoryEvent {
    /// An event that is a row of its own.
    pub fn of_log(event: &RunEvent) -> HistoryEvent {
        let mut fields = event.fields.clone();
        if CAUSED.contains(&event.kind)
            && !fields.contains_key("cause")
            && let Some(cause) = fields.remove("by")
        {
            fields.insert("cause".into(), cause);
        }
        if let Some(policy) = fields.get_mut("policy_applied") {
            // Earlier builds saved the final action of the record.
            if let Ok(action) = serde_json::from_value::<FinalAction>(policy.clone()) {
                *policy = json!(action.policy());
            }
        }
        HistoryEvent {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            fields,
            has_record: event.record.is_some(),
        }
    }

    /// An event on the row of its subject.
    pub fn of_row(event: &RowEvent, subject: &EventSubject) -> HistoryEvent {
        let mut fields = Map::new();
        let node_id = match subject {
            EventSubject::Run => None,
            EventSubject::Token { id, node_id } => {
                fields.insert("token_id".into(), json!(id.to_string()));
                *node_id
            }
            EventSubject::Gate {
                id,
                node_id,
                token_id,
            } => {
                fields.insert("gate_id".into(), json!(id));
                fields.extend(token_id.map(|token_id| ("token_id".into(), json!(token_id))));
                *node_id
            }
            EventSubject::Instance(number) => {
                fields.insert("instance".into(), json!(number));
                None
            }
        };
        if let Some(node_id) = node_id {
            // The mark of a compensation or an end handler is no part of the id.
            let (shown, role) = node_id.split_once('~').unwrap_or((node_id, ""));
            fields.insert("node_id".into(), json!(shown));
            if role == "compensate" {
                fields.insert("compensation".into(), json!(true));
            }
        }
        if event.kind == RunEventKind::TokenDispatched {
            // The row has the number of later attempts only.
            fields.insert("epoch".into(), json!(1));
        }
        let own = event.fields.iter().flat_map(|fields| fields.iter());
        fields.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        HistoryEvent {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            fields,
            has_record: false,
        }
    }
}

impl Run {
    /// The number of the last event of the history.
    pub fn last_event_seq(&self) -> u64 {
        self.event_log.last_seq()
    }

    /// The events after number `after` that `writes` save, in the order of their numbers. `self` is in the state after the decision.
    pub fn new_events(&self, writes: &[Write], after: u64) -> Vec<HistoryEvent> {
        let mut events = Vec::new();
        let mut add = |on_row: &[RowEvent], subject: EventSubject| {
            let new = on_row.iter().rev().take_while(|event| event.seq > after);
            events.extend(new.map(|event| HistoryEvent::of_row(event, &subject)));
        };
        for write in writes {
            match write {
                Write::SaveRun(header) => add(&header.events, EventSubject::Run),
                Write::SaveToken(token) => {
                    let node = &self.snapshot_of(token.id).workflow.nodes[token.node];
                    let node_id = Some(node.id.as_str());
                    add(
                        &token.events,
                        EventSubject::Token {
                            id: token.id,
                            node_id,
                        },
                    );
                }
                Write::SaveInstance(instance) => add(&instance.events, EventSubject::Instance(instance.id.0)),
                Write::SaveGate(gate) => {
                    let subject = EventSubject::Gate {
                        id: &gate.id,
                        node_id: gate.node_id.as_deref(),
                        token_id: gate.token_id.as_deref(),
                    };
                    add(&gate.events, subject);
                }
                Write::SaveEvent(_)
                | Write::SaveSnapshot(_)
                | Write::SaveInput(_)
                | Write::SaveContext { .. }
                | Write::DeleteContext { .. }
                | Write::SaveSignals { .. }
                | Write::SaveMessage { .. }
                | Write::DeleteMessage { .. }
                | Write::SaveNotification(_)
                | Write::DeleteNotification { .. }
                | Write::DeleteFailedWakes => {}
            }
        }
        let of_log = writes
            .iter()
            .filter_map(Write::event)
            .filter(|event| event.seq > after);
        events.extend(of_log.map(HistoryEvent::of_log));
        sort_by_key(&mut events, |event| event.seq);
        events
    }
}
