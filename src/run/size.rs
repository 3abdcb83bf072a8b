//! One rule for sizes: what a row may hold is known before a decision is committed. A value that is too large fails the token
//! it belongs to, or refuses the request that brought it, and says what was too large and how much is allowed.

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

/// Numbers, moments and names of a token's row, its keys, up to three failures, and the room behind it.
const TOKEN_BYTES: usize = 20 << 10;
/// A step in a report, or one of its retries: names and numbers.
const STEP_BYTES: usize = 512;
const LOOP_BYTES: usize = 96;
/// A result is measured, and written with its token.
const RESULT_PASSES: u64 = 2;
/// As much of a branch's output as its token may write again.
const WRITTEN_TWICE_BYTES: usize = 16 << 10;
/// What a message to another run says besides the value it carries.
const MESSAGE_BYTES: usize = 4 << 10;
/// Partial work in the record of a timeout.
const ARTIFACTS_BYTES: usize = 256 << 10;

impl NewRun {
    /// What a start brings is saved as it is: the snapshot and the input are a row each.
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
    /// What its row takes, at most.
    fn row_bytes(&self) -> usize {
        TOKEN_BYTES + self.value_bytes()
    }

    /// What it holds besides names and numbers.
    pub(in crate::run) fn value_bytes(&self) -> usize {
        let branch = self.branch.as_ref().map_or(0, |branch| {
            let item = branch.item.as_ref().map_or(0, json_bytes);
            // A large one that is the token's own output is not written twice.
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
    /// A result that could not be saved, or not be read again, is none. How many bytes it takes.
    pub(in crate::run) fn check_result(&self, id: TokenId, result: &Value) -> Result<usize, Failure> {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node].id;
        // Measured here, kept on the token and saved with it.
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

    /// Whether a token whose work is done can be saved with all that it has to keep. How many bytes its values take.
    pub(in crate::run) fn check_token(&self, id: TokenId) -> Result<usize, Failure> {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node].id;
        if let Some(branch) = &token.branch {
            // The result itself was measured.
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

    /// Whether a token with values of so many bytes may wait at a join: results that wait are held in memory until the join fires.
    pub(in crate::run) fn check_joined(&self, bytes: usize) -> Result<(), Failure> {
        let waiting = self.fans.joined_bytes() + bytes;
        Ok(TooLarge::check(
            "all results that wait at joins",
            waiting,
            JOIN_RESULTS_BYTES,
        )?)
    }

    /// Work that can be taken up again is dropped where it is too large to be kept: the next attempt begins at the first step.
    pub(in crate::run) fn drop_large_checkpoint(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let bytes = token.checkpoint.as_ref().map_or(0, json_bytes);
        let is_too_large = bytes > CHECKPOINT_BYTES || (bytes > 0 && token.row_bytes() > ROW_BYTES);
        if is_too_large {
            self.change(id, |token| token.checkpoint = None);
        }
    }
}

/// The input of a child travels in a row of the outbox.
pub(in crate::run) fn check_child_input(node: &str, input: &Value) -> Result<(), Failure> {
    let what = format!("the input of the workflow that node {node} calls");
    Ok(TooLarge::check(
        what,
        json_bytes(input),
        ROW_BYTES - MESSAGE_BYTES,
    )?)
}

/// A value from outside that is to become a token's result.
pub(in crate::run) fn check_brought(what: &'static str, value: &Value) -> Result<(), Rejection> {
    TooLarge::check(what, json_bytes(value), RESULT_BYTES).map_err(Rejection::TooLarge)
}

/// A decision is kept with its gate, and becomes the result of a token.
pub(in crate::run) fn check_decision(gate: &GateState, decision: &GateDecision) -> Result<(), Rejection> {
    let bytes = json_bytes(decision);
    TooLarge::check("the decision", bytes, RESULT_BYTES).map_err(Rejection::TooLarge)?;
    TooLarge::check("the gate with its decision", json_bytes(gate) + bytes, ROW_BYTES)
        .map_err(Rejection::TooLarge)
}

/// As much partial work as the record of a timeout holds.
pub(in crate::run) fn bounded_artifacts(mut artifacts: Vec<Artifact>) -> Vec<Artifact> {
    let mut room = ARTIFACTS_BYTES;
    for artifact in &mut artifacts {
        let end = artifact.text.floor_char_boundary(room);
        if end < artifact.text.len() {
            artifact.text.truncate(end);
            artifact.complete = false;
        }
        room -= end;
    }
    artifacts
}
