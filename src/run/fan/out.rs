//! Fan-out: the tokens that a firing of transitions creates.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::compute::{TOKEN_STEPS, write_steps};
use crate::base::failure::Failure;
use crate::base::limits::{FAN_OUT_ITEM_BYTES, FAN_OUT_ITEMS_BYTES, FAN_OUT_WIDTH, TooLarge};
use crate::base::text::json_bytes;
use crate::definition::fan::Spawn;
use crate::run::fan::instance::{Branch, Instance, InstanceId, branch_steps};
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::Token;
use crate::run::token::route::mapping_failure;

/// The effect of one matching transition. It is computed before the token ends, because it may fail.
#[derive(Debug)]
pub(in crate::run) enum Move {
    Step {
        transition: usize,
    },
    Spawn {
        transition: usize,
        branches: NewBranches,
    },
    Join {
        transition: usize,
        instance: InstanceId,
        index: u32,
    },
}

#[derive(Debug)]
pub(in crate::run) enum NewBranches {
    Count(u32),
    Items(Vec<Value>),
}

impl Move {
    pub(in crate::run) fn is_join(&self) -> bool {
        match self {
            Move::Join { .. } => true,
            Move::Step { .. } | Move::Spawn { .. } => false,
        }
    }
}

impl NewBranches {
    fn count(&self) -> u32 {
        match self {
            NewBranches::Count(count) => *count,
            NewBranches::Items(items) => items.len() as u32,
        }
    }
}

impl Run {
    /// What a transition means for this token: a join of its own group, a fan-out, or a plain step.
    pub(in crate::run) fn plan(&self, token: &Token, index: usize, error: &Value) -> Result<Move, Failure> {
        let transition = &self.snapshot.workflow.transitions[index];
        if let Some(join) = &transition.synchronization {
            // For a token of another group the transition is a plain step.
            let own = self
                .fans
                .enclosing(token.branch.as_ref())
                .find(|(_, instance)| instance.group == join.group);
            if let Some((branch, instance)) = own {
                return Ok(Move::Join {
                    transition: index,
                    instance: instance.id,
                    index: branch.index,
                });
            }
        }
        let charge = |tokens: u64, steps: u64| {
            self.work.charge_for(
                format_args!("the tokens of transition {}", transition.id),
                tokens * TOKEN_STEPS + steps,
            )
        };
        if transition.group.is_none() {
            // The output of the branch is copied to the next token.
            charge(1, token.branch.as_ref().map_or(0, branch_steps))?;
            return Ok(Move::Step { transition: index });
        }
        let branches = match &transition.spawn {
            Spawn::One => {
                charge(1, 0)?;
                NewBranches::Count(1)
            }
            Spawn::Count(count) => {
                charge(u64::from(*count), 0)?;
                NewBranches::Count(*count)
            }
            Spawn::ForEach { collection, .. } => {
                let vars = self.vars(token, error.clone())?;
                let place = format!("foreach of transition {}", transition.id);
                let value = collection
                    .evaluate(&self.scope(&vars))
                    .map_err(|wrong| mapping_failure(&place, &wrong))?;
                let Value::Array(items) = value else {
                    return Err(Failure::validation(
                        "not_a_list",
                        format!("{place}: \"{}\" is not a list", collection.source()),
                    ));
                };
                if items.len() > FAN_OUT_WIDTH {
                    return Err(Failure::validation(
                        "limit_exceeded",
                        format!("{place}: {} items; the limit is {FAN_OUT_WIDTH}", items.len()),
                    ));
                }
                charge(items.len() as u64, items.iter().map(write_steps).sum())?;
                check_items(&place, &items)?;
                NewBranches::Items(items)
            }
        };
        Ok(Move::Spawn {
            transition: index,
            branches,
        })
    }

    /// Creates the tokens of `moves`, children of a token that has just ended or arrived at a join.
    pub(in crate::run) fn follow(&mut self, parent: &Token, moves: Vec<Move>, cause: Option<Failure>) {
        let snapshot = std::rc::Rc::clone(&self.snapshot);
        let mut groups: BTreeMap<String, Vec<(usize, NewBranches)>> = BTreeMap::new();
        for next in moves {
            match next {
                Move::Join { .. } => {}
                Move::Step { transition } => {
                    let loops = self.loops_after(parent, transition);
                    let to = snapshot.workflow.transitions[transition].to;
                    self.spawn_token(to, Some(parent.id), parent.branch.clone(), loops, cause.clone());
                }
                Move::Spawn { transition, branches } => {
                    let group = snapshot.workflow.transitions[transition].group.clone();
                    let group = group.expect("only a transition with a group spawns branches");
                    groups.entry(group).or_default().push((transition, branches));
                }
            }
        }
        for (group, spawns) in groups {
            self.fan_out(parent, group, spawns, cause.as_ref());
        }
    }

    fn fan_out(
        &mut self,
        parent: &Token,
        group: String,
        spawns: Vec<(usize, NewBranches)>,
        cause: Option<&Failure>,
    ) {
        let snapshot = std::rc::Rc::clone(&self.snapshot);
        let total: u32 = spawns.iter().map(|(_, branches)| branches.count()).sum();
        if total == 0 || !self.is_running() {
            return;
        }
        let item_var = spawns.iter().find_map(|(transition, _)| {
            match &snapshot.workflow.transitions[*transition].spawn {
                Spawn::ForEach { item_var, .. } => Some(item_var.clone()),
                Spawn::One | Spawn::Count(_) => None,
            }
        });
        let id = self.fans.next_id();
        let outer = parent.branch.clone();
        let node_id = snapshot.workflow.nodes[parent.node].id.as_str();
        let started = json!({"token_id": parent.id.to_string(), "node_id": node_id});
        self.fans.open(Instance::new(id, group, total, outer, item_var));
        self.note_on_instance(id, RunEventKind::FanOutStarted, started);
        let mut index = 0;
        for (transition, branches) in spawns {
            let to = snapshot.workflow.transitions[transition].to;
            let loops = self.loops_after(parent, transition);
            let items: Vec<Option<Value>> = match branches {
                NewBranches::Count(count) => (0..count).map(|_| None).collect(),
                NewBranches::Items(items) => items.into_iter().map(Some).collect(),
            };
            for item in items {
                if !self.is_running() {
                    return;
                }
                let branch = Branch {
                    instance: id,
                    index,
                    item,
                    output: Value::Null,
                };
                index += 1;
                self.spawn_token(to, Some(parent.id), Some(branch), loops.clone(), cause.cloned());
            }
        }
    }

    pub(super) fn loops_after(&self, parent: &Token, transition: usize) -> BTreeMap<String, u64> {
        let mut loops = parent.loops.clone();
        let transition = &self.snapshot.workflow.transitions[transition];
        if transition.in_cycle {
            *loops.entry(transition.id.clone()).or_default() += 1;
        }
        loops
    }
}

/// Each item is saved with the tokens of its branch.
fn check_items(place: &str, items: &[Value]) -> Result<(), Failure> {
    let mut all = 0;
    for (index, item) in items.iter().enumerate() {
        let bytes = json_bytes(item);
        TooLarge::check(format!("{place}: item {index}"), bytes, FAN_OUT_ITEM_BYTES)?;
        all += bytes;
    }
    Ok(TooLarge::check(
        format!("{place}: the list"),
        all,
        FAN_OUT_ITEMS_BYTES,
    )?)
}
