//! Which failures of a node are put in front of a person before they count: `escalate_on`, else the preset's word.

use serde_json::Value;

use crate::base::failure::{FAILURE_CLASSES, FailureClass};
use crate::definition::reader::{Reader, kind_of, shorten};
use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::Preset;

/// What a node writes; none if it leaves it to the preset. An empty list is a word, too: nobody is asked.
pub(super) fn read_escalate_on(reader: &Reader, is_executed: bool) -> Option<Vec<FailureClass>> {
    reader.any("escalate_on")?;
    if !is_executed {
        reader.report(
            "escalate_on",
            "unknown_field",
            "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has work that could be done again",
        );
        return None;
    }
    let mut classes = Vec::new();
    for element in reader.array("escalate_on") {
        let problem = match element.value {
            Value::String(word) => match FAILURE_CLASSES.iter().find(|(known, _)| known == word) {
                Some((_, class)) => {
                    classes.push(*class);
                    continue;
                }
                None => {
                    let known: Vec<_> = FAILURE_CLASSES.iter().map(|(known, _)| *known).collect();
                    let message = format!("\"{}\" is none of {}", shorten(word), known.join(", "));
                    ("invalid_choice", message)
                }
            },
            other => (
                "wrong_type",
                format!("expected an error class, found {}", kind_of(other)),
            ),
        };
        reader.problems().report(&element.pointer, problem.0, problem.1);
    }
    Some(classes)
}

impl Preset {
    /// What a person is asked about where a node says nothing.
    pub fn escalate_on(self) -> &'static [FailureClass] {
        match self {
            Preset::Standard | Preset::Service => &[],
            Preset::Flow => &[
                FailureClass::Auth,
                FailureClass::Permanent,
                FailureClass::RateLimited,
                FailureClass::BreakerOpen,
            ],
        }
    }
}

impl Snapshot {
    /// Whether a failure of this class at `node` waits for a person instead of ending its token.
    pub fn escalates(&self, node: usize, class: FailureClass) -> bool {
        let node = &self.workflow.nodes[node];
        let preset = self.workflow.timeouts.preset.unwrap_or(self.stored.preset);
        match &node.escalate_on {
            Some(classes) => classes.contains(&class),
            None => node.kind.is_executed() && preset.escalate_on().contains(&class),
        }
    }
}
