//! How long an attempt may take: the node's limit, else the task's, else what all calls of a one-step task may take together,
//! else the preset's.

use crate::base::limits::QUEUE_MAX_MS;
use crate::base::time::{Limit, format_duration};
use crate::definition::action::Action;
use crate::definition::snapshot::Snapshot;
use crate::definition::step::{Step, StepAction};
use crate::definition::task::Task;
use crate::definition::timeouts::TimeoutLayer;
use crate::protocol::task::ActionTimeouts;
use crate::run::state::Run;
use crate::run::token::Lane;
use crate::run::token::order::LimitSource;

/// The limit of an attempt, what set it, and the reason if it is not written in a document.
pub struct ExecutionLimit {
    pub limit: Limit,
    pub source: LimitSource,
    pub reason: Option<String>,
    /// What an attempt takes at most if no call has to be made again. It chooses the lane.
    pub without_retries: Limit,
}

/// The limits of a step.
#[derive(Clone, Copy)]
pub(in crate::run) struct StepLimits {
    /// Of each call.
    pub call_ms: Option<u64>,
    /// Of all calls together.
    pub total_ms: Option<u64>,
}

impl StepLimits {
    /// The limit that had passed when the last call, and with it the step, had taken so long.
    pub fn passed_after(self, call_ms: u64, step_ms: u64) -> Option<u64> {
        let passed = |limit: Option<u64>, took: u64| limit.filter(|limit| took + TIMER_EARLY_MS >= *limit);
        passed(self.total_ms, step_ms).or_else(|| passed(self.call_ms, call_ms))
    }
}

/// A timer may ring so much before its time, by the clock that measures a call.
const TIMER_EARLY_MS: u64 = 5;

impl ExecutionLimit {
    fn of(source: LimitSource, limit: Limit) -> ExecutionLimit {
        ExecutionLimit {
            limit,
            source,
            reason: None,
            without_retries: limit,
        }
    }

    /// A queue consumer lives for a limited time, which also ends its retries.
    pub fn in_lane(self, lane: Lane) -> ExecutionLimit {
        let is_extended = self.limit != self.without_retries;
        let is_too_long = self.limit.millis().is_some_and(|millis| millis > QUEUE_MAX_MS);
        match lane {
            Lane::Queue if is_extended && is_too_long => {
                let max = format_duration(QUEUE_MAX_MS);
                ExecutionLimit {
                    limit: Limit::After(QUEUE_MAX_MS),
                    reason: self
                        .reason
                        .map(|why| format!("{why}; {max} at most in the queue")),
                    ..self
                }
            }
            Lane::Inline | Lane::Direct | Lane::Queue => self,
        }
    }
}

impl Snapshot {
    /// The limit of an attempt at `node`. A child run has its own limit if neither node nor action sets one.
    pub fn execution_limit(&self, node: usize) -> ExecutionLimit {
        if self.workflow.nodes[node].adaptive {
            let (limit, reason) = self.adaptive_limit(node);
            return ExecutionLimit {
                reason: Some(reason),
                ..ExecutionLimit::of(LimitSource::Adaptive, limit)
            };
        }
        let task = self.task_of(node).map(|task| &task.task);
        let candidates = [
            (LimitSource::Node, self.workflow.nodes[node].timeout),
            (LimitSource::Task, task.map_or(Limit::Unset, |task| task.timeout)),
        ];
        let written = candidates.into_iter().find(|(_, limit)| *limit != Limit::Unset);
        if let Some((source, limit)) = written {
            return ExecutionLimit::of(source, limit);
        }
        let is_child = self.call_of(node).is_some();
        let default = match is_child {
            true => Limit::Unset,
            false => self.default_limit(TimeoutLayer::Step),
        };
        let only = task.and_then(|task| Some((task, task.only_step()?)));
        match only {
            Some((task, (step, action))) if action.makes_calls() => self.limit_of_calls(task, step, action),
            Some((_, (_, action))) if action.timeout != Limit::Unset => {
                ExecutionLimit::of(LimitSource::Action, action.timeout)
            }
            Some(_) | None => ExecutionLimit::of(LimitSource::Preset, default),
        }
    }

    /// A timeout bounds one call. The attempt may take what all calls and the waits between them take together, or what the
    /// preset allows for a step.
    fn limit_of_calls(&self, task: &Task, step: &Step, action: &Action) -> ExecutionLimit {
        let call = self.call_limit(step, action);
        let source = match step.call_limit(action, Limit::Unset) {
            Limit::Unset => LimitSource::Preset,
            Limit::Never | Limit::After(_) => LimitSource::Action,
        };
        if let Some(total_ms) = action.retry.total_timeout.millis() {
            let limit = Limit::After(task.rounds_ms(step, total_ms));
            let once_ms = call.millis().map_or(total_ms, |millis| millis.min(total_ms));
            return ExecutionLimit {
                without_retries: Limit::After(once_ms),
                ..ExecutionLimit::of(LimitSource::Action, limit)
            };
        }
        let of_step = self.default_limit(TimeoutLayer::Step);
        let call_ms = match call {
            Limit::Unset => return ExecutionLimit::of(LimitSource::Preset, of_step),
            Limit::Never => return ExecutionLimit::of(source, Limit::Never),
            Limit::After(call_ms) => call_ms,
        };
        let time = task.call_time(step, action, call_ms);
        let whole = ExecutionLimit {
            limit: Limit::After(time.total_ms()),
            source,
            reason: time.reason(),
            without_retries: call,
        };
        match of_step.millis() {
            Some(step_ms) if step_ms < time.total_ms() => ExecutionLimit {
                without_retries: call,
                // A document may allow one call more than the preset allows a step.
                ..ExecutionLimit::of(LimitSource::Preset, Limit::After(step_ms.max(call_ms)))
            },
            Some(_) | None => whole,
        }
    }

    /// The limit of one call of a step.
    pub fn call_limit(&self, step: &Step, action: &Action) -> Limit {
        let layer = action.kind.layer();
        let default = match layer {
            TimeoutLayer::Tool | TimeoutLayer::LlmCall => self.default_limit(layer),
            TimeoutLayer::Step | TimeoutLayer::Flow => Limit::Unset,
        };
        step.call_limit(action, default)
    }

    /// Whether an attempt with this limit could only make one call that times out: the executor had no time to make it again.
    pub fn is_limit_of_one_call(&self, node: usize, limit_ms: Option<u64>) -> bool {
        let task = self.task_of(node);
        let Some((step, action)) = task.and_then(|task| task.task.only_step()) else {
            return false;
        };
        let call_ms = self.call_limit(step, action).millis();
        match action.retry.total_timeout.millis() {
            // Nothing else would do it again.
            None | Some(_) if !action.makes_calls() => true,
            Some(_) => false,
            None => call_ms.is_none_or(|call_ms| limit_ms.is_some_and(|limit_ms| limit_ms <= call_ms)),
        }
    }
}

impl Run {
    pub(in crate::run) fn execution_limit(&self, node: usize) -> ExecutionLimit {
        self.snapshot.execution_limit(node)
    }

    /// The preset's limits for single calls.
    pub(in crate::run) fn action_timeouts(&self) -> Option<ActionTimeouts> {
        let limits = ActionTimeouts {
            llm_call_ms: self.snapshot.default_limit(TimeoutLayer::LlmCall).millis(),
            tool_ms: self.snapshot.default_limit(TimeoutLayer::Tool).millis(),
        };
        Some(limits).filter(|limits| *limits != ActionTimeouts::default())
    }

    pub(in crate::run) fn step_limits(&self, node: usize, step_ref: &str) -> Option<StepLimits> {
        let task = &self.snapshot.task_of(node)?.task;
        let step = task.steps.iter().find(|step| step.reference == step_ref)?;
        let StepAction::Inline(action) = &step.action else {
            return None;
        };
        Some(StepLimits {
            call_ms: self.snapshot.call_limit(step, action).millis(),
            total_ms: action.retry.total_timeout.millis(),
        })
    }
}
