//! How a token ends its work, and the transitions that it takes.

use std::rc::Rc;

use serde_json::Value;

use crate::base::compute::TOKEN_STEPS;
use crate::base::failure::Failure;
use crate::base::text::shorten;
use crate::definition::node::{NoMatchPolicy, NodeKind};
use crate::definition::path::{Path, Root};
use crate::definition::transition::{Transition, TransitionOn};
use crate::definition::wait::Wait;
use crate::protocol::task::Emitted;
use crate::run::fan::Branch;
use crate::run::fan::out::Move;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::token::{Token, TokenId, TokenStatus};

/// The most transitions that the message of a dead end names.
const NAMED_TRANSITIONS: usize = 8;
/// The code of a dead end: the node has transitions and none matched.
pub(in crate::run) const NO_TRANSITION: &str = "no_transition";

impl Run {
    /// The token of an attempt, if the attempt is current and the token has status `doing`.
    pub(in crate::run) fn current_attempt(
        &self,
        token_id: &str,
        epoch: u64,
        doing: TokenStatus,
    ) -> Result<TokenId, Rejection> {
        let token = TokenId::parse(token_id).and_then(|id| self.tokens.get(&id));
        token
            .filter(|token| token.status == doing && token.epoch == epoch)
            .map(|token| token.id)
            .ok_or_else(|| Rejection::StaleAttempt {
                token: token_id.to_string(),
                epoch,
            })
    }

    /// The node's work is done: maps its result, then takes the success transitions.
    pub(in crate::run) fn succeed(&mut self, id: TokenId, result: Value) {
        self.succeed_with(id, result, Vec::new());
    }

    /// As above, with emitted events. They are posted only in the commit that completes the token.
    pub(in crate::run) fn succeed_with(&mut self, id: TokenId, result: Value, events: Vec<Emitted>) {
        match self.check_result(id, &result) {
            Ok(bytes) => self.changes.result_bytes += bytes,
            Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        }
        if self.is_ending() {
            self.post_events(id, events);
            self.change(id, |token| token.output = Some(result));
            return self.end_in_ending(id, TokenStatus::Completed, None);
        }
        let branch_before = self.tokens.live(id).branch.clone();
        let mapped = self.map_output(id, &result);
        // The result is saved on the token even if its mapping fails.
        self.note_latency(id);
        self.change(id, |token| {
            token.reason = None;
            token.output = Some(result);
        });
        if let Err(failure) = mapped {
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
        let bytes = match self.check_token(id) {
            Ok(bytes) => bytes,
            Err(failure) => {
                self.take_back_writes(id, branch_before);
                self.change(id, |token| token.output = None);
                return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
            }
        };
        let token = self.tokens.live(id);
        let cause = token.cause.clone();
        let moves = self.matching_moves(token, TransitionOn::Success, cause.as_ref());
        let moves = moves.and_then(|moves| match moves.is_empty() {
            true => self.check_dead_end(token).map(|()| moves),
            false => Ok(moves),
        });
        let moves = moves.and_then(|moves| match moves.iter().any(Move::is_join) {
            true => self.check_joined(bytes).map(|()| moves),
            false => Ok(moves),
        });
        match moves {
            Ok(moves) => {
                self.post_events(id, events);
                self.leave(id, TokenStatus::Completed, moves, None, |_| {});
            }
            Err(failure) if self.is_escalated(id, &failure) => {
                // A person may retry it again and again: undo patches must not add up, and the context must not show work
                // that is not done. The result stays on the token.
                self.take_back_writes(id, branch_before);
                self.end_unsuccessfully(id, TokenStatus::Failed, failure);
                self.mark_unwritten(id);
            }
            Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        }
    }

    /// Restores the context and the token's branch as they were before its result was mapped.
    pub(in crate::run) fn take_back_writes(&mut self, id: TokenId, branch: Option<Branch>) {
        let mut undo = Vec::new();
        self.change(id, |token| {
            undo = std::mem::take(&mut token.undo.writes);
            token.branch = branch;
        });
        self.context.undo(&undo);
        self.context.count_changed();
    }

    /// Maps the token's result again, after its writes were taken back. A result that no longer fits writes nothing.
    pub(in crate::run) fn write_again(&mut self, id: TokenId) -> Result<(), Failure> {
        let token = self.tokens.live(id);
        let branch_before = token.branch.clone();
        let result = token.output.clone().unwrap_or_default();
        self.map_output(id, &result)?;
        let checked = self.check_token(id);
        if checked.is_err() {
            self.take_back_writes(id, branch_before);
        }
        checked.map(|_| ())
    }

    /// Completes a token without taking a transition.
    pub(in crate::run) fn end_path(&mut self, id: TokenId) {
        self.leave(id, TokenStatus::Completed, Vec::new(), None, |_| {});
    }

    /// Publishes the latency of a node with an adaptive limit, without the time the run was paused.
    fn note_latency(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node];
        if let Some(started_at) = token.started_at.filter(|_| node.adaptive) {
            let since_start = self.clock().saturating_sub(started_at);
            let millis = since_start.saturating_sub(token.stopped_ms);
            self.changes.latencies.push((node.id.clone(), id, millis));
        }
    }

    /// A token failed or timed out. It escalates to a person if its node asks for that, else it ends.
    pub(in crate::run) fn end_unsuccessfully(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        mut failure: Failure,
    ) {
        let token = self.tokens.live(id);
        failure.node_id = Some(self.snapshot.workflow.nodes[token.node].shown_id().to_string());
        failure.token_id = Some(id.to_string());
        if self.is_ending() {
            return self.end_in_ending(id, status, Some(failure));
        }
        match self.is_escalated(id, &failure) {
            true => self.escalate(id, status, failure),
            false => self.end_without_escalation(id, status, failure),
        }
    }

    /// Ends a failed or timed-out token without escalation: it takes its failure or timeout transitions. Without any, its
    /// branch ends, or else the run fails.
    pub(in crate::run) fn end_without_escalation(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        failure: Failure,
    ) {
        let token = self.tokens.live(id);
        let on = match status {
            TokenStatus::TimedOut => TransitionOn::Timeout,
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::Executing
            | TokenStatus::WaitingForSiblings
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::AwaitingHuman
            | TokenStatus::Suspended
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::Cancelled => TransitionOn::Failure,
        };
        let moves = self.matching_moves(token, on, Some(&failure));
        let covered = self.will_be_joined(token.branch.as_ref());
        let instance = token.branch.as_ref().map(|branch| branch.instance);
        let error = failure.clone();
        let note = |token: &mut Token| token.error = Some(error);
        let fatal = match moves {
            Ok(moves) if !moves.is_empty() => {
                return self.leave(id, status, moves, Some(failure), note);
            }
            Ok(_) => failure,
            Err(wrong) => wrong,
        };
        self.mark_interrupted(id);
        self.end(id, status, note);
        if !covered {
            return self.fail(fatal);
        }
        let instance = instance.expect("only a token in a branch is joined");
        self.fans.set_error(instance, fatal);
    }

    /// A token leaves its node by `moves`. It ends, or waits at a join.
    fn leave(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        moves: Vec<Move>,
        cause: Option<Failure>,
        update: impl FnOnce(&mut Token),
    ) {
        let join = moves.iter().find_map(|next| match next {
            Move::Join {
                transition,
                instance,
                index,
            } => Some((*transition, *instance, *index)),
            Move::Step { .. } | Move::Spawn { .. } => None,
        });
        if join.is_some() {
            self.change(id, update);
        } else {
            self.end(id, status, update);
        }
        let parent = match join {
            Some(_) => self.tokens.live(id).clone(),
            None => self.tokens.last_ended().expect("it ended just now").clone(),
        };
        self.follow(&parent, moves, cause);
        // What followed has ended the run, and the end waits for this token's report, which it has.
        if self.is_ending() && self.tokens.get(&id).is_some() {
            return self.end_in_ending(id, status, self.tokens.live(id).error.clone());
        }
        if let Some((transition, instance, index)) = join
            && self.is_running()
        {
            self.arrive(id, status, transition, (instance, index));
        }
    }

    fn map_output(&mut self, id: TokenId, result: &Value) -> Result<(), Failure> {
        let snapshot = Rc::clone(&self.snapshot);
        let token = self.tokens.live(id);
        let node = &snapshot.workflow.nodes[token.node];
        let in_branch = token.branch.is_some();
        let Some(mapping) = &node.output_mapping else {
            let has_result = match &node.kind {
                NodeKind::PassThrough => false,
                NodeKind::Wait(wait) => matches!(**wait, Wait::Signal { .. }),
                NodeKind::Task { .. }
                | NodeKind::Action { .. }
                | NodeKind::Workflow { .. }
                | NodeKind::Gate(_) => true,
            };
            if !has_result {
                return Ok(());
            }
            if in_branch {
                self.write_branch(id, |output| *output = result.clone());
                return Ok(());
            }
            let target = Path {
                root: Root::State,
                segments: vec![node.id.clone()],
            };
            return self.write_context(id, vec![(&target, result.clone())]);
        };
        let vars = self.vars(token, error_value(token.cause.as_ref()))?;
        let mut scope = self.scope(&vars);
        scope.bind("result", result);
        let mut shared = Vec::new();
        let mut own = Vec::new();
        for (path, template) in mapping {
            let value = template
                .render(&scope)
                .map_err(|wrong| mapping_failure(&format!("output_mapping of node {}", node.id), &wrong))?;
            match path.root {
                Root::State | Root::Output => shared.push((path, value)),
                Root::Branch if in_branch => own.push((path, value)),
                Root::Branch => {
                    return Err(Failure::validation(
                        "invalid_target",
                        format!("output_mapping of node {}: this token is in no branch", node.id),
                    ));
                }
            }
        }
        drop(scope);
        let (wrote_own, dropped) = (!own.is_empty(), mapping.is_empty());
        self.write_context(id, shared)?;
        self.write_branch(id, |output| {
            for (path, value) in own {
                path.write_value(output, value);
            }
            // The last node's result is the branch's output, unless its mapping wrote or dropped it.
            if !wrote_own && !dropped {
                *output = result.clone();
            }
        });
        Ok(())
    }

    /// Writes to the context and records the undo patches on the token.
    fn write_context(&mut self, id: TokenId, values: Vec<(&Path, Value)>) -> Result<(), Failure> {
        let undo = self.context.write(values, Some(id), &self.work)?;
        if !undo.is_empty() {
            self.change(id, |token| token.undo.writes.extend(undo));
        }
        Ok(())
    }

    fn write_branch(&mut self, id: TokenId, write: impl FnOnce(&mut Value)) {
        if self.tokens.live(id).branch.is_some() {
            self.change(id, |token| {
                if let Some(branch) = &mut token.branch {
                    write(&mut branch.output);
                }
            });
        }
    }

    /// The transitions to take: all matches of the lowest priority number that has any.
    fn matching_moves(
        &self,
        token: &Token,
        on: TransitionOn,
        error: Option<&Failure>,
    ) -> Result<Vec<Move>, Failure> {
        let error = error_value(error);
        let vars = self.vars(token, error.clone())?;
        let scope = self.scope(&vars);
        let mut matches: Vec<usize> = Vec::new();
        let transitions = &self.snapshot.workflow.transitions;
        for &index in self.snapshot.routes_from(token.node) {
            let transition = &transitions[index];
            if transition.on != on {
                continue;
            }
            if matches
                .first()
                .is_some_and(|&first| transitions[first].priority < transition.priority)
            {
                break;
            }
            let fired = token.loops.get(&transition.id).copied().unwrap_or(0);
            if transition.iterations_max.is_some_and(|most| fired >= most) {
                continue;
            }
            let holds = match &transition.condition {
                None => true,
                Some(condition) => condition.evaluate_bool(&scope).map_err(|wrong| {
                    mapping_failure(&format!("condition of transition {}", transition.id), &wrong)
                })?,
            };
            if holds {
                matches.push(index);
            }
        }
        let moves: Vec<Move> = matches
            .into_iter()
            .map(|index| self.plan(token, index, &error))
            .collect::<Result<_, _>>()?;
        if moves.iter().filter(|next| next.is_join()).count() > 1 {
            return Err(Failure::validation(
                "two_joins",
                "more than one join matches at once; a token can wait at one only",
            ));
        }
        Ok(moves)
    }

    /// No success transition matched. That ends the path if the node has none, or if its `on_no_match` says so.
    fn check_dead_end(&self, token: &Token) -> Result<(), Failure> {
        let workflow = &self.snapshot.workflow;
        let node = &workflow.nodes[token.node];
        match node.on_no_match.unwrap_or(workflow.on_no_match) {
            NoMatchPolicy::End => return Ok(()),
            NoMatchPolicy::Fail => {}
        }
        let routes = self.snapshot.routes_from(token.node).iter();
        let routes = routes.map(|&index| &workflow.transitions[index]);
        let routes: Vec<&Transition> = routes
            .filter(|transition| transition.on == TransitionOn::Success)
            .collect();
        if routes.is_empty() {
            return Ok(());
        }
        let mut refused: Vec<String> = routes
            .iter()
            .take(NAMED_TRANSITIONS)
            .map(|transition| why_no_match(transition, token))
            .collect();
        if routes.len() > NAMED_TRANSITIONS {
            refused.push(format!("and {} more", routes.len() - NAMED_TRANSITIONS));
        }
        let message = format!(
            "no transition of node {} matched: {}. Add one without a condition and with a higher priority number, or write \
             \"on_no_match\": \"end\" if the path may end here",
            node.id,
            refused.join(", ")
        );
        Err(Failure::validation(NO_TRANSITION, message))
    }

    /// Moves a live token to a terminal status and out of memory.
    pub(in crate::run) fn end(&mut self, id: TokenId, status: TokenStatus, update: impl FnOnce(&mut Token)) {
        let now = self.changes.now;
        let order = self.tokens.count_done() + 1;
        self.work.count(TOKEN_STEPS);
        self.change(id, |token| {
            token.status = status;
            token.exit_order = token.exit_order.or(Some(order));
            token.ended_at = token.ended_at.or(Some(now));
            token.watch_at = None;
            update(token);
        });
        let is_ending = self.is_ending();
        let ended = self.tokens.end(id);
        // The decision to end has closed every join.
        if !is_ending {
            self.fans.leave(ended);
        }
    }
}

/// The condition that was false, or the iterations that are used up.
fn why_no_match(transition: &Transition, token: &Token) -> String {
    let fired = token.loops.get(&transition.id).copied().unwrap_or(0);
    match (transition.iterations_max, &transition.condition) {
        (Some(most), _) if fired >= most => format!("{} (its {most} iterations are used up)", transition.id),
        (_, Some(condition)) => format!("{} ({} is false)", transition.id, shorten(condition.source())),
        (_, None) => unreachable!("a transition without a condition matches while it has iterations left"),
    }
}

pub(in crate::run) fn error_value(failure: Option<&Failure>) -> Value {
    failure
        .and_then(|failure| serde_json::to_value(failure).ok())
        .unwrap_or(Value::Null)
}

pub(in crate::run) fn mapping_failure(place: &str, wrong: &crate::cel::Error) -> Failure {
    let code = match wrong.is_unit_exhausted {
        true => "limit_exceeded",
        false => "expression_failed",
    };
    Failure::validation(code, format!("{place}: {wrong}"))
}
