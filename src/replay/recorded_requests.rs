//! What people and other services did to a recorded run: signals, decisions, controls. They come again at the same moment of
//! the run, decisions as long after their gate has opened.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::api::error::Error;
use crate::base::time::Millis;
use crate::protocol::child::ParentSender;
use crate::protocol::run::{Extension, RetryMode, RunRequest};
use crate::replay::export::{EventView, Export, TokenView};
use crate::replay::export_bounds::Copies;
use crate::replay::recorded_calls::payload_of;

/// A request that a run got.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// After the start.
    pub after_ms: u64,
    pub by: Option<String>,
    pub request: RunRequest,
    /// The version that the run went on with, if it was another one.
    pub version: Option<u64>,
    pub rank: u64,
}

pub fn requests(export: &Export) -> Result<Vec<RecordedRequest>, Error> {
    let mut signals = signals(export)?;
    let mut requests = Vec::new();
    let mut pauses = Pauses::default();
    let mut before = Before::default();
    for event in &export.events {
        before.reaches(event.at);
        let found = match event.kind.as_str() {
            "signal_received" => signals.remove(&event.seq).into_iter().collect(),
            "run_paused" | "run_resumed" => pauses.requests(export, event),
            _other => control(event, &before).into_iter().collect(),
        };
        before.add(event);
        requests.extend(found.into_iter().map(|request| RecordedRequest {
            after_ms: event.at.saturating_sub(export.run.started_at),
            by: event.text("by").map(str::to_string),
            request,
            version: event.number("from_version").and(event.number("version")),
            rank: event.seq,
        }));
    }
    Ok(requests)
}

/// What came before an event, as far as it says from what the event followed.
#[derive(Default)]
struct Before {
    at: Millis,
    /// The gate of the run's limit was decided at the same moment.
    is_decided: bool,
    /// The run was cancelled, and compensates.
    is_cancelled: bool,
}

impl Before {
    fn reaches(&mut self, at: Millis) {
        self.is_decided &= self.at == at;
        self.at = at;
    }

    fn add(&mut self, event: &EventView) {
        self.is_decided |= event.kind == "gate_decided" && event.token().is_none();
        self.is_cancelled |= event.kind == "run_compensating" && event.text("ends_as") == Some("cancelled");
    }
}

/// Who holds the clocks of the run. The history says when the last of them lets it go on, not when the others did.
#[derive(Default)]
struct Pauses {
    by_person: bool,
    by_parent: bool,
}

impl Pauses {
    fn requests(&mut self, export: &Export, event: &EventView) -> Vec<RunRequest> {
        let pauses = event.kind == "run_paused";
        let mut requests = Vec::new();
        match event.text("cause") {
            // A limit that passed, or an escalation: its gate is decided.
            Some("workflow_timeout" | "escalation") => {}
            Some("parent") if pauses => {
                requests.extend(hold(export, event, true));
                self.by_parent = true;
            }
            _person if pauses => {
                requests.push(RunRequest::Pause);
                self.by_person = true;
            }
            _last => {
                if std::mem::take(&mut self.by_parent) {
                    requests.extend(hold(export, event, false));
                }
                if std::mem::take(&mut self.by_person) {
                    requests.push(RunRequest::Resume);
                }
            }
        }
        requests
    }
}

/// The parent pauses its child, or lets it go on.
fn hold(export: &Export, event: &EventView, held: bool) -> Option<RunRequest> {
    let parent = export.start.parent.as_ref()?;
    Some(RunRequest::HoldChild {
        sender: ParentSender {
            run_id: parent.run_id.clone(),
            token_id: Some(parent.token_id.clone()),
        },
        // The highest number counts.
        number: event.seq,
        held,
        budget_ms: budget_after(export, event),
    })
}

/// What was left of the parent's time, for a child that has no other. The history has only the last limit.
fn budget_after(export: &Export, event: &EventView) -> Option<u64> {
    export.start.request.budget_ms?;
    let left = export.run.timeout_at?.saturating_sub(event.at);
    (event.kind == "run_resumed").then_some(left)
}

/// The request behind an event. `None`: it followed from something else.
fn control(event: &EventView, before: &Before) -> Option<RunRequest> {
    if event.fields.contains_key("given_up") {
        return Some(RunRequest::Abandon);
    }
    match event.kind.as_str() {
        "run_extended" if !before.is_decided => {
            Some(RunRequest::Extend(Extension::By(event.number("by_ms")?)))
        }
        "run_retried" => Some(RunRequest::Retry {
            mode: event.text("mode").and_then(mode_named)?,
            token_id: None,
            version: None,
        }),
        "run_restarted" => Some(RunRequest::Restart {
            from_node_id: event.text("from_node_id").map(str::to_string),
            version: None,
        }),
        "run_compensating" if event.text("ends_as") == Some("cancelled") => cancel(event, before),
        // The end of a run that compensates comes later than the request.
        "run_cancelled" if !before.is_cancelled => cancel(event, before),
        _other => None,
    }
}

fn cancel(event: &EventView, before: &Before) -> Option<RunRequest> {
    let reason = event.text("reason").map(str::to_string);
    (!before.is_decided).then_some(RunRequest::Cancel { reason })
}

fn mode_named(name: &str) -> Option<RetryMode> {
    serde_json::from_value(Value::from(name)).ok()
}

/// The signals of a run, by the number of their event. The payload of one that a node waited for is the output of its token; one
/// that came before is taken by the next token that waits for it.
fn signals(export: &Export) -> Result<BTreeMap<u64, RunRequest>, Error> {
    let mut copies = Copies::default();
    let mut buffered = buffered_payloads(export);
    let tokens: BTreeMap<&str, &TokenView> = export
        .tokens
        .iter()
        .map(|token| (token.id.as_str(), token))
        .collect();
    let received = export
        .events
        .iter()
        .filter(|event| event.kind == "signal_received");
    let mut signals = BTreeMap::new();
    for event in received {
        let Some(name) = event.text("name") else {
            continue;
        };
        let payload = match event.token() {
            Some(token) => {
                let token = tokens.get(token).copied();
                copies.add(token.map_or(&Value::Null, |token| &token.output))?;
                payload_of(token)
            }
            None => buffered
                .get_mut(name)
                .and_then(VecDeque::pop_front)
                .unwrap_or_default(),
        };
        let name = name.to_string();
        signals.insert(event.seq, RunRequest::Signal { name, payload });
    }
    Ok(signals)
}

/// Payloads of signals that were there before a token waited for them, oldest first, by name.
fn buffered_payloads(export: &Export) -> BTreeMap<String, VecDeque<Value>> {
    let nodes = export.snapshot.workflow["nodes"].as_array();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for node in nodes.into_iter().flatten() {
        if let (Some(id), Some(name)) = (node["id"].as_str(), node["wait"]["signal"].as_str()) {
            names.insert(id, name);
        }
    }
    let mut payloads: BTreeMap<String, VecDeque<Value>> = BTreeMap::new();
    let mut waits: Vec<&TokenView> = export
        .tokens
        .iter()
        .filter(|token| token.status == "completed" && token.started_at == token.ended_at)
        .collect();
    waits.sort_by_key(|token| token.ended_at);
    for token in waits {
        if let Some(name) = names.get(token.node_id.as_str()) {
            payloads
                .entry(name.to_string())
                .or_default()
                .push_back(Value::clone(&token.output));
        }
    }
    for (name, left) in &export.signals {
        payloads.entry(name.clone()).or_default().extend(left.clone());
    }
    payloads
}
