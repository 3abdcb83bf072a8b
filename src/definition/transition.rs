//! Transitions of a workflow: which token they follow, and how many tokens they create.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::limits;
use crate::base::ordered::map_of;
use crate::base::text::shorten;
use crate::cel::Expression;
use crate::definition::fan::{Spawn, Synchronization, read_spawn, read_synchronization};
use crate::definition::node::{Node, UnreadNodes};
use crate::definition::problem::Problems;
use crate::definition::reader::{Element, Reader};

#[derive(Clone, Debug)]
pub struct Transition {
    pub id: String,
    pub from: usize,
    pub to: usize,
    pub on: TransitionOn,
    pub priority: i64,
    pub condition: Option<Expression>,
    pub spawn: Spawn,
    /// The sibling group of the tokens that this transition creates: a named one, or the transition's id if it fans out.
    pub group: Option<String>,
    pub synchronization: Option<Synchronization>,
    /// How often this transition may fire on one path. Only set on transitions of a cycle.
    pub iterations_max: Option<u64>,
    /// The transition is part of a cycle, so its firings are counted along each path.
    pub in_cycle: bool,
}

/// How a token must end for the transition to fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionOn {
    Success,
    Failure,
    Timeout,
}

pub const TRANSITION_ONS: &[(&str, TransitionOn)] = &[
    ("success", TransitionOn::Success),
    ("failure", TransitionOn::Failure),
    ("timeout", TransitionOn::Timeout),
];

/// The nodes of a document, by id. A document may have 500 of them and 2 000 transitions, which name two each.
pub(super) struct NodeIndex<'a> {
    by_id: BTreeMap<&'a str, usize>,
    unread: &'a UnreadNodes,
}

impl<'a> NodeIndex<'a> {
    pub fn new(nodes: &'a [Node], unread: &'a UnreadNodes) -> NodeIndex<'a> {
        let ids = nodes.iter().map(|node| node.id.as_str());
        NodeIndex {
            by_id: map_of(ids.zip(0..)),
            unread,
        }
    }
}

pub(super) fn read_transitions(reader: &Reader, nodes: &NodeIndex, names: &[&str]) -> Vec<Transition> {
    let elements = reader.array("transitions");
    if elements.len() > limits::TRANSITIONS {
        reader.report(
            "transitions",
            "limit_exceeded",
            format!(
                "{} transitions; the limit is {}",
                elements.len(),
                limits::TRANSITIONS
            ),
        );
        return Vec::new();
    }
    let mut transitions: Vec<Transition> = Vec::new();
    let mut ids = BTreeSet::new();
    for (position, element) in elements.iter().enumerate() {
        let Some(transition) = read_transition(element, position, nodes, names, reader.problems()) else {
            continue;
        };
        if !ids.insert(transition.id.clone()) {
            reader.problems().report(
                &format!("{}/id", element.pointer),
                "duplicate_id",
                format!("another transition is named \"{}\"", transition.id),
            );
            continue;
        }
        transitions.push(transition);
    }
    transitions
}

fn read_transition(
    element: &Element,
    position: usize,
    nodes: &NodeIndex,
    names: &[&str],
    problems: &Problems,
) -> Option<Transition> {
    let reader = Reader::new(element.value, element.pointer.as_str(), problems)?;
    let id = match reader.has("id") {
        true => reader.id("id"),
        false => Some(format!("t{}", position + 1)),
    };
    let from = read_node_reference(&reader, "from_node_id", nodes);
    let to = read_node_reference(&reader, "to_node_id", nodes);
    let on = reader
        .choice("on", TRANSITION_ONS)
        .unwrap_or(TransitionOn::Success);
    let priority = reader.integer("priority", -1_000_000, 1_000_000).unwrap_or(0);
    let condition = reader.expression("condition", names);
    let iterations_max = reader.object("loop_config").and_then(|config| {
        // Earlier builds took an empty object for none.
        if !reader.problems().is_prechecked() {
            config.require("max_iterations");
        }
        let max = config.integer("max_iterations", 1, 1_000_000);
        config.finish();
        max.map(|number| number as u64)
    });
    let spawn = read_spawn(&reader, names);
    let synchronization = read_synchronization(&reader);
    let group = reader.id("sibling_group");
    reader.finish();
    let id = id?;
    let group = match (&group, &spawn) {
        (Some(_), _) => group,
        (None, Spawn::Count(_) | Spawn::ForEach { .. }) => Some(id.clone()),
        (None, Spawn::One) => None,
    };
    Some(Transition {
        id,
        from: from?,
        to: to?,
        on,
        priority,
        condition,
        spawn,
        group,
        synchronization,
        iterations_max,
        in_cycle: false,
    })
}

pub(super) fn read_node_reference(reader: &Reader, field: &'static str, nodes: &NodeIndex) -> Option<usize> {
    let id = reader.required_string(field)?;
    let index = nodes.by_id.get(id).copied();
    if index.is_none() && !nodes.unread.may_be(id) {
        reader.report(
            field,
            "unknown_node",
            format!("no node is named \"{}\"", shorten(id)),
        );
    }
    index
}
