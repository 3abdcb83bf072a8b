//! Compensations: the work of completed tokens is undone in reverse order of completion, one token after the other. Ended tokens
//! are not in memory, so the host reads the rows that `needed_rows` asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::ordered::{map_of, sort_by_key};
use crate::run::event::{Past, TokenSummary};
use crate::run::recovery::ending::{EndPhase, shortened};
use crate::run::state::Run;
use crate::run::token::{Token, TokenId, TokenStatus};

/// The most tokens that the result of the compensation names. It is part of the header's row.
const NAMED_MAX: usize = 100;

/// Marks a token that undoes the work of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compensates {
    pub token: TokenId,
    /// What that token's node returned. Dropped when the compensation has ended.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompensatedToken {
    pub node_id: String,
    pub token_id: TokenId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What an ended run shows of its compensation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompensationResult {
    pub status: CompensationStatus,
    pub done: Vec<CompensatedToken>,
    pub failed: Vec<CompensatedToken>,
    /// Tokens that are in neither list because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// Why a run whose work was undone does not go on from where it stopped.
pub const COMPENSATED: &str =
    "the run has compensated what it had done; restart it from the beginning to do it again";

impl CompensationResult {
    /// Given up before the first compensation.
    pub(in crate::run) fn not_begun() -> CompensationResult {
        CompensationResult {
            status: CompensationStatus::Failed,
            done: Vec::new(),
            failed: Vec::new(),
            omitted: 0,
        }
    }

    /// Compensations were tried, or it is not known whether they were: what the run had done is undone, or half undone.
    pub fn undid_work(&self) -> bool {
        !self.done.is_empty() || !self.failed.is_empty() || self.omitted > 0
    }

    /// A later end of the run does not undo the same work.
    pub(in crate::run) fn settles_work(&self) -> bool {
        self.status == CompensationStatus::Completed || self.undid_work()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompensationStatus {
    Completed,
    Partial,
    Failed,
}

/// The progress of the compensation. Not stored: it is derived from the rows of the tokens.
#[derive(Debug, Default)]
pub(in crate::run) struct Compensations {
    /// Tokens whose work is still to be undone, the next one last. `None` until the rows were read.
    remaining: Option<Vec<TokenId>>,
    node_ids: BTreeMap<TokenId, Rc<str>>,
    done: Vec<CompensatedToken>,
    done_count: u64,
    failed_count: u64,
}

impl Compensations {
    /// Nothing is left to be undone, or there is no time for it.
    pub fn is_over(&self, expired: bool) -> bool {
        self.remaining
            .as_ref()
            .is_some_and(|remaining| remaining.is_empty() || expired)
    }
}

/// Rows that the engine needs to go on. The host reads them and feeds `Event::RowsRead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededRows {
    /// Summaries of all tokens.
    Past,
    /// One ended token.
    Token(TokenId),
}

/// The answer to `NeededRows`.
#[derive(Clone, Debug)]
pub enum ReadRows {
    Past(Box<Past>),
    Token(Box<Token>),
}

impl Run {
    pub fn needed_rows(&self) -> Option<NeededRows> {
        let ending = self.header.ending.as_deref()?;
        if ending.phase != EndPhase::Compensating || !self.tokens.is_empty() {
            return None;
        }
        match &self.compensations.remaining {
            None => Some(NeededRows::Past),
            Some(remaining) => remaining.last().map(|token| NeededRows::Token(*token)),
        }
    }

    /// Rows that are not needed any more are ignored: the object may have read them before another event.
    pub(in crate::run) fn rows_read(&mut self, rows: ReadRows) {
        match (self.needed_rows(), rows) {
            (Some(NeededRows::Past), ReadRows::Past(past)) => self.plan_compensations(&past),
            (Some(NeededRows::Token(id)), ReadRows::Token(token)) if token.id == id => {
                self.compensate(&token)
            }
            (Some(_) | None, ReadRows::Past(_) | ReadRows::Token(_)) => {}
        }
    }

    fn plan_compensations(&mut self, past: &Past) {
        let mut compensations = Compensations::default();
        let mut compensated = BTreeSet::new();
        for token in &past.tokens {
            let Some(target) = token.compensates.filter(|_| token.status.is_terminal()) else {
                continue;
            };
            // An earlier end of the run has shown what it undid.
            let undone = past.tokens.binary_search_by_key(&target, |token| token.id);
            let undone = undone.ok().map(|index| &past.tokens[index]);
            let Some(undone) = undone.filter(|token| self.is_unsettled(token)) else {
                continue;
            };
            compensated.insert(target);
            if token.status == TokenStatus::Completed {
                compensations.count_done(undone.node_id.to_string(), target);
            } else {
                compensations.failed_count += 1;
            }
        }
        // A resumed token continues the work of another: the last of them has the result.
        let mut works: BTreeMap<TokenId, &TokenSummary> = BTreeMap::new();
        for token in past.tokens.iter().filter(|token| self.is_to_be_undone(token)) {
            works.insert(token.work_of.unwrap_or(token.id), token);
        }
        let mut remaining: Vec<&TokenSummary> = works
            .into_values()
            .filter(|token| !compensated.contains(&token.id))
            .collect();
        sort_by_key(&mut remaining, |token| (token.exit_order, token.id));
        let node_ids = remaining
            .iter()
            .map(|token| (token.id, Rc::clone(&token.node_id)));
        compensations.node_ids = map_of(node_ids);
        compensations.remaining = Some(remaining.into_iter().map(|token| token.id).collect());
        self.compensations = compensations;
    }

    /// The token's work was done, since the last end that undid or kept the work before it.
    pub(super) fn is_to_be_undone(&self, token: &TokenSummary) -> bool {
        let workflow = &self.snapshot.workflow;
        let has_compensation = || {
            let node = workflow.node_index(&token.node_id);
            node.is_some_and(|node| workflow.nodes[node].compensate.is_some())
        };
        self.is_unsettled(token) && token.has_output && token.status.is_terminal() && has_compensation()
    }

    fn is_unsettled(&self, token: &TokenSummary) -> bool {
        token
            .exit_order
            .is_some_and(|order| order > self.header.settled_order)
    }

    /// Begins the compensation of a token.
    fn compensate(&mut self, token: &Token) {
        let remaining = self.compensations.remaining.as_mut();
        remaining.expect("its rows were read").pop();
        let Some(node) = self.snapshot.workflow.nodes[token.node].compensate else {
            unreachable!("only tokens of nodes with a compensation are undone");
        };
        self.insert_token(Token {
            compensates: Some(Box::new(Compensates {
                token: token.id,
                result: token.output.clone().unwrap_or_default(),
            })),
            parent: Some(token.id),
            ..Token::new(self.tokens.next_id(), node, self.changes.now)
        });
    }

    /// `id` is the token of the compensation, `of` the node whose work it undoes.
    pub(in crate::run) fn compensation_ended(
        &mut self,
        of: usize,
        id: TokenId,
        status: TokenStatus,
        error: Option<Failure>,
    ) {
        let node_id = self.snapshot.workflow.nodes[of].id.clone();
        let target = self.tokens.last_ended().filter(|token| token.id == id);
        let target = target.and_then(|token| token.compensates.as_ref());
        let target = target
            .expect("the token of a compensation names the token it undoes")
            .token;
        if status == TokenStatus::Completed {
            return self.compensations.count_done(node_id, target);
        }
        self.compensations.failed_count += 1;
        self.note_failed_compensation(CompensatedToken {
            node_id,
            token_id: target,
            error: error.map(shortened),
        });
    }

    fn note_failed_compensation(&mut self, failed: CompensatedToken) {
        let ending = self.header.ending.as_deref_mut();
        let list = &mut ending.expect("compensations belong to an end").failed;
        if list.len() < NAMED_MAX {
            list.push(failed);
            self.changes.header_changed = true;
        }
    }

    /// What remains is not tried, because of `failure`.
    pub(in crate::run) fn give_up_compensations(&mut self, failure: &Failure) {
        let remaining = self.compensations.remaining.as_mut().map(std::mem::take);
        for token_id in remaining.into_iter().flatten().rev() {
            let node_id = self.compensations.node_ids.get(&token_id);
            let node_id = node_id.expect("every token of the plan has its node").to_string();
            self.compensations.failed_count += 1;
            self.note_failed_compensation(CompensatedToken {
                node_id,
                token_id,
                error: Some(failure.clone()),
            });
        }
    }

    pub(in crate::run) fn compensation_result(&mut self) -> CompensationResult {
        let compensations = std::mem::take(&mut self.compensations);
        let ending = self.header.ending.as_deref_mut();
        let failures = std::mem::take(&mut ending.expect("compensations belong to an end").failed);
        let (done, failed) = (compensations.done_count, compensations.failed_count);
        let status = match (done, failed) {
            (_, 0) => CompensationStatus::Completed,
            (0, _) => CompensationStatus::Failed,
            (_, _) => CompensationStatus::Partial,
        };
        let named = (compensations.done.len() + failures.len()) as u64;
        CompensationResult {
            status,
            done: compensations.done,
            failed: failures,
            omitted: (done + failed).saturating_sub(named),
        }
    }
}

impl Compensations {
    /// What remains is not known: the rows cannot be read.
    pub fn give_up_reading(&mut self) {
        if self.remaining.is_none() {
            self.remaining = Some(Vec::new());
            self.failed_count += 1;
        }
    }

    fn count_done(&mut self, node_id: String, token_id: TokenId) {
        self.done_count += 1;
        if self.done.len() < NAMED_MAX {
            self.done.push(CompensatedToken {
                node_id,
                token_id,
                error: None,
            });
        }
    }
}
