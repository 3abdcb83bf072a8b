//! Restores the context as it was when a token was created, by undoing every later write, newest first. The caller passes
//! the patches row by row, so it decides how many rows are in memory.

use serde::{Deserialize, Serialize};

use crate::base::ordered::sort_by_key;
use crate::definition::snapshot::Snapshot;
use crate::run::context::Context;
use crate::run::event::{RestartPoint, TokenSummary};
use crate::run::recovery::undo::Patch;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::token::TokenId;

/// A restart from a node, while its writes are being undone.
#[derive(Debug)]
pub struct Rewind {
    node: usize,
    target: TokenId,
    writes: Vec<(TokenId, WrittenAt)>,
    context: Box<Context>,
}

/// Which of a token's writes: at its exit (`undo` on its row), or at its creation (`merge_undo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenAt {
    Exit,
    Birth,
}

impl WrittenAt {
    pub fn name(self) -> &'static str {
        match self {
            WrittenAt::Exit => "exit",
            WrittenAt::Birth => "birth",
        }
    }
}

impl Rewind {
    /// Plans to undo everything after the creation of the last token at `node`, a node of `snapshot`.
    pub fn plan(
        run: &Run,
        snapshot: &Snapshot,
        node: usize,
        past: &[TokenSummary],
    ) -> Result<Rewind, Rejection> {
        let node_id = snapshot.workflow.nodes[node].id.as_str();
        let created_there = past.iter().filter(|token| &*token.node_id == node_id);
        let Some(target) = created_there.max_by_key(|token| token.id) else {
            return Err(Rejection::NoWayBack("the run has never been at this node".into()));
        };
        if target.branch.is_some() {
            let message = "the node lies in a branch; go back to the node that fans out, or to the start";
            return Err(Rejection::NoWayBack(message.into()));
        }
        let Some(stretches) = stretches_back_to(target, past) else {
            let message = "the run has not been at this node since it was restarted; go back to a node it has \
                           been at since, or to the start";
            return Err(Rejection::NoWayBack(message.into()));
        };
        let stands = |write: &Write| stretches.iter().any(|stretch| stretch.holds(write));
        let mut writes: Vec<Write> = past.iter().flat_map(Write::of).filter(stands).collect();
        sort_by_key(&mut writes, |write| std::cmp::Reverse(write.moment()));
        Ok(Rewind {
            node,
            target: target.id,
            writes: writes.iter().map(|write| (write.token, write.at)).collect(),
            context: Box::new(run.context().clone()),
        })
    }

    /// The writes to undo, in this order.
    pub fn writes(&self) -> &[(TokenId, WrittenAt)] {
        &self.writes
    }

    pub fn undo(&mut self, patches: &[Patch]) {
        self.context.undo(patches);
    }

    /// To be called after all writes were undone.
    pub fn finish(mut self) -> RestartPoint {
        self.context.count_changed();
        RestartPoint {
            node: self.node,
            target: self.target,
            context: self.context,
        }
    }
}

/// A token writes when its work is done. A join writes when its continuation is created, after the exit of the last arrival.
#[derive(Clone, Copy, Debug)]
struct Write {
    token: TokenId,
    at: WrittenAt,
    order: u64,
}

impl Write {
    fn of(past: &TokenSummary) -> impl Iterator<Item = Write> {
        let token = past.id;
        let exit = past.exit_order.filter(|_| past.wrote).map(|order| Write {
            token,
            at: WrittenAt::Exit,
            order,
        });
        let birth = past.wrote_at_creation.then_some(Write {
            token,
            at: WrittenAt::Birth,
            order: past.created_order,
        });
        exit.into_iter().chain(birth)
    }

    fn moment(&self) -> (u64, WrittenAt, TokenId) {
        (self.order, self.at, self.token)
    }

    /// What was written together with the creation of that token counts as before it.
    fn is_after_creation_of(&self, token: &TokenSummary) -> bool {
        match self.at {
            WrittenAt::Exit => self.order > token.created_order,
            WrittenAt::Birth => (self.order, self.token) > (token.created_order, token.id),
        }
    }
}

/// From the creation of one token to the creation of another, or to now.
struct Stretch<'a> {
    from: &'a TokenSummary,
    to: Option<&'a TokenSummary>,
}

impl Stretch<'_> {
    fn holds(&self, write: &Write) -> bool {
        write.is_after_creation_of(self.from) && self.to.is_none_or(|to| !write.is_after_creation_of(to))
    }
}

/// The stretches of history between the target and now. An earlier restart undid everything after its own target: those
/// stretches are skipped. None if the target itself is in one of them.
fn stretches_back_to<'a>(target: &'a TokenSummary, past: &'a [TokenSummary]) -> Option<Vec<Stretch<'a>>> {
    let mut stretches = Vec::new();
    let mut to: Option<&TokenSummary> = None;
    loop {
        let before_end = |token: &&TokenSummary| to.is_none_or(|to| token.id <= to.id);
        let restarts = past.iter().filter(|token| token.went_back_to.is_some());
        let last = restarts
            .filter(|token| token.id > target.id)
            .filter(before_end)
            .max_by_key(|token| token.id);
        let Some(restart) = last else {
            stretches.push(Stretch { from: target, to });
            return Some(stretches);
        };
        stretches.push(Stretch { from: restart, to });
        let went_to = past.iter().find(|token| Some(token.id) == restart.went_back_to)?;
        if went_to.id < target.id {
            return None;
        }
        to = Some(went_to);
    }
}
