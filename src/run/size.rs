//! Size limits, checked before a decision is committed so that every row fits. A value that is too large fails its token or
//! rejects the request that carried it, with a message that names the value and the limit.

use serde_json::Value;

use crate::base::compute::write_steps;
use crate::base::failure::Failure;
use crate::base::limits::{
    CHECKPOINT_BYTES, DEPTH, JOIN_RESULTS_BYTES, RESULT_BYTES, ROW_BYTES, TooLarge, depth_of,
};
use crate::base::text::json_bytes;
use crate::protocol::task::Artifact;
use crate::run::rejection::Rejection;
use crate::run::state::{NewRun, Run};
use crate::run::token::{Token, TokenId};
use crate::run::wait::gate::{GateDecision, GateState};

/// Upper bound for a token's row without its values: numbers, times, names, keys and up to three failures.
const TOKEN_BYTES: usize = 20 << 10;
/// Upper bound for a step of a report, or one of its retries.
const STEP_BYTES: usize = 512;
const LOOP_BYTES: usize = 96;
/// Passes over a result: it is measured, and written with its token.
const RESULT_PASSES: u64 = 2;
/// Up to this size, a branch output equal to the token's output is written twice.
const WRITTEN_TWICE_BYTES: usize = 16 << 10;
/// Upper bound for a message to another run without its value.
const MESSAGE_BYTES: usize = 4 << 10;
/// Limit for the partial artifacts in a timeout record.
const ARTIFACTS_BYTES: usize = 256 << 10;

impl NewRun {
    /// The snapshot and the input are saved unchanged, in one row each.
    pub fn check_size(&self) -> Result<(), TooLarge> {
        TooLarge::check(
            "the workflow with all that it uses",
            self.snapshot.text.len(),
            ROW_BYTES,
        )?;
        TooLarge::check("the input", json_bytes(&self.input), ROW_BYTES)
    }
}

impl Token {
    /// Upper bound for the size of its row.
    pub(in crate::run) fn row_bytes(&self) -> usize {
        TOKEN_BYTES + self.value_bytes()
    }

    /// The size of its values.
    pub(in crate::run) fn value_bytes(&self) -> usize {
        let branch = self.branch.as_ref().map_or(0, |branch| {
            let item = branch.item.as_ref().map_or(0, json_bytes);
            // A large branch output that equals the token's output is written once.
            let output = match self.output.as_ref() == Some(&branch.output) {
                true => json_bytes(&branch.output).min(WRITTEN_TWICE_BYTES),
                false => json_bytes(&branch.output),
            };
            item + output
        });
        let retries = self.steps.iter().map(|step| step.retries.len()).sum::<usize>();
        self.output.as_ref().map_or(0, json_bytes)
            + branch
            + self.undo_bytes()
            + self.checkpoint.as_ref().map_or(0, json_bytes)
            + (self.steps.len() + retries) * STEP_BYTES
            + self.loops.len() * LOOP_BYTES
    }
}

impl Run {
    /// Checks that a result can be saved and read again. Returns its size in bytes.
    pub(in crate::run) fn check_result(&self, id: TokenId, result: &Value) -> Result<usize, Failure> {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node].id;
        let steps = RESULT_PASSES * write_steps(result);
        self.work
            .charge_for(format_args!("the result of node {node}"), steps)?;
        let bytes = json_bytes(result);
        TooLarge::check(format_args!("the result of node {node}"), bytes, RESULT_BYTES)?;
        if depth_of(result) > DEPTH {
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the result of node {node} is nested deeper than the limit of {DEPTH}"),
            ));
        }
        Ok(bytes)
    }

    /// Checks that a token whose work is done can be saved with all its values. Returns their size in bytes.
    pub(in crate::run) fn check_token(&self, id: TokenId) -> Result<usize, Failure> {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node].id;
        if let Some(branch) = &token.branch {
            // The result itself was already checked.
            if token.output.as_ref() != Some(&branch.output) {
                let what = format_args!("the output of branch {} at node {node}", branch.index);
                TooLarge::check(what, json_bytes(&branch.output), RESULT_BYTES)?;
            }
        }
        let what = "the token with its result, its branch and what it overwrote in the context";
        let bytes = token.value_bytes();
        let row = TOKEN_BYTES + bytes;
        TooLarge::check(format_args!("{what}, at node {node},"), row, ROW_BYTES)?;
        Ok(bytes)
    }

    /// Checks that a token with values of `bytes` may wait at a join. Waiting results stay in memory until the join fires.
    pub(in crate::run) fn check_joined(&self, bytes: usize) -> Result<(), Failure> {
        let waiting = self.fans.joined_bytes() + bytes;
        Ok(TooLarge::check(
            "all results that wait at joins",
            waiting,
            JOIN_RESULTS_BYTES,
        )?)
    }

    /// Drops a checkpoint that is too large to save: the next attempt then begins at the first step.
    pub(in crate::run) fn drop_large_checkpoint(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let bytes = token.checkpoint.as_ref().map_or(0, json_bytes);
        let is_too_large = bytes > CHECKPOINT_BYTES || (bytes > 0 && token.row_bytes() > ROW_BYTES);
        if is_too_large {
            self.change(id, |token| token.checkpoint = None);
        }
    }
}

/// The input of a child is saved in an outbox row.
pub(in crate::run) fn check_child_input(node: &str, input: &Value) -> Result<(), Failure> {
    let what = format!("the input of the workflow that node {node} calls");
    Ok(TooLarge::check(
        what,
        json_bytes(input),
        ROW_BYTES - MESSAGE_BYTES,
    )?)
}

/// Checks a value from a request that is to become a token's result.
pub(in crate::run) fn check_received_result(what: &'static str, value: &Value) -> Result<(), Rejection> {
    TooLarge::check(what, json_bytes(value), RESULT_BYTES).map_err(Rejection::TooLarge)
}

/// A decision is saved with its gate, and becomes the result of a token.
pub(in crate::run) fn check_decision(gate: &GateState, decision: &GateDecision) -> Result<(), Rejection> {
    let bytes = json_bytes(decision);
    TooLarge::check("the decision", bytes, RESULT_BYTES).map_err(Rejection::TooLarge)?;
    TooLarge::check("the gate with its decision", json_bytes(gate) + bytes, ROW_BYTES)
        .map_err(Rejection::TooLarge)
}

/// Truncates partial artifacts to what a timeout record may hold.
pub(in crate::run) fn bounded_artifacts(mut artifacts: Vec<Artifact>) -> Vec<Artifact> {
    let mut remaining_bytes = ARTIFACTS_BYTES;
    for artifact in &mut artifacts {
        let end = artifact.text.floor_char_boundary(remaining_bytes);
        if end < artifact.text.len() {
            artifact.text.truncate(end);
            artifact.complete = false;
        }
        remaining_bytes -= end;
    }
    artifacts
}
