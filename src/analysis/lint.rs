//! What every check of the analysis gets, and how it reports what it found.

use std::cell::Cell;

use serde_json::Value;

use crate::analysis::WARNINGS;
use crate::analysis::called::Called;
use crate::analysis::graph::Graph;
use crate::analysis::run_bounds::RunBounds;
use crate::base::text::shorten;
use crate::definition::node::NodeRole;
use crate::definition::problem::Problems;
use crate::definition::snapshot::Snapshot;

/// More warnings than anybody reads. The rest is only counted.
const WARNINGS_MAX: u64 = 200;
/// Walks over the whole graph that one check may make, so that its time stays bounded in the worst documents.
pub const WALKS_MAX: usize = 100;

pub struct Lint<'a> {
    pub snapshot: &'a Snapshot,
    pub document: &'a Value,
    pub graph: &'a Graph<'a>,
    pub called: &'a Called,
    pub run: &'a RunBounds,
    problems: &'a Problems,
    reported: Cell<u64>,
}

impl<'a> Lint<'a> {
    pub fn new(
        snapshot: &'a Snapshot,
        document: &'a Value,
        graph: &'a Graph<'a>,
        called: &'a Called,
        run: &'a RunBounds,
        problems: &'a Problems,
    ) -> Lint<'a> {
        Lint {
            snapshot,
            document,
            graph,
            called,
            run,
            problems,
            reported: Cell::default(),
        }
    }

    pub fn warn(&self, pointer: &str, code: &'static str, message: impl Into<String>) {
        debug_assert!(WARNINGS.contains(&code), "{code} is not in the list of warnings");
        self.reported.set(self.reported.get() + 1);
        if self.reported.get() <= WARNINGS_MAX {
            self.problems.warn(pointer, code, message);
        }
    }

    /// Further warnings are only counted, so their messages need not be made.
    pub fn is_full(&self) -> bool {
        self.reported.get() >= WARNINGS_MAX
    }

    /// Says how many warnings were left out.
    pub fn finish(&self) {
        let left_out = self.reported.get().saturating_sub(WARNINGS_MAX);
        if left_out > 0 {
            let message = format!("{left_out} further warnings are not listed; solve some of these first");
            self.problems.warn("", "more_warnings", message);
        }
    }

    pub fn node_id(&self, node: usize) -> &str {
        &self.snapshot.workflow.nodes[node].id
    }

    /// Ids of nodes in a message.
    pub fn names(&self, nodes: impl IntoIterator<Item = usize>) -> String {
        const NAMED: usize = 5;
        let nodes: Vec<usize> = nodes.into_iter().collect();
        let named: Vec<String> = nodes
            .iter()
            .take(NAMED)
            .map(|&node| format!("\"{}\"", shorten(self.node_id(node))))
            .collect();
        match nodes.len() > NAMED {
            true => format!("{} and {} more", named.join(", "), nodes.len() - NAMED),
            false => named.join(", "),
        }
    }

    /// Where the document says what a node runs: the node itself, or its compensation or end handler.
    pub fn reference_pointer(&self, node: usize) -> String {
        let workflow = &self.snapshot.workflow;
        match workflow.nodes[node].role {
            NodeRole::Declared => format!("/nodes/{node}"),
            NodeRole::Compensation { of } => format!("/nodes/{of}/compensate"),
            NodeRole::EndHandler => {
                let mut handlers = workflow.end_handlers.iter();
                let index = handlers.position(|handler| handler.node == node);
                format!("/on_end/{}", index.expect("a node of that role is of a handler"))
            }
        }
    }

    /// The pointer of the first of `fields` that is written in the object at `pointer`, else of the object.
    pub fn field(&self, pointer: &str, fields: &[&str]) -> String {
        let object = self.document.pointer(pointer);
        let is_written = |field: &&&str| object.is_some_and(|object| object.get(**field).is_some());
        match fields.iter().find(is_written) {
            Some(field) => format!("{pointer}/{field}"),
            None => pointer.to_string(),
        }
    }
}
