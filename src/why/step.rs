//! Attempts, calls and waits of one token whose deadline passed.

use serde_json::{Value, json};

use crate::base::time::{Millis, format_duration};
use crate::definition::node::NodeKind;
use crate::definition::wait::Wait;
use crate::protocol::task::StepReport;
use crate::run::RunEventKind;
use crate::why::attempts::{self, Attempt, AttemptEnd};
use crate::why::facts::TokenTimes;
use crate::why::smallest::Smallest;
use crate::why::{Asked, SHOWN};

fn token_of<'a>(asked: &Asked<'a>) -> Option<&'a TokenTimes> {
    asked.facts.tokens.get(&asked.token()?)
}

pub(super) fn used(asked: Asked) -> Value {
    let elapsed_ms = asked.record.timeout_event.elapsed_ms;
    let Some(token) = token_of(&asked) else {
        return json!({"elapsed_ms": elapsed_ms});
    };
    let attempts = attempts::until(token, asked.event.seq);
    let is_last = attempts.len() == attempts::all(token).len();
    let waits = waits(&asked, token, &attempts);
    let calls: Vec<Value> = match is_last {
        true => token.steps.iter().take(SHOWN).map(call_view).collect(),
        false => Vec::new(),
    };
    let backoff_ms: u64 = match is_last {
        true => token.steps.iter().map(backoff_ms).sum(),
        false => 0,
    };
    let of_kind = |why: &str| -> u64 {
        waits
            .iter()
            .filter(|wait| wait.why == why)
            .map(Waited::length_ms)
            .sum()
    };
    let queued_ms = of_kind(TO_BEGIN) + attempts.iter().filter_map(Attempt::queued_ms).sum::<u64>();
    let waited_ms = of_kind(RETRY) + backoff_ms;
    let wall_ms = asked
        .at()
        .saturating_sub(token.started_at.unwrap_or(token.created_at));
    json!({
        "elapsed_ms": elapsed_ms,
        "queued_ms": queued_ms,
        "waited_ms": waited_ms,
        "stopped_ms": is_last.then(|| token.stopped_ms.min(wall_ms)),
        "attempts": attempts.iter().rev().take(SHOWN).rev().map(Attempt::view).collect::<Vec<_>>(),
        "attempts_left_out": attempts.len().saturating_sub(SHOWN),
        "waits": waits.iter().rev().take(SHOWN).rev().map(Waited::view).collect::<Vec<_>>(),
        "waits_left_out": waits.len().saturating_sub(SHOWN),
        "calls": calls,
    })
}

/// A time in which a token did nothing.
struct Waited {
    from: Millis,
    to: Millis,
    why: &'static str,
}

/// For room or a route, or for the clocks of the run.
const TO_BEGIN: &str = "to_begin";
/// The delay before the next attempt.
const RETRY: &str = "retry_delay";

impl Waited {
    fn length_ms(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    fn view(&self) -> Value {
        json!({"began_at": self.from, "duration_ms": self.length_ms(), "why": self.why})
    }
}

fn waits(asked: &Asked, token: &TokenTimes, attempts: &[Attempt]) -> Vec<Waited> {
    let is_executed = asked
        .node()
        .is_some_and(|node| asked.run.snapshot().workflow.nodes[node].kind.is_executed());
    if !is_executed {
        return Vec::new();
    }
    let mut waits = Vec::new();
    let (mut from, mut why) = (Some(token.created_at), TO_BEGIN);
    for attempt in attempts {
        if let Some(from) = from {
            waits.push(Waited {
                from,
                to: attempt.dispatched_at,
                why,
            });
        }
        from = attempt.ended_at;
        why = match attempt.end {
            AttemptEnd::TimedOut | AttemptEnd::Silent | AttemptEnd::Failed => RETRY,
            AttemptEnd::Completed | AttemptEnd::Repeated | AttemptEnd::CutOff | AttemptEnd::Running => {
                TO_BEGIN
            }
        };
    }
    // It timed out before its next attempt could begin.
    if asked.record.last_known_state.phase == "pending"
        && let Some(from) = from.or(Some(token.created_at))
    {
        waits.push(Waited {
            from,
            to: asked.at(),
            why,
        });
    }
    waits.retain(|wait| wait.length_ms() > 0);
    waits
}

fn backoff_ms(step: &StepReport) -> u64 {
    step.retries.iter().map(|retry| retry.delay_ms).sum()
}

fn call_view(step: &StepReport) -> Value {
    json!({
        "step_ref": step.reference,
        "status": step.status,
        "calls": step.attempts,
        "duration_ms": step.duration_ms,
        "backoff_ms": backoff_ms(step),
    })
}

pub(super) fn smallest(asked: Asked) -> Smallest {
    let Some(token) = token_of(&asked) else {
        return Smallest::unknown("the token is not in the history");
    };
    if let Some(found) = smallest_of_wait(&asked) {
        return found;
    }
    let (limit, phase) = (
        asked
            .limit_ms()
            .map_or_else(|| "its limit".to_string(), format_duration),
        asked.record.last_known_state.phase.as_str(),
    );
    let attempts = attempts::all(token);
    let begun = attempts::until(token, asked.event.seq).len();
    let Some(attempt) = begun.checked_sub(1).and_then(|last| attempts.get(last)) else {
        return Smallest::unknown(format!(
            "no attempt began within {limit}, so there is no call whose time is known"
        ));
    };
    let late = token.events.iter().find(|event| {
        event.kind == RunEventKind::LateResultDiscarded
            && event.seq > asked.event.seq
            && event.epoch == Some(attempt.epoch)
    });
    let began_at = asked.began_at();
    match late.map(|late| (late, late.more().status.as_deref())) {
        Some((late, Some("completed"))) => {
            let needed_ms = late.at.saturating_sub(began_at);
            let needed_ms = needed_ms.saturating_sub(asked.facts.paused_ms(asked.at(), late.at));
            let took = format_duration(needed_ms);
            return Smallest::after(
                needed_ms,
                format!("the result of this attempt came {took} after it began, and was discarded"),
            );
        }
        Some((late, Some("failed"))) => {
            let took = format_duration(late.at.saturating_sub(began_at));
            return Smallest::unknown(format!(
                "the attempt failed {took} after it began: with a longer limit it would have failed instead"
            ));
        }
        Some((_, _)) | None => {}
    }
    let cut = match (phase, &attempt.child_run_id) {
        ("pending", _) => format!("the next attempt had not begun within {limit}"),
        ("suspended", _) => format!("more than {limit}: no callback had come"),
        (_, Some(run_id)) => format!("more than {limit}: the run {run_id} had not ended when it was cut"),
        (_, None) => format!("more than {limit}: the call had not answered when it was cut"),
    };
    let later = attempts[begun..]
        .iter()
        .find(|it| it.end == AttemptEnd::Completed);
    Smallest::unknown(match later.and_then(|it| Some((it.epoch, it.duration_ms()?))) {
        Some((epoch, took)) => format!("{cut}; attempt {epoch} took {}", format_duration(took)),
        None => cut,
    })
}

/// A wait for a signal: it may have come since.
fn smallest_of_wait(asked: &Asked) -> Option<Smallest> {
    let NodeKind::Wait(wait) = &asked.run.snapshot().workflow.nodes[asked.node()?].kind else {
        return None;
    };
    let Wait::Signal { name, .. } = &**wait else {
        return None;
    };
    let Some((came, taken_by)) = asked.facts.signal_after(asked.event.seq, name) else {
        return Some(Smallest::unknown("the signal has not come since"));
    };
    if asked.is_interrupted_before(came.at) {
        return Some(Smallest::unknown(
            "before the signal came, the run had ended or waited at the gate of its limit",
        ));
    }
    if token_of(asked).is_some_and(|token| token.branch.is_some()) {
        return Some(Smallest::unknown(format!(
            "the signal came {} after this timeout, when a join might have gone on without this branch",
            format_duration(came.at.saturating_sub(asked.at()))
        )));
    }
    let is_before = |other: &TokenTimes| other.created_at < asked.at();
    let waited_ms = came.at.saturating_sub(asked.began_at());
    let waited_ms = waited_ms.saturating_sub(asked.facts.paused_ms(asked.at(), came.at));
    let waited = format_duration(waited_ms);
    Some(match taken_by {
        None => Smallest::after(
            waited_ms,
            format!("the signal came {waited} after the wait began"),
        ),
        Some(other) if is_before(other) => Smallest::unknown(format!(
            "the signal came {waited} after the wait began and went to node \"{}\", which was waiting for it, too",
            other.node_id
        )),
        Some(other) => Smallest::after(
            waited_ms,
            format!(
                "the signal came {waited} after the wait began; node \"{}\" took it, which waited for it later",
                other.node_id
            ),
        ),
    })
}
