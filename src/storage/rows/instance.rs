//! Rows `instance/<id>`: the firings of sibling groups; and the branch that a token's row contains.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_false, present};
use crate::base::failure::Failure;
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::definition::transition::Transition;
use crate::definition::workflow::Workflow;
use crate::run::{
    Branch, FanIn, FanInState, Instance, InstanceId, InstanceStatus, InstanceSummary, RowEvent, Run,
};

/// A token's position among its siblings. Group and total repeat the instance's, so that a token's view needs no other row.
#[derive(Debug, Serialize, Deserialize)]
pub struct BranchRow {
    pub instance: u64,
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub item: Option<Value>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// The output equals the token's result and is too large to be stored twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub output_is_result: bool,
}

impl BranchRow {
    /// `result` is the token's.
    pub(super) fn of_token(branch: &Branch, result: Option<&Value>, run: &Run) -> BranchRow {
        let mut row = BranchRow::of(branch, Some(run));
        if result == Some(&row.output) && json_bytes(&row.output) > STORED_TWICE_BYTES {
            row.output = Value::Null;
            row.output_is_result = true;
        }
        row
    }

    /// `result` is the token's.
    pub(super) fn into_branch_of(mut self, result: Option<&Value>) -> Branch {
        if self.output_is_result {
            self.output = result.cloned().unwrap_or_default();
        }
        self.into_branch()
    }

    pub(super) fn of(branch: &Branch, run: Option<&Run>) -> BranchRow {
        let instance = run.and_then(|run| run.instance(branch.instance));
        BranchRow {
            instance: branch.instance.0,
            index: branch.index,
            group: instance.map(|instance| instance.group.clone()),
            total: instance.map(|instance| instance.total),
            item: branch.item.clone(),
            output: branch.output.clone(),
            output_is_result: false,
        }
    }

    pub(super) fn into_branch(self) -> Branch {
        Branch {
            instance: InstanceId(self.instance),
            index: self.index,
            item: self.item,
            output: self.output,
        }
    }
}

/// The output of a branch usually equals the result of its last token. Outputs up to this size are stored twice.
const STORED_TWICE_BYTES: usize = 16 << 10;

/// One firing of a sibling group, with its joins.
#[derive(Debug, Serialize, Deserialize)]
pub struct InstanceRow {
    pub id: u64,
    pub group: String,
    pub total: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<BranchRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_var: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_ins: Vec<FanInRow>,
    /// Branches that arrived after their join had fired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RowEvent>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FanInRow {
    pub node_id: String,
    pub transition_id: String,
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
}

impl InstanceRow {
    pub fn of(instance: &Instance, snapshot: &Snapshot) -> InstanceRow {
        let workflow = &snapshot.workflow;
        InstanceRow {
            id: instance.id.0,
            group: instance.group.clone(),
            total: instance.total,
            parent: instance.parent.as_ref().map(|branch| BranchRow::of(branch, None)),
            item_var: instance.item_var.clone(),
            fan_ins: instance
                .fan_ins
                .iter()
                .map(|(node, fan_in)| FanInRow {
                    node_id: workflow.nodes[*node].id.clone(),
                    transition_id: workflow.transitions[fan_in.transition].id.clone(),
                    started_at: fan_in.started_at,
                    timeout_at: fan_in.timeout_at,
                    timeout_ms: fan_in.timeout_ms,
                    fired_at: fan_in.fired_at(),
                    warned: fan_in.warned,
                })
                .collect(),
            arrived: instance.late_arrivals(),
            closed: instance.is_closed(),
            closed_by: match instance.status {
                InstanceStatus::Open | InstanceStatus::Closed => None,
                InstanceStatus::ClosedByRunEnd(end) => Some(end),
            },
            last_error: instance.last_error.clone(),
            events: instance.events.clone(),
        }
    }

    pub fn into_instance(self, snapshot: &Snapshot) -> Result<Instance, String> {
        let workflow = &snapshot.workflow;
        let status = self.status();
        let parent = self.parent.map(BranchRow::into_branch);
        let mut instance = Instance::new(InstanceId(self.id), self.group, self.total, parent, self.item_var);
        instance.status = status;
        instance.last_error = self.last_error;
        instance.events = self.events;
        instance.restore_arrivals(self.arrived);
        for row in self.fan_ins {
            let place = row.join_in(&instance.group, workflow);
            if place.is_none() && instance.is_closed() {
                // The run has gone on with a version without this join.
                continue;
            }
            let Some((node, transition)) = place else {
                return Err(format!(
                    "a join at unknown node {} or transition {}",
                    row.node_id, row.transition_id
                ));
            };
            instance.fan_ins.insert(
                node,
                FanIn {
                    transition,
                    started_at: row.started_at,
                    timeout_at: row.timeout_at,
                    timeout_ms: row.timeout_ms,
                    warned: row.warned,
                    state: FanInState::restored(row.fired_at),
                },
            );
        }
        Ok(instance)
    }

    /// The nodes of its joins that the version does not have.
    pub fn missing_joins(&self, snapshot: &Snapshot) -> Vec<String> {
        let is_missing = |row: &&FanInRow| row.join_in(&self.group, &snapshot.workflow).is_none();
        let missing = self.fan_ins.iter().filter(is_missing);
        missing.map(|row| row.node_id.clone()).collect()
    }

    /// What resume plans need.
    pub fn into_summary(self) -> InstanceSummary {
        InstanceSummary {
            id: InstanceId(self.id),
            status: self.status(),
            has_fired: self.fan_ins.iter().any(|row| row.fired_at.is_some()),
            parent: self
                .parent
                .map(|branch| (InstanceId(branch.instance), branch.index)),
            group: self.group,
            total: self.total,
        }
    }

    fn status(&self) -> InstanceStatus {
        match (self.closed, self.closed_by) {
            (false, _) => InstanceStatus::Open,
            (true, None) => InstanceStatus::Closed,
            (true, Some(end)) => InstanceStatus::ClosedByRunEnd(end),
        }
    }
}

impl FanInRow {
    /// The node and a transition of this join. Transitions without an id are numbered, so in another version the id may be that
    /// of another transition: the group and the node say which join it is.
    fn join_in(&self, group: &str, workflow: &Workflow) -> Option<(usize, usize)> {
        let node = workflow.node_index(&self.node_id)?;
        let is_of_join = |transition: &&Transition| {
            let join = transition.synchronization.as_ref();
            transition.to == node && join.is_some_and(|join| join.group == group)
        };
        let transitions = workflow.transitions.iter();
        let same = transitions
            .clone()
            .position(|it| is_of_join(&it) && it.id == self.transition_id);
        let transition = same.or_else(|| transitions.clone().position(|it| is_of_join(&it)));
        transition.map(|transition| (node, transition))
    }
}
