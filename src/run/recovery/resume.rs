//! Resumes a run that failed or timed out: the interrupted tokens continue with the run's whole limit, and no finished
//! work is lost. Ended tokens stay ended: new tokens replace them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::json;

use crate::base::failure::Failure;
use crate::base::ordered::{map_of, set_of, sort_by_key};
use crate::definition::node::NodeRole;
use crate::definition::snapshot::Snapshot;
use crate::run::event::{InstanceSummary, Past, ResumeRows, RetryMode, TokenSummary};
use crate::run::fan::quorum::{BranchCounts, may_fire};
use crate::run::fan::{Instance, InstanceId, InstanceStatus};
use crate::run::header::{Header, PauseReason, RunStatus};
use crate::run::recovery::compensate::{COMPENSATED, CompensationResult};
use crate::run::recovery::version::NewVersion;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timeout_gate::WORKFLOW_TIMEOUT;
use crate::run::token::{Token, TokenId, TokenStatus};
use crate::run::wait::gate::GateKind;

/// Such a run lacks a path: it is not resumed, because its completion would look like a success.
pub const REACHED_A_LIMIT: &str = "the run met one of its limits where a path would have gone on; restart it";

/// What continues when the run is resumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResumePlan {
    /// Tokens that are replaced by new ones.
    pub tokens: Vec<TokenId>,
    /// Those among them that failed or timed out before the run ended.
    pub failed: Vec<TokenId>,
    pub instances: Vec<InstanceId>,
}

/// Ended tokens and instances, by their branch.
struct Branches<'a> {
    tokens: BTreeMap<(InstanceId, u32), Vec<&'a TokenSummary>>,
    inner: BTreeMap<(InstanceId, u32), Vec<&'a InstanceSummary>>,
}

enum Member<'a> {
    Token(&'a TokenSummary),
    Instance(&'a InstanceSummary),
}

impl<'a> Branches<'a> {
    fn of(past: &'a Past) -> Branches<'a> {
        let mut branches = Branches {
            tokens: BTreeMap::new(),
            inner: BTreeMap::new(),
        };
        for token in &past.tokens {
            if let Some(place) = token.branch {
                branches.tokens.entry(place).or_default().push(token);
            }
        }
        for instance in &past.instances {
            if let Some(place) = instance.parent {
                branches.inner.entry(place).or_default().push(instance);
            }
        }
        branches
    }

    fn tokens(&self, instance: InstanceId, index: u32) -> &[&'a TokenSummary] {
        self.tokens.get(&(instance, index)).map_or(&[], Vec::as_slice)
    }

    fn inner(&self, instance: InstanceId, index: u32) -> &[&'a InstanceSummary] {
        self.inner.get(&(instance, index)).map_or(&[], Vec::as_slice)
    }

    /// Whether a token or an instance of the branch is resumed.
    fn is_resumed(
        &self,
        instance: InstanceId,
        index: u32,
        tokens: &BTreeSet<TokenId>,
        instances: &BTreeSet<InstanceId>,
    ) -> bool {
        let mut members = self.tokens(instance, index).iter();
        let mut inner = self.inner(instance, index).iter();
        members.any(|token| tokens.contains(&token.id)) || inner.any(|it| instances.contains(&it.id))
    }

    /// The last member to end in a branch that did not complete. A completed token ended its path, and an inner fan-out
    /// whose join fired continued after it.
    fn last_ended(&self, instance: InstanceId, index: u32) -> Option<Member<'a>> {
        let members = self.tokens(instance, index).iter();
        let last = members.max_by_key(|token| (token.exit_order, token.id));
        let last = last.filter(|token| token.status != TokenStatus::Completed);
        let inner = self.inner(instance, index).iter().max_by_key(|inner| inner.id);
        let inner = inner.filter(|inner| !inner.has_fired);
        match (last, inner) {
            // The token fanned out and ended before its instance did.
            (Some(token), Some(inner)) if self.last_exit(inner.id) > token.exit_order => {
                Some(Member::Instance(inner))
            }
            (Some(token), _) => Some(Member::Token(token)),
            (None, Some(inner)) => Some(Member::Instance(inner)),
            (None, None) => None,
        }
    }

    /// When the last token inside an instance ended.
    fn last_exit(&self, instance: InstanceId) -> Option<u64> {
        let inside = self.tokens.range((instance, 0)..=(instance, u32::MAX));
        inside
            .flat_map(|(_, tokens)| tokens)
            .filter_map(|token| token.exit_order)
            .max()
    }
}

/// Whether a token was interrupted by the run's end. A run that had only run out of time, at the gate of its limit for
/// example, can also be resumed: it completes at once.
pub fn is_resumable(header: &Header, plan: &ResumePlan) -> bool {
    let out_of_time = |error: &Failure| error.code == WORKFLOW_TIMEOUT;
    !plan.tokens.is_empty() || header.error.as_ref().is_some_and(out_of_time)
}

impl TokenSummary {
    /// It had done its work and waited at a join.
    fn waited_at_join(&self) -> bool {
        self.joins_at.is_some()
    }
}

impl InstanceSummary {
    fn is_closed_by(&self, end: u64) -> bool {
        self.status == InstanceStatus::ClosedByRunEnd(end)
    }
}

impl Run {
    /// What the run's last end interrupted. If a join had failed, every branch that did not complete is resumed, whenever
    /// it ended; a branch that the join did not need stays ended.
    pub fn resume_plan(&self, past: &Past) -> ResumePlan {
        self.resume_plan_on(&self.snapshot, past)
    }

    /// As `resume_plan`, with the joins of another version.
    pub fn resume_plan_on(&self, snapshot: &Snapshot, past: &Past) -> ResumePlan {
        let end = self.header.ends;
        let is_closed = |instance: &&InstanceSummary| instance.is_closed_by(end);
        let closed: Vec<&InstanceSummary> = past.instances.iter().filter(is_closed).collect();
        let mut instances: BTreeSet<InstanceId> = set_of(closed.iter().map(|instance| instance.id));
        let is_interrupted = |token: &&TokenSummary| token.interrupted.is_some_and(|cut| cut.end == end);
        // Earlier builds could fail a run whose cancellation had been decided, and marked what was live then.
        let is_reopened = |token: &&TokenSummary| token.branch.is_none_or(|(id, _)| instances.contains(&id));
        let mut tokens: BTreeSet<TokenId> = set_of(
            past.tokens
                .iter()
                .filter(is_interrupted)
                .filter(is_reopened)
                .filter(|token| self.is_declared(&token.node_id))
                .map(|token| token.id),
        );
        let by_branch = Branches::of(past);
        let mut open = closed;
        while let Some(instance) = open.pop() {
            if could_fire(snapshot, instance, &by_branch, end) {
                continue;
            }
            for index in 0..instance.total {
                if by_branch.is_resumed(instance.id, index, &tokens, &instances) {
                    continue;
                }
                match by_branch.last_ended(instance.id, index) {
                    Some(Member::Token(token)) => {
                        tokens.insert(token.id);
                    }
                    Some(Member::Instance(inner)) => {
                        instances.insert(inner.id);
                        open.push(inner);
                    }
                    None => {}
                }
            }
        }
        let by_itself =
            |token: &&TokenSummary| tokens.contains(&token.id) && token.has_error && !token.waited_at_join();
        ResumePlan {
            failed: past
                .tokens
                .iter()
                .filter(by_itself)
                .map(|token| token.id)
                .collect(),
            tokens: tokens.into_iter().collect(),
            instances: instances.into_iter().collect(),
        }
    }

    /// Whether the node is none of the run's compensations and end handlers.
    fn is_declared(&self, node_id: &str) -> bool {
        let workflow = &self.snapshot.workflow;
        let node = workflow.node_index(node_id);
        node.is_none_or(|node| workflow.nodes[node].role == NodeRole::Declared)
    }

    pub(in crate::run) fn retry_requested(
        &mut self,
        by: Option<&str>,
        (mode, chosen): (RetryMode, Option<TokenId>),
        version: Option<NewVersion>,
        past: &Past,
        mut rows: ResumeRows,
    ) -> Result<(), Rejection> {
        match self.header.status {
            RunStatus::Failed | RunStatus::TimedOut => {}
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
                return Err(Rejection::NotEnded);
            }
            RunStatus::Completed => {
                return Err(Rejection::NotResumable(
                    "the run completed; restart it to run it again".into(),
                ));
            }
            RunStatus::Cancelled => {
                return Err(Rejection::NotResumable(
                    "the run was cancelled; restart it to run it again".into(),
                ));
            }
        }
        let undone = self.header.compensation.as_ref();
        if undone.is_some_and(CompensationResult::undid_work) {
            return Err(Rejection::NotResumable(COMPENSATED.into()));
        }
        if self.header.reached_a_limit() {
            return Err(Rejection::NotResumable(REACHED_A_LIMIT.into()));
        }
        let snapshot = version
            .as_ref()
            .map_or(&self.snapshot, |version| &version.snapshot);
        let snapshot = Rc::clone(snapshot);
        let plan = self.resume_plan_on(&snapshot, past);
        if !is_resumable(&self.header, &plan) {
            let message = "nothing was under way when the run ended; restart it";
            return Err(Rejection::NotResumable(message.into()));
        }
        if let Some(chosen) = chosen.filter(|chosen| !plan.tokens.contains(chosen)) {
            let can: Vec<String> = plan.tokens.iter().map(TokenId::to_string).collect();
            let message = format!(
                "token {chosen} is none of those that can go on: {}",
                can.join(", ")
            );
            return Err(Rejection::NotResumable(message));
        }
        self.check_resumable_on(version.as_ref(), past, &rows)?;
        let instances = whole_instances(&plan, &rows)?;
        let mut fields = json!({"mode": mode.name(), "token_ids": plan.tokens.iter()
            .take(crate::run::time::timeout_record::SHOWN).map(TokenId::to_string).collect::<Vec<_>>()});
        if version.is_some() {
            for token in &mut rows.tokens {
                self.adapt_token(&snapshot, token);
            }
        }
        let ended = whole_tokens(&plan, &rows)?;
        let is_other_version = version.is_some();
        if let Some(version) = version {
            self.note_versions(&version, &mut fields);
            self.change_version(version);
        }
        self.set_running_again();
        self.note_by(by, RunEventKind::RunRetried, fields);
        if mode == RetryMode::Escalate {
            let error = past_error(&plan, &ended);
            self.pause_since(PauseReason::Escalation, self.changes.now);
            let prompt = format!("The run ended: {error}. Shall it go on from there?");
            self.open_run_gate(GateKind::Escalation, prompt, &["retry", "fail"]);
        }
        self.reopen_instances(instances, is_other_version);
        if mode == RetryMode::DiscardAndRetry {
            self.undo_writes(&ended, chosen);
        }
        for token in ended {
            let keeps = match mode {
                RetryMode::RetryStep | RetryMode::Escalate => true,
                RetryMode::DiscardAndRetry => chosen.is_some_and(|chosen| chosen != token.id),
            };
            self.replace_token(token, keeps);
        }
        self.evaluate_reopened_joins(&plan);
        Ok(())
    }

    /// Sets the run running again with its whole limit. Earlier tokens no longer count towards the limit of tokens.
    pub(in crate::run) fn set_running_again(&mut self) {
        let now = self.changes.now;
        let header = &mut self.header;
        header.status = RunStatus::Running;
        header.ended_at = None;
        header.output = None;
        header.error = None;
        header.reason = None;
        header.compensation = None;
        header.on_end.clear();
        header.paused_at = None;
        header.stopped_at = None;
        header.pause_reasons.clear();
        header.warned = false;
        header.tokens_before = self.tokens.created();
        header.timeout_at = header.timeout_ms.map(|millis| now.saturating_add(millis));
        self.changes.header_changed = true;
        self.changes.publish_run = true;
    }

    /// Undoes what the tokens wrote before they failed. What other branches wrote since, over it or after it, stays. The
    /// inverse is saved with the next token that is created: a later restart first reapplies these writes, so that the patches
    /// of the other tokens fit again.
    fn undo_writes(&mut self, ended: &[&Token], chosen: Option<TokenId>) {
        let mut writers: Vec<&&Token> = ended
            .iter()
            .filter(|token| token.join.is_none())
            .filter(|token| chosen.is_none_or(|chosen| chosen == token.id))
            .collect();
        sort_by_key(&mut writers, |token| {
            std::cmp::Reverse((token.exit_order, token.id))
        });
        let lists = writers.iter().map(|token| token.undo.writes.as_slice());
        let inverse = self.context.undo_with_inverse(lists);
        self.changes.merge_undo.extend(inverse);
    }

    /// Outer instances first: each counts as a member of the branch it was created in.
    fn reopen_instances(&mut self, instances: Vec<Instance>, is_other_version: bool) {
        for mut instance in instances {
            let id = instance.id;
            if is_other_version {
                self.set_join_limits(&mut instance);
            }
            instance.reopen(self.clock());
            self.fans.open(instance);
            self.set_fan_in_timers(id);
        }
    }

    /// Creates a new token in place of an interrupted one.
    fn replace_token(&mut self, ended: &Token, keeps_work: bool) {
        if ended.join.is_none() {
            // A token that was resumed and interrupted again before it slept still has the rest from the first time.
            let cut_left_ms = ended.interrupted.and_then(|cut| cut.sleep_left_ms);
            let sleep_left_ms = cut_left_ms.or(ended.sleep_left_ms);
            self.spawn_token(
                ended.node,
                Some(ended.id),
                ended.branch.clone(),
                ended.loops.clone(),
                ended.cause.clone(),
            );
            let checkpoint = ended.checkpoint.clone().filter(|_| keeps_work);
            let work_of = ended.work_of.or(Some(ended.id)).filter(|_| keeps_work);
            if self.is_running() {
                self.change(self.tokens.newest(), |token| {
                    token.checkpoint = checkpoint;
                    token.work_of = work_of;
                    token.sleep_left_ms = sleep_left_ms;
                    token.reason = Some("resumed".into());
                });
            }
            return;
        }
        let id = self.tokens.next_id();
        let token = Token {
            status: TokenStatus::WaitingForSiblings,
            epoch: ended.epoch,
            lane: ended.lane,
            parent: Some(ended.id),
            dispatched_at: ended.dispatched_at,
            started_at: ended.started_at,
            ended_at: ended.ended_at,
            reason: Some("resumed".into()),
            error: ended.error.clone(),
            cause: ended.cause.clone(),
            output: ended.output.clone(),
            steps: ended.steps.clone(),
            loops: ended.loops.clone(),
            branch: ended.branch.clone(),
            join: ended.join,
            work_of: ended.work_of.or(Some(ended.id)),
            created_order: self.tokens.count_done(),
            ..Token::new(id, ended.node, self.changes.now)
        };
        self.fans.enter(&token);
        if let Some(join) = token.join {
            self.fans
                .restore_arrival(&token, join)
                .expect("a plan reopens the joins that its tokens wait at");
        }
        self.fans.hold(id, token.value_bytes());
        self.tokens.insert(token);
        let order = self.tokens.count_done();
        self.change(id, |token| token.exit_order = Some(order));
    }

    /// Evaluates the joins again, inner ones first. A join may have failed after all its branches had arrived: no later
    /// arrival would evaluate it.
    fn evaluate_reopened_joins(&mut self, plan: &ResumePlan) {
        for id in plan.instances.iter().rev() {
            if self.is_running() {
                self.branch_ended(*id);
            }
        }
    }
}

/// Whether a join of this instance had fired when the run ended, or still could have.
fn could_fire(snapshot: &Snapshot, instance: &InstanceSummary, branches: &Branches, end: u64) -> bool {
    let workflow = &snapshot.workflow;
    let mut joins = snapshot.joins_of(&instance.group).peekable();
    if instance.has_fired || joins.peek().is_none() {
        return true;
    }
    joins.any(|transition| {
        let transition = &workflow.transitions[transition];
        let node_id = workflow.nodes[transition.to].id.as_str();
        let (mut completed, mut under_way) = (0, 0);
        for index in 0..instance.total {
            let members = branches.tokens(instance.id, index).iter();
            let mut cut = members.filter(|token| token.interrupted.is_some_and(|cut| cut.end == end));
            match cut.clone().find(|token| token.waited_at_join()) {
                Some(token) => {
                    let is_here = token.joins_at.as_deref() == Some(node_id);
                    completed += u32::from(is_here && !token.has_error);
                }
                None => {
                    // A token that had failed could not arrive any more, nor could a fan-out whose own join had failed.
                    let inner = branches.inner(instance.id, index).iter();
                    let mut inner = inner.filter(|inner| inner.is_closed_by(end));
                    let lived = cut.any(|token| !token.has_error)
                        || inner.any(|inner| could_fire(snapshot, inner, branches, end));
                    under_way += u32::from(lived);
                }
            }
        }
        let branches = BranchCounts {
            completed,
            pending: under_way,
            total: instance.total,
        };
        let join = transition.synchronization.as_ref();
        join.is_some_and(|join| may_fire(join, branches))
    })
}

/// The rows of the plan's tokens, in the order of their creation.
fn whole_tokens<'a>(plan: &ResumePlan, rows: &'a ResumeRows) -> Result<Vec<&'a Token>, Rejection> {
    let by_id: BTreeMap<TokenId, &Token> = map_of(rows.tokens.iter().map(|token| (token.id, token)));
    let whole = plan.tokens.iter().map(|id| {
        let unread = || Rejection::NotResumable(format!("token {id} could not be read; try again"));
        by_id.get(id).copied().ok_or_else(unread)
    });
    whole.collect()
}

fn whole_instances(plan: &ResumePlan, rows: &ResumeRows) -> Result<Vec<Instance>, Rejection> {
    let whole = plan.instances.iter().map(|id| {
        let unread = || Rejection::NotResumable(format!("instance {} could not be read; try again", id.0));
        let instance = rows.instances.iter().find(|it| it.id == *id);
        instance.cloned().ok_or_else(unread)
    });
    whole.collect()
}

fn past_error(plan: &ResumePlan, ended: &[&Token]) -> String {
    let failed = ended.iter().find(|token| plan.failed.contains(&token.id));
    failed
        .and_then(|token| token.error.as_ref())
        .map_or_else(|| "its time was over".into(), |error| error.message.clone())
}

impl RetryMode {
    pub fn name(self) -> &'static str {
        match self {
            RetryMode::RetryStep => "retry_step",
            RetryMode::DiscardAndRetry => "discard_and_retry",
            RetryMode::Escalate => "escalate",
        }
    }
}
