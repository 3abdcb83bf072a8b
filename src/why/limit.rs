//! Which limit passed, where its length is written, and which change of the document sets another one.

use serde::Serialize;
use serde_json::{Value, json};

use crate::base::time::{Limit as Length, Millis, format_duration};
use crate::definition::node::NodeKind;
use crate::definition::timeouts::TimeoutLayer;
use crate::definition::transition::Transition;
use crate::run::{GateKind, RunEventKind, TimeoutScope};
use crate::why::clock::Clock;
use crate::why::facts::Rows;
use crate::why::place::Place;
use crate::why::step_limit::call_ms;
use crate::why::{Asked, rows_of};

/// What a limit belongs to. As the contract names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layer {
    Workflow,
    /// Of an attempt.
    Execution,
    Call,
    Join,
    Gate,
    /// For a signal.
    Wait,
    Callback,
    /// How long an attempt of the queue may be silent.
    Heartbeat,
}

/// Where the length of a limit comes from. As the contract names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Node,
    Task,
    Step,
    Action,
    Gate,
    Wait,
    Join,
    Workflow,
    Preset,
    Adaptive,
    Start,
    ParentBudget,
    CallingNode,
    JoinDefault,
    GateDefault,
    Deployment,
    Unknown,
}

pub(super) struct Limit {
    layer: Layer,
    source: Source,
    /// In the workflow's document, or in `document`.
    pointer: Option<String>,
    /// Kind and id of another document.
    document: Option<(&'static str, String)>,
    preset: Option<&'static str>,
    reason: Option<String>,
    extended_ms: u64,
    /// Where the workflow's document sets it, or would: several places that are written alike.
    places: Vec<Place>,
}

impl Limit {
    pub fn new(layer: Layer, source: Source) -> Limit {
        Limit {
            layer,
            source,
            pointer: None,
            document: None,
            preset: None,
            reason: None,
            extended_ms: 0,
            places: Vec::new(),
        }
    }

    pub fn of_layer(self, layer: Layer) -> Limit {
        Limit { layer, ..self }
    }

    /// Written at this place of the workflow's document.
    pub fn at(self, place: Place) -> Limit {
        Limit {
            pointer: place.pointer().map(str::to_string),
            places: vec![place],
            ..self
        }
    }

    /// Not written there, but what is written at these places would replace it.
    pub fn replaced_at(self, places: impl IntoIterator<Item = Place>) -> Limit {
        Limit {
            places: places.into_iter().collect(),
            ..self
        }
    }

    pub fn because(self, reason: impl Into<String>) -> Limit {
        Limit {
            reason: Some(reason.into()),
            ..self
        }
    }

    /// Written in a document that the workflow names or has inside.
    pub fn in_document(self, kind: &'static str, id: &str, place: &Place) -> Limit {
        Limit {
            document: Some((kind, id.to_string())),
            pointer: place.pointer().map(str::to_string),
            ..self
        }
    }

    /// The run has another document now: a pointer into it could name another place.
    pub fn of_other_version(self, version: u64) -> Limit {
        Limit {
            pointer: None,
            document: None,
            places: Vec::new(),
            source: Source::Unknown,
            reason: Some(format!(
                "the run has gone on with version {version} since; the limit was one of the version before"
            )),
            ..self
        }
    }

    /// The operations of a JSON Patch.
    pub fn change(&self, millis: u64) -> Option<Value> {
        let operations = self.places.iter().map(|place| place.change(millis));
        (!self.places.is_empty()).then(|| operations.collect())
    }

    pub fn view(&self, timeout_ms: Option<u64>) -> Value {
        let mut view = json!({
            "layer": self.layer,
            "source": self.source,
            "timeout_ms": timeout_ms,
            "pointer": self.pointer,
            "document": self.document.as_ref().map(|(kind, id)| json!({"kind": kind, "id": id})),
            "preset": self.preset,
            "reason": self.reason,
        });
        if self.extended_ms > 0 {
            view["extended_ms"] = json!(self.extended_ms);
        }
        view
    }

    /// The reason of the smallest limit, with what forbids it.
    pub fn with_bounds(&self, asked: Asked, smallest_ms: Option<u64>, reason: String) -> String {
        let Some(millis) = smallest_ms else { return reason };
        let preset = asked.run.snapshot().stored.effective_preset();
        let layer = match (self.layer, asked.node()) {
            (Layer::Workflow, _) => Some((
                TimeoutLayer::Flow,
                asked.run.snapshot().workflow.allow_exceed_hard,
            )),
            (Layer::Execution | Layer::Call, Some(node)) => {
                let may_exceed = asked.run.snapshot().workflow.nodes[node].allow_exceed_hard;
                Some((asked.run.snapshot().layer_of(node), may_exceed))
            }
            (Layer::Execution | Layer::Call, None)
            | (Layer::Join | Layer::Gate | Layer::Wait | Layer::Callback | Layer::Heartbeat, _) => None,
        };
        let refused = layer.and_then(|(layer, may)| preset.reject(layer, Length::After(millis), may));
        let reason = match refused {
            Some(refused) => format!("{reason}; {}", refused.message("where the limit is written")),
            None => reason,
        };
        let of_call = asked
            .node()
            .filter(|_| self.layer == Layer::Execution)
            .and_then(|node| call_ms(asked, node));
        let reason = match of_call.filter(|call_ms| *call_ms < millis && Some(*call_ms) != asked.limit_ms()) {
            Some(call_ms) => format!(
                "{reason}; the limit of its call, {}, would have passed first: it must be longer, too",
                format_duration(call_ms)
            ),
            None => reason,
        };
        let more_ms = millis.saturating_sub(asked.limit_ms().unwrap_or(millis));
        match run_left_ms(asked).filter(|left| self.layer != Layer::Workflow && more_ms >= *left) {
            Some(left) => format!(
                "{reason}; the run's own limit would have passed first, {} later: it must be longer, too",
                format_duration(left)
            ),
            None => reason,
        }
    }
}

/// `timeouts.<name>` of the workflow, or the preset.
pub(super) fn default_of(asked: Asked, layer: Layer, of: TimeoutLayer) -> Limit {
    let snapshot = asked.run.snapshot();
    let timeouts = &snapshot.workflow.timeouts;
    let own = match of {
        TimeoutLayer::Flow => timeouts.flow,
        TimeoutLayer::Step => timeouts.step,
        TimeoutLayer::LlmCall => timeouts.llm_call,
        TimeoutLayer::Tool => timeouts.tool,
    };
    let place = Place::of(&snapshot.stored.workflow, "/timeouts", of.name());
    if own != Length::Unset {
        return Limit::new(layer, Source::Workflow).at(place);
    }
    let preset = snapshot.stored.effective_preset();
    Limit {
        preset: Some(preset.name()),
        places: vec![place],
        pointer: timeouts.preset.map(|_| "/timeouts/preset".to_string()),
        ..Limit::new(layer, Source::Preset)
    }
}

pub(super) fn of_run(asked: Asked) -> Limit {
    let (run, document) = (asked.run, &asked.run.snapshot().stored.workflow);
    let request = &run.header.request;
    let before = asked.facts.of_kind(RunEventKind::RunExtended);
    let before = before.filter(|event| event.seq < asked.event.seq);
    let extended_ms: u64 = before.filter_map(|event| event.more().by_ms).sum();
    let place = Place::of(document, "", "timeout");
    let limit = if run.header.on_budget {
        Limit::new(Layer::Workflow, Source::ParentBudget)
            .because("the run had what was left of the one that called it (`timeouts.inherit_budget`)")
    } else if request.node_decides {
        Limit::new(Layer::Workflow, Source::CallingNode).because(
            "the limit is the one of the node that called this workflow; its run has a record of it, too",
        )
    } else if request.timeout_ms.is_some() {
        Limit::new(Layer::Workflow, Source::Start)
            .because("`timeout_ms` of the start; it takes the place of the document's")
    } else if run.snapshot().workflow.timeout != Length::Unset {
        Limit::new(Layer::Workflow, Source::Workflow).at(place)
    } else {
        // Both would do; the workflow's own field is the one that people look for.
        default_of(asked, Layer::Workflow, TimeoutLayer::Flow).replaced_at(Some(place))
    };
    Limit { extended_ms, ..limit }
}

pub(super) fn of_join(asked: Asked, transition: Option<usize>) -> Limit {
    let snapshot = asked.run.snapshot();
    let Some(index) = transition else {
        return Limit::new(Layer::Join, Source::Unknown)
            .because("the version that the run has now has no such join");
    };
    let place_of = |index: usize| {
        let parent = format!("/transitions/{index}/synchronization");
        Place::of(&snapshot.stored.workflow, &parent, "timeout")
    };
    let place = place_of(index);
    // All transitions of a join say the same.
    let places = joins_beside(&snapshot.workflow.transitions, index).map(place_of);
    let join = snapshot.workflow.transitions[index].synchronization.as_ref();
    match join.map_or(Length::Unset, |join| join.timeout) {
        Length::After(_) | Length::Never => Limit::new(Layer::Join, Source::Join).at(place).replaced_at(places),
        Length::Unset => Limit::new(Layer::Join, Source::JoinDefault).replaced_at(places).because(
            "computed: one and a half times the longest limit in the branches, times their number, and 30m0s at most or without \
             such a limit",
        ),
    }
}

/// The transitions that join the same group at the same node.
fn joins_beside(transitions: &[Transition], index: usize) -> impl Iterator<Item = usize> {
    let group_of = |transition: &Transition| {
        let join = transition.synchronization.as_ref()?;
        Some((transition.to, join.group.clone()))
    };
    let group = group_of(&transitions[index]);
    let all = transitions.iter().enumerate();
    all.filter(move |(_, other)| group.is_some() && group_of(other) == group)
        .map(|(index, _)| index)
}

pub(super) fn of_gate(asked: Asked) -> Limit {
    let document = &asked.run.snapshot().stored.workflow;
    let kind = asked.gate().map_or(GateKind::Node, |gate| gate.kind);
    match (kind, asked.node()) {
        (GateKind::Node, Some(node)) => {
            let is_inside = match &asked.run.snapshot().workflow.nodes[node].kind {
                NodeKind::Gate(gate) => gate.timeout != Length::Unset,
                NodeKind::Task { .. }
                | NodeKind::Action { .. }
                | NodeKind::Workflow { .. }
                | NodeKind::Wait(_)
                | NodeKind::PassThrough => false,
            };
            match is_inside {
                true => Limit::new(Layer::Gate, Source::Gate).at(Place::of(
                    document,
                    &format!("/nodes/{node}/gate"),
                    "timeout",
                )),
                false => Limit::new(Layer::Gate, Source::Node).at(Place::of(
                    document,
                    &format!("/nodes/{node}"),
                    "timeout",
                )),
            }
        }
        (GateKind::Node, None) => Limit::new(Layer::Gate, Source::Unknown)
            .because("the version that the run has now has no such node"),
        (GateKind::WorkflowTimeout | GateKind::Escalation, _) => {
            let place = Place::of(document, "/gate", "timeout");
            match place.pointer() {
                Some(_) => Limit::new(Layer::Gate, Source::Workflow).at(place),
                None => Limit::new(Layer::Gate, Source::GateDefault)
                    .replaced_at(Some(place))
                    .because("a gate of the whole run, or of a failure, has 7 days unless `gate.timeout` says otherwise"),
            }
        }
    }
}

/// The limit around the one that passed, and what was left of it.
pub(super) fn outer(asked: Asked) -> Value {
    let header = &asked.run.header;
    let is_of_run = asked.record.timeout_event.scope == TimeoutScope::Flow;
    match (is_of_run, &header.parent) {
        (true, Some(parent)) => json!({
            "layer": "parent",
            "run_id": parent.run_id,
            "token_id": parent.token_id,
            "passed_first": header.on_budget || header.request.node_decides,
            "left_ms": null,
        }),
        (true, None) => Value::Null,
        (false, _) => json!({
            "layer": "workflow",
            "run_id": header.id,
            "token_id": null,
            "passed_first": false,
            "left_ms": run_left_ms(asked),
        }),
    }
}

/// What was left of the run's own limit when an inner one passed. `None`: without a limit, or the rows do not say, because the limit
/// has moved since.
fn run_left_ms(asked: Asked) -> Option<u64> {
    let (header, at) = (&asked.run.header, asked.at());
    if rows_of(asked.run, asked.record) == Rows::All {
        return left_by_clock_ms(asked);
    }
    let limit_at: Millis = header.timeout_at.filter(|_| header.ending.is_none())?;
    let moved = asked.facts.log.iter().any(|event| {
        let moves = matches!(
            event.kind,
            RunEventKind::RunExtended
                | RunEventKind::RunResumed
                | RunEventKind::RunRetried
                | RunEventKind::RunRestarted
        );
        moves && event.seq > asked.event.seq
    });
    let stood_at_gate = asked.run.gates().any(|gate| {
        let closed_at = gate.decision.as_ref().map(|decision| decision.at);
        closed_at.is_none_or(|closed_at| closed_at > at) && gate.kind != GateKind::WorkflowTimeout
    });
    let has_children = asked
        .run
        .snapshot()
        .workflow
        .nodes
        .iter()
        .any(|node| matches!(node.kind, NodeKind::Workflow { .. }));
    (!moved && !stood_at_gate && !has_children).then(|| limit_at.saturating_sub(at))
}

/// What the limit was then, without what the clock had run.
fn left_by_clock_ms(asked: Asked) -> Option<u64> {
    let later = asked.facts.of_kind(RunEventKind::RunExtended);
    let later = later.filter(|event| event.seq > asked.event.seq);
    let extended_ms: u64 = later.filter_map(|event| event.more().by_ms).sum();
    let limit_ms = asked.run.header.timeout_ms?.saturating_sub(extended_ms);
    let clock = Clock::of(asked.run, asked.facts);
    Some(limit_ms.saturating_sub(clock.ran_ms(asked.part_began_at(), asked.at())))
}
