//! Driver steps for scenarios of time: extensions, retries, messages between a run and its children, and access to the
//! events and records of a run.

use crate::run::plans::Plans;
use curfew::api::recovery;
use curfew::base::time::Millis;
use curfew::run::{
    AttemptOrder, ChildStatusUpdate, Command, Event, Extension, Instance, Message, ParentSender, Past,
    RetryMode, RunEvent, TimeoutRecord, Token, TokenId,
};
use curfew::storage::commit::EVENT;
use curfew::storage::restore;
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, child_of, parse_attempt, start_among};
use super::render::wire_name;

impl Driver {
    pub fn extend(&mut self, by_ms: u64) -> &mut Driver {
        self.feed(Event::ExtendRequested {
            extension: Extension::By(by_ms),
            by: self.caller.clone(),
            operation: None,
        })
    }

    /// As a bulk operation.
    pub fn extend_for(&mut self, operation: &str, by_ms: u64) -> &mut Driver {
        self.feed(Event::ExtendRequested {
            extension: Extension::By(by_ms),
            by: self.caller.clone(),
            operation: Some(operation.into()),
        })
    }

    pub fn extend_until(&mut self, moment: Millis) -> &mut Driver {
        self.feed(Event::ExtendRequested {
            extension: Extension::Until(moment),
            by: self.caller.clone(),
            operation: None,
        })
    }

    /// Ada extends the run at its gate.
    pub fn grant(&mut self, gate: &str, by_ms: u64) -> &mut Driver {
        self.decide_with(gate, "extend", json!({"by_ms": by_ms}))
    }

    pub fn retry(&mut self, mode: RetryMode) -> &mut Driver {
        let retry = self.store.retry(&self.run, self.caller.as_deref(), mode, None);
        self.feed(retry)
    }

    pub fn retry_token(&mut self, mode: RetryMode, token: &str) -> &mut Driver {
        let retry = self
            .store
            .retry(&self.run, self.caller.as_deref(), mode, TokenId::parse(token));
        self.feed(retry)
    }

    pub fn restart(&mut self) -> &mut Driver {
        self.feed(Event::RestartRequested {
            from: None,
            by: self.caller.clone(),
            version: None,
        })
    }

    /// Message `number` of the parent.
    pub fn parent_holds(&mut self, number: u64, held: bool, budget_ms: Option<u64>) -> &mut Driver {
        self.feed(Event::ParentHolds {
            number,
            held,
            budget_ms,
        })
    }

    /// The child of attempt `t1@1` waits at its gate, or continues.
    pub fn child_news(&mut self, attempt: &str, number: u64, paused: bool) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        self.feed(Event::ChildStatusUpdate(Box::new(ChildStatusUpdate {
            token_id: token.to_string(),
            epoch,
            run_id: child_of(&self.run, token, epoch),
            number,
            paused,
        })))
    }

    /// Starts the child that `parent`'s last decision asks for.
    pub fn child_of(parent: &Driver) -> Driver {
        let start = start_among(&parent.decision, &parent.run).expect("a child is to be started");
        let (run, decision) = start.run(parent.now, SETTINGS);
        let mut child = Driver::of(run, decision, SETTINGS);
        child.now = parent.now;
        child
    }

    /// Delivers the messages of `other`'s last decision to this run.
    pub fn receive_from(&mut self, other: &Driver) -> &mut Driver {
        let messages: Vec<Message> = other
            .decision
            .commands()
            .iter()
            .filter_map(|command| match command {
                Command::DeliverMessage { message, .. } => Some(message.clone()),
                _others => None,
            })
            .collect();
        for message in messages {
            match message {
                Message::HoldChild { .. } | Message::CancelChild { .. } => {
                    let event = asked_by_parent(&other.run.header.id, &message).expect("a parent's message");
                    self.feed(event)
                }
                Message::NotifyParent { report, .. } => self.feed(Event::ChildEnded(Box::new(report))),
                Message::TellParent { news, .. } => self.feed(Event::ChildStatusUpdate(Box::new(news))),
                Message::StartChild { .. } | Message::Emit { .. } => self,
            };
        }
        self
    }

    /// The history of the run, as the host reads it to plan a resume.
    pub fn past(&self) -> Past {
        self.store.past().expect("rows can be read")
    }

    /// The row of a token, live or ended.
    pub fn row(&self, token: &str) -> Token {
        let id = TokenId::parse(token).expect("a token is t1");
        let (status, row) = self.store.tokens.get(&id.0).expect("the token has a row");
        restore::token(id.0, status, row, self.run.snapshot()).expect("rows can be read")
    }

    /// The row of an instance.
    pub fn instance_row(&self, number: u64) -> Instance {
        let instances = self.store.whole_instances(self.run.snapshot());
        let mut instances = instances.expect("rows can be read").into_iter();
        instances.find(|it| it.id.0 == number).expect("it has a row")
    }

    /// The modes of a resume, as the API shows them.
    pub fn resume_view(&self) -> Value {
        let past = self.past();
        let plan = self.run.resume_plan(&past);
        recovery::resume(&self.run, &past, &plan, &self.store.errors())
    }

    pub fn deliverable(&self, timeouts: u64) -> Value {
        let past = self.past().tokens;
        recovery::deliverable(&self.run, &past, &self.store.errors(), timeouts)
            .expect("every ended run has one")
    }

    /// Every event of the run so far, from its rows.
    pub fn events(&self) -> Vec<RunEvent> {
        let mut events: Vec<RunEvent> = self
            .store
            .run
            .iter()
            .filter_map(|(key, row)| {
                let seq = key.strip_prefix(EVENT)?.parse().ok()?;
                let entry: RunEvent = serde_json::from_str(row).expect("events can be read");
                Some(RunEvent { seq, ..entry })
            })
            .collect();
        events.sort_by_key(|entry| entry.seq);
        events
    }

    /// The kinds of all events so far.
    pub fn kinds(&self) -> String {
        let kinds: Vec<String> = self.events().iter().map(|entry| wire_name(&entry.kind)).collect();
        kinds.join(" ")
    }

    /// The moments and deadlines of all warnings so far.
    pub fn warnings(&self) -> Vec<(Millis, Value)> {
        self.events()
            .into_iter()
            .filter(|entry| wire_name(&entry.kind) == "deadline_warning")
            .map(|entry| (entry.at, entry.fields["deadline"].clone()))
            .collect()
    }

    /// The timeout records, oldest first.
    pub fn records(&self) -> Vec<TimeoutRecord> {
        let events = self.events().into_iter();
        events.filter_map(|entry| entry.record.map(|it| *it)).collect()
    }

    /// The only order of the last event.
    #[track_caller]
    pub fn order(&self) -> &AttemptOrder {
        let mut orders = self
            .decision
            .commands()
            .iter()
            .filter_map(|command| match command {
                Command::DispatchTask(order) => Some(order),
                _others => None,
            });
        match (orders.next(), orders.next()) {
            (Some(order), None) => order,
            (first, second) => panic!("one order was expected, not {first:?} and {second:?}"),
        }
    }
}

/// A parent's message to its child, as the host delivers it.
pub fn asked_by_parent(sender: &str, message: &Message) -> Option<Event> {
    let (event, token_id) = match message {
        Message::HoldChild {
            number,
            held,
            budget_ms,
            token_id,
            ..
        } => {
            let event = Event::ParentHolds {
                number: *number,
                held: *held,
                budget_ms: *budget_ms,
            };
            (event, token_id)
        }
        Message::CancelChild { reason, token_id, .. } => {
            let reason = Some(reason.clone());
            (Event::CancelRequested { reason, by: None }, token_id)
        }
        Message::StartChild { .. }
        | Message::NotifyParent { .. }
        | Message::TellParent { .. }
        | Message::Emit { .. } => return None,
    };
    Some(Event::FromParent {
        sender: ParentSender {
            run_id: sender.to_string(),
            token_id: token_id.clone(),
        },
        event: Box::new(event),
    })
}
