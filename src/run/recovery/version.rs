//! Another version of the workflow for a run that is resumed or restarted. What does not fit is rejected as a whole, with every
//! reason; nothing is changed then.
//!
//! Ended tokens keep the ids of their nodes, which the new version may lack. So history is read by ids (`Past`), and only what
//! goes on must have its place in the new version.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use crate::base::limits::{ROW_BYTES, TooLarge};
use crate::base::ordered::set_of;
use crate::definition::node::NodeKind;
use crate::definition::snapshot::Snapshot;
use crate::definition::wait::Wait;
use crate::definition::workflow::Workflow;
use crate::protocol::task::Checkpoint;
use crate::run::event::{Past, ResumeRows};
use crate::run::fan::{Instance, InstanceId};
use crate::run::rejection::Rejection;
use crate::run::state::{Run, own_limit_ms};
use crate::run::token::{Token, TokenId};
use crate::run::wait::capability::CallbackSecret;

/// The most misfits that a rejection lists.
const LISTED_MAX: usize = 100;

/// The version that a run is to go on with.
#[derive(Clone, Debug)]
pub struct NewVersion {
    pub snapshot: Rc<Snapshot>,
    /// Kept if the version needs it and the run has none.
    pub callback_secret: Option<CallbackSecret>,
}

/// Something of the run that has no place in the new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// `None`: it concerns the run as a whole.
    pub node_id: Option<String>,
    /// The first token that it concerns.
    pub token: Option<TokenId>,
    pub reason: String,
}

impl Misfit {
    pub fn of_token(node_id: impl Into<String>, token: TokenId, reason: impl Into<String>) -> Misfit {
        Misfit {
            token: Some(token),
            ..Misfit::of_node(node_id, reason)
        }
    }

    pub fn of_node(node_id: impl Into<String>, reason: impl Into<String>) -> Misfit {
        Misfit {
            node_id: Some(node_id.into()),
            token: None,
            reason: reason.into(),
        }
    }

    fn of_run(reason: impl Into<String>) -> Misfit {
        Misfit {
            node_id: None,
            token: None,
            reason: reason.into(),
        }
    }
}

/// The snapshot that a run had before its version changed in the current decision. Tokens and instances up to these ids are
/// saved with its node ids.
#[derive(Debug)]
pub(in crate::run) struct FormerVersion {
    snapshot: Rc<Snapshot>,
    last_token: TokenId,
    last_instance: InstanceId,
}

impl Run {
    /// The version that a token of the last decision ran on.
    pub fn snapshot_of(&self, token: TokenId) -> &Snapshot {
        let former = self.former.as_ref().filter(|it| token <= it.last_token);
        former.map_or(&*self.snapshot, |it| &*it.snapshot)
    }

    /// The version that an instance of the last decision was created on.
    pub fn snapshot_of_instance(&self, instance: InstanceId) -> &Snapshot {
        let former = self.former.as_ref().filter(|it| instance <= it.last_instance);
        former.map_or(&*self.snapshot, |it| &*it.snapshot)
    }

    /// Checks that an ended run can be resumed on `version`, or with its own if rows of an earlier version are among `rows`.
    pub(super) fn check_resumable_on(
        &self,
        version: Option<&NewVersion>,
        past: &Past,
        rows: &ResumeRows,
    ) -> Result<(), Rejection> {
        let snapshot = version.map_or(&*self.snapshot, |version| &*version.snapshot);
        let mut misfits = rows.misfits.clone();
        if version.is_some() {
            misfits.extend(self.misfits_of_run(snapshot, past));
            misfits.extend(
                rows.tokens
                    .iter()
                    .filter_map(|token| self.misfit_of_token(snapshot, token)),
            );
            misfits.extend(
                rows.instances
                    .iter()
                    .filter_map(|it| self.misfit_of_instance(snapshot, it)),
            );
        }
        self.reject_misfits(snapshot, misfits)
    }

    /// Checks that the run can be restarted on `version`.
    pub(super) fn check_restartable_on(
        &self,
        version: &NewVersion,
        past: &Past,
        is_from_start: bool,
    ) -> Result<(), Rejection> {
        let snapshot = &*version.snapshot;
        let mut misfits = self.misfits_of_run(snapshot, past);
        if let Some(schema) = snapshot.workflow.input_schema.as_ref().filter(|_| is_from_start) {
            let place = "the run's input does not fit input_schema at";
            let checked = schema.check(&self.context.input, Some(&self.work), "invalid_input", place);
            misfits.extend(checked.err().map(|failure| Misfit::of_run(failure.message)));
        }
        self.reject_misfits(snapshot, misfits)
    }

    fn reject_misfits(&self, snapshot: &Snapshot, misfits: Vec<Misfit>) -> Result<(), Rejection> {
        TooLarge::check(
            "the workflow with all that it uses",
            snapshot.text.len(),
            ROW_BYTES,
        )
        .map_err(Rejection::TooLarge)?;
        // Many tokens may stand at one node.
        let mut seen = BTreeSet::new();
        let mut listed = Vec::new();
        for misfit in misfits {
            if listed.len() < LISTED_MAX && seen.insert((misfit.node_id.clone(), misfit.reason.clone())) {
                listed.push(misfit);
            }
        }
        match listed.is_empty() {
            true => Ok(()),
            false => Err(Rejection::VersionDoesNotFit {
                version: snapshot.version,
                misfits: listed,
            }),
        }
    }

    fn misfits_of_run(&self, snapshot: &Snapshot, past: &Past) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        if snapshot.workflow.id != self.header.workflow_id {
            misfits.push(Misfit::of_run(format!(
                "the run is one of workflow \"{}\"",
                self.header.workflow_id
            )));
        }
        let undone = past.tokens.iter().filter(|token| self.is_to_be_undone(token));
        for token in undone.filter(|token| snapshot.workflow.node_index(&token.node_id).is_none()) {
            let reason = "its work is done and may have to be undone by its compensate, and the version has no such node";
            misfits.push(Misfit::of_token(&*token.node_id, token.id, reason));
        }
        misfits
    }

    /// `token` has the node of the new version. A node without a counterpart in the run's version is of an older version.
    fn misfit_of_token(&self, snapshot: &Snapshot, token: &Token) -> Option<Misfit> {
        let node = &snapshot.workflow.nodes[token.node];
        let node_before = self.snapshot.workflow.node_index(&node.id)?;
        let (before, after) = (
            kind_of(&self.snapshot, node_before),
            kind_of(snapshot, token.node),
        );
        // A token that waits at a join has done its work.
        let is_misfit = token.join.is_none() && before != after;
        let reason = || format!("a token stands at it, and the version made {after} of {before}");
        is_misfit.then(|| Misfit::of_token(node.id.as_str(), token.id, reason()))
    }

    /// The branches of a fan-out go on only if the same nodes fan out the group.
    fn misfit_of_instance(&self, snapshot: &Snapshot, instance: &Instance) -> Option<Misfit> {
        let before = fanning_out(&self.snapshot.workflow, &instance.group);
        let after = fanning_out(&snapshot.workflow, &instance.group);
        let first = before.first()?;
        let reason = format!(
            "branches of group \"{}\" are to go on, and the version does not fan out that group here",
            instance.group
        );
        before
            .is_disjoint(&after)
            .then(|| Misfit::of_node(*first, reason))
    }

    /// Goes on with another version. No token is live.
    pub(super) fn change_version(&mut self, version: NewVersion) {
        let NewVersion {
            snapshot,
            callback_secret,
        } = version;
        let own_before = own_limit_ms(&self.header.request, &self.snapshot);
        let own_ms = own_limit_ms(&self.header.request, &snapshot);
        // A limit that the version leaves as it was keeps its extensions.
        if own_before != own_ms {
            let budget_ms = match self.header.on_budget {
                true => self.header.timeout_ms,
                false => self.header.request.budget_ms,
            };
            self.header.on_budget = budget_ms.is_some_and(|budget| own_ms.is_none_or(|own| budget <= own));
            self.header.timeout_ms = if self.header.on_budget { budget_ms } else { own_ms };
        }
        if snapshot.has_async && self.header.callback_secret.is_none() {
            self.header.callback_secret = callback_secret;
        }
        self.header.version = snapshot.version;
        self.header.tags = snapshot.workflow.tags.clone();
        self.snapshot = snapshot;
        self.changes.snapshot_changed = true;
        self.changes.header_changed = true;
    }

    /// As `change_version`, in a decision that has ended tokens of the version before.
    pub(super) fn change_version_after_tokens(&mut self, version: NewVersion) {
        self.former = Some(FormerVersion {
            snapshot: Rc::clone(&self.snapshot),
            last_token: self.tokens.newest(),
            last_instance: self.fans.newest(),
        });
        self.change_version(version);
    }

    /// Says in the event of the retry or restart which version the run had and which it has now.
    pub(super) fn note_versions(&self, version: &NewVersion, fields: &mut Value) {
        fields["from_version"] = self.header.version.into();
        fields["version"] = version.snapshot.version.into();
    }

    /// Adapts a token of a resume plan, which has the node of the new version.
    pub(super) fn adapt_token(&self, snapshot: &Snapshot, token: &mut Token) {
        token.loops = loops_in(&self.snapshot.workflow, &snapshot.workflow, &token.loops);
        let node_id = &snapshot.workflow.nodes[token.node].id;
        let node_before = self.snapshot.workflow.node_index(node_id);
        let keeps = |checkpoint: &Checkpoint| {
            node_before.is_some_and(|before| {
                same_steps((&self.snapshot, before), (snapshot, token.node), &checkpoint.next)
            })
        };
        if !token.checkpoint.as_deref().is_none_or(keeps) {
            token.checkpoint = None;
        }
    }
}

/// What a node is, for a message.
fn kind_of(snapshot: &Snapshot, node: usize) -> &'static str {
    if snapshot.call_of(node).is_some() {
        return "a call of a workflow";
    }
    match &snapshot.workflow.nodes[node].kind {
        NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => "a task",
        NodeKind::Gate(_) => "a gate",
        NodeKind::Wait(wait) => match **wait {
            Wait::Sleep(_) | Wait::Until(_) => "a wait for a time",
            Wait::Signal { .. } => "a wait for a signal",
        },
        NodeKind::PassThrough => "a node without work",
    }
}

/// The nodes from which a group is fanned out.
fn fanning_out<'a>(workflow: &'a Workflow, group: &str) -> BTreeSet<&'a str> {
    let transitions = workflow.transitions.iter();
    let of_group = transitions.filter(|transition| transition.group.as_deref() == Some(group));
    set_of(of_group.map(|transition| workflow.nodes[transition.from].id.as_str()))
}

/// The counters of loops under the ids that their transitions have in the new version. A transition without an id is numbered, so
/// the nodes that it connects say which one it is. A loop that the version does not have needs no counter.
fn loops_in(before: &Workflow, after: &Workflow, loops: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let ends = |workflow: &Workflow, index: usize| {
        let transition = &workflow.transitions[index];
        let id = |node: usize| workflow.nodes[node].id.clone();
        (id(transition.from), id(transition.to), transition.on)
    };
    let mut kept = BTreeMap::new();
    for (id, count) in loops {
        let old = before
            .transitions
            .iter()
            .position(|transition| transition.id == *id);
        let Some(old) = old.map(|index| ends(before, index)) else {
            continue;
        };
        let alike = || (0..after.transitions.len()).filter(|index| ends(after, *index) == old);
        let same = alike().find(|index| after.transitions[*index].id == *id);
        if let Some(index) = same.or_else(|| alike().next()) {
            let counter = kept.entry(after.transitions[index].id.clone()).or_default();
            *counter = count.max(counter).to_owned();
        }
    }
    kept
}

/// Whether the steps before `next` and the input of the task are written alike in both versions. Otherwise the results of the
/// finished steps are not those that the new version would have.
fn same_steps(
    (before, node_before): (&Snapshot, usize),
    (after, node_after): (&Snapshot, usize),
    next: &str,
) -> bool {
    let finished = |snapshot: &Snapshot, node: usize| -> Option<Vec<Value>> {
        let task = snapshot.node_tasks.get(node).copied().flatten()?;
        let steps = &snapshot.tasks.get(task)?.task.steps;
        let count = steps.iter().position(|step| step.reference == next)?;
        let documents = snapshot.stored.tasks.get(task)?["steps"].as_array()?;
        Some(documents.iter().take(count).cloned().collect())
    };
    let input_mapping = |snapshot: &Snapshot, node: usize| {
        let id = snapshot.workflow.nodes[node].id.as_str();
        let nodes = snapshot.stored.workflow["nodes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let document = nodes.into_iter().find(|document| document["id"] == id);
        document.map(|document| document["input_mapping"].clone())
    };
    let steps = finished(before, node_before);
    steps.is_some()
        && steps == finished(after, node_after)
        && input_mapping(before, node_before) == input_mapping(after, node_after)
}
