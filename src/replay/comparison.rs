//! What became of a run, and how a replay differs from the recording.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::time::{Millis, format_duration};
use crate::replay::export::{Export, RunView, TimeoutView, TokenView};
use crate::replay::replaying::Replayed;
use crate::run::RunStatus;

/// Smaller differences of durations come from what was not recorded to the millisecond.
pub const TOLERANCE_MS: u64 = 50;

/// The most differences that are listed.
const DIFFERENCES_MAX: usize = 1_000;

/// A run, its tokens and its timeouts.
#[derive(Clone, Copy)]
pub struct Outcome<'a> {
    run: &'a RunView,
    tokens: &'a [TokenView],
    timeouts: &'a [TimeoutView],
}

impl Export {
    pub fn outcome(&self) -> Outcome<'_> {
        Outcome {
            run: &self.run,
            tokens: &self.tokens,
            timeouts: &self.timeouts,
        }
    }
}

impl Replayed {
    pub fn outcome(&self) -> Outcome<'_> {
        Outcome {
            run: &self.run,
            tokens: &self.tokens,
            timeouts: &self.timeouts,
        }
    }
}

impl Outcome<'_> {
    /// Times count from the start.
    pub fn view(&self) -> Value {
        let started_at = self.run.started_at;
        let since = |at: Option<Millis>| at.map(|at| at.saturating_sub(started_at));
        let tokens = self.tokens.iter().map(|token| {
            json!({
                "token_id": token.id,
                "node_id": token.node_id,
                "branch": token.branch.as_ref().map(|branch| branch.index),
                "status": token.status,
                "retry_count": token.retry_count,
                "created_at_ms": since(Some(token.created_at)),
                "started_at_ms": since(token.started_at),
                "ended_at_ms": since(token.ended_at),
                "timeout_ms": token.timeout_ms,
            })
        });
        let timeouts = self.timeouts.iter().map(|timeout| {
            json!({
                "scope": timeout.timeout_event.scope,
                "node_id": timeout.last_known_state.node_id,
                "token_id": timeout.last_known_state.token_id,
                "timeout_ms": timeout.timeout_event.timeout_ms,
                "at_ms": since(Some(timeout.timeout_event.timestamp)),
                "final_action": timeout.final_action,
            })
        });
        json!({
            "status": self.run.status,
            "duration_ms": self.run.duration_ms,
            "error": self.run.error,
            "output": self.run.output,
            "tokens": tokens.collect::<Vec<Value>>(),
            "timeouts": timeouts.collect::<Vec<Value>>(),
        })
    }
}

/// How the replay differs. `is_stopped`: it ended before the run did, so that only what had happened until then is compared.
pub fn differences(recorded: Outcome<'_>, replayed: Outcome<'_>, is_stopped: bool) -> Vec<Value> {
    let mut differences = Differences::default();
    if !is_stopped {
        differences.of_runs(recorded.run, replayed.run);
    }
    let stopped_after_ms = is_stopped.then_some(replayed.run.duration_ms);
    differences.of_tokens(recorded, replayed, stopped_after_ms);
    differences.of_timeouts(recorded, replayed, stopped_after_ms);
    differences.found
}

#[derive(Default)]
struct Differences {
    found: Vec<Value>,
}

impl Differences {
    fn add(&mut self, what: &str, place: Value, recorded: Value, replayed: Value, message: String) {
        if self.found.len() >= DIFFERENCES_MAX {
            return;
        }
        let mut difference =
            json!({"what": what, "recorded": recorded, "replayed": replayed, "message": message});
        for (name, value) in place.as_object().into_iter().flatten() {
            difference[name] = value.clone();
        }
        self.found.push(difference);
    }

    fn of_runs(&mut self, recorded: &RunView, replayed: &RunView) {
        let (before, after) = (recorded.status, replayed.status);
        if before != after {
            let message = format!("the run would be {} instead of {}", shown(after), shown(before));
            self.add("status", Value::Null, json!(before), json!(after), message);
        }
        let code = |error: &Option<Failure>| error.as_ref().map(|error| error.code.clone());
        if code(&recorded.error) != code(&replayed.error) {
            let message = match &replayed.error {
                Some(error) => format!("it would fail with \"{}\": {}", error.code, error.message),
                None => "it would not fail".to_string(),
            };
            let (before, after) = (json!(recorded.error), json!(replayed.error));
            self.add("error", Value::Null, before, after, message);
        }
        if recorded.output != replayed.output {
            let message = "its output would be another one".to_string();
            self.add(
                "output",
                Value::Null,
                recorded.output.clone(),
                replayed.output.clone(),
                message,
            );
        }
        let (before, after) = (recorded.duration_ms, replayed.duration_ms);
        if before.abs_diff(after) > TOLERANCE_MS {
            let message = format!(
                "it would take {} instead of {}",
                format_duration(after),
                format_duration(before)
            );
            self.add("duration", Value::Null, json!(before), json!(after), message);
        }
    }

    fn of_tokens(&mut self, recorded: Outcome<'_>, replayed: Outcome<'_>, stopped_after_ms: Option<u64>) {
        let mut left = by_place(replayed.tokens);
        for token in recorded.tokens {
            let after_ms = token.created_at.saturating_sub(recorded.run.started_at);
            let counterpart = left.get_mut(&place_of(token)).and_then(VecDeque::pop_front);
            let place = json!({"node_id": token.node_id, "token_id": token.id});
            match counterpart {
                Some(other) => self.of_token(token, other, place, stopped_after_ms.is_some()),
                None if stopped_after_ms.is_some_and(|stopped| after_ms >= stopped) => {}
                None => {
                    let message = format!("node \"{}\" would not be reached here", token.node_id);
                    self.add("token", place, json!(token.status), Value::Null, message);
                }
            }
        }
        for token in left.into_values().flatten() {
            let place = json!({"node_id": token.node_id, "token_id": token.id});
            let message = format!(
                "node \"{}\" would be reached, and be {}",
                token.node_id, token.status
            );
            self.add("token", place, Value::Null, json!(token.status), message);
        }
    }

    fn of_token(&mut self, recorded: &TokenView, replayed: &TokenView, place: Value, is_stopped: bool) {
        let is_open = is_stopped && replayed.ended_at.is_none();
        if recorded.status != replayed.status && !is_open {
            let message = format!(
                "node \"{}\" would be {} instead of {}",
                recorded.node_id, replayed.status, recorded.status
            );
            let (before, after) = (json!(recorded.status), json!(replayed.status));
            self.add("token", place.clone(), before, after, message);
        }
        if recorded.retry_count != replayed.retry_count && !is_open {
            let message = format!(
                "node \"{}\" would be retried {} times instead of {}",
                recorded.node_id, replayed.retry_count, recorded.retry_count
            );
            let (before, after) = (json!(recorded.retry_count), json!(replayed.retry_count));
            self.add("retries", place, before, after, message);
        }
    }

    fn of_timeouts(&mut self, recorded: Outcome<'_>, replayed: Outcome<'_>, stopped_after_ms: Option<u64>) {
        let mut left: Vec<Option<&TimeoutView>> = replayed.timeouts.iter().map(Some).collect();
        let mut by_key: BTreeMap<TimeoutKey<'_>, VecDeque<usize>> = BTreeMap::new();
        for (number, timeout) in replayed.timeouts.iter().enumerate() {
            by_key.entry(key_of(timeout)).or_default().push_back(number);
        }
        let mut changed: Vec<&TimeoutView> = Vec::new();
        for timeout in recorded.timeouts {
            match by_key.get_mut(&key_of(timeout)).and_then(VecDeque::pop_front) {
                Some(found) => left[found] = None,
                None => changed.push(timeout),
            }
        }
        let mut by_clock: BTreeMap<_, VecDeque<usize>> = BTreeMap::new();
        for (number, timeout) in left.iter().enumerate() {
            if let Some(timeout) = timeout {
                by_clock.entry(clock_of(timeout)).or_default().push_back(number);
            }
        }
        for timeout in changed {
            // The same limit with another length is one difference, not two.
            let found = by_clock.get_mut(&clock_of(timeout)).and_then(VecDeque::pop_front);
            if let Some(other) = found.and_then(|found| left[found].take()) {
                let (before, after) = (shown_timeout(timeout), shown_timeout(other));
                let message = changed_timeout(timeout, other);
                self.add("timeout", place_of_timeout(timeout), before, after, message);
                continue;
            }
            let after_ms = timeout
                .timeout_event
                .timestamp
                .saturating_sub(recorded.run.started_at);
            if stopped_after_ms.is_none_or(|stopped| after_ms < stopped) {
                let message = format!("the {} would not happen", named(timeout));
                self.add(
                    "timeout",
                    place_of_timeout(timeout),
                    shown_timeout(timeout),
                    Value::Null,
                    message,
                );
            }
        }
        for timeout in left.into_iter().flatten() {
            let message = format!("there would be a {}", named(timeout));
            self.add(
                "timeout",
                place_of_timeout(timeout),
                Value::Null,
                shown_timeout(timeout),
                message,
            );
        }
    }
}

fn shown(status: RunStatus) -> String {
    status.name().replace('_', " ")
}

type Place = (String, Option<u32>);

fn place_of(token: &TokenView) -> Place {
    (token.node_key(), token.branch.as_ref().map(|branch| branch.index))
}

/// In the order of their creation, which is that of their ids.
fn by_place(tokens: &[TokenView]) -> BTreeMap<Place, VecDeque<&TokenView>> {
    let mut by_place: BTreeMap<Place, VecDeque<&TokenView>> = BTreeMap::new();
    for token in tokens {
        by_place.entry(place_of(token)).or_default().push_back(token);
    }
    by_place
}

/// What two timeouts have to share to be the same one.
type TimeoutKey<'a> = (&'a str, Option<&'a str>, Option<u64>, &'a str);

fn key_of(timeout: &TimeoutView) -> TimeoutKey<'_> {
    (
        &timeout.timeout_event.scope,
        timeout.last_known_state.node_id.as_deref(),
        timeout.timeout_event.timeout_ms,
        &timeout.final_action,
    )
}

/// What two timeouts have to share to be of the same clock.
fn clock_of(timeout: &TimeoutView) -> (&str, Option<&str>) {
    (
        &timeout.timeout_event.scope,
        timeout.last_known_state.node_id.as_deref(),
    )
}

fn named(timeout: &TimeoutView) -> String {
    let scope = &timeout.timeout_event.scope;
    match &timeout.last_known_state.node_id {
        Some(node_id) => format!("{scope} timeout at \"{node_id}\""),
        None => format!("{scope} timeout"),
    }
}

fn changed_timeout(recorded: &TimeoutView, replayed: &TimeoutView) -> String {
    let limit = |timeout: &TimeoutView| match timeout.timeout_event.timeout_ms {
        Some(timeout_ms) => format_duration(timeout_ms),
        None => "an unknown limit".to_string(),
    };
    let mut changes: Vec<String> = Vec::new();
    if recorded.timeout_event.timeout_ms != replayed.timeout_event.timeout_ms {
        changes.push(format!(
            "come after {} instead of {}",
            limit(replayed),
            limit(recorded)
        ));
    }
    if recorded.final_action != replayed.final_action {
        let (before, after) = (&recorded.final_action, &replayed.final_action);
        changes.push(format!("lead to \"{after}\" instead of \"{before}\""));
    }
    format!("the {} would {}", named(recorded), changes.join(", and "))
}

fn place_of_timeout(timeout: &TimeoutView) -> Value {
    let place = &timeout.last_known_state;
    json!({"node_id": place.node_id, "token_id": place.token_id})
}

fn shown_timeout(timeout: &TimeoutView) -> Value {
    json!({
        "scope": timeout.timeout_event.scope,
        "timeout_ms": timeout.timeout_event.timeout_ms,
        "final_action": timeout.final_action,
    })
}
