//! Which failures of a node a person decides about: `escalate_on`, else the classes of the preset.

use crate::base::failure::FailureClass;
use crate::definition::reader::Reader;
use crate::definition::retry::read_class;
use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::Preset;

/// `None` leaves the classes to the preset. An empty list means that no failure escalates.
pub(super) fn read_escalate_on(reader: &Reader, is_executed: bool) -> Option<Vec<FailureClass>> {
    reader.value("escalate_on")?;
    if !is_executed {
        reader.report(
            "escalate_on",
            "unknown_field",
            "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has work that could be done again",
        );
        return None;
    }
    let elements = reader.array("escalate_on");
    let classes = elements
        .iter()
        .filter_map(|element| read_class(element, "", reader));
    Some(classes.collect())
}

impl Preset {
    /// The classes that escalate if a node has no `escalate_on`.
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
    /// Whether a failure of this class at `node` waits for a person's decision instead of failing the token.
    pub fn escalates(&self, node: usize, class: FailureClass) -> bool {
        let node = &self.workflow.nodes[node];
        let preset = self.workflow.timeouts.preset.unwrap_or(self.stored.preset);
        match &node.escalate_on {
            Some(classes) => classes.contains(&class),
            None => node.kind.is_executed() && preset.escalate_on().contains(&class),
        }
    }
}
