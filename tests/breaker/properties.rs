//! For any order and times of events the breaker decides like the model, also if it is stored and loaded in between.

use curfew::base::time::Millis;
use curfew::breaker::machine::{
    AdmissionDecision, Breaker, BreakerEvent, BreakerState, CallOutcome, Settings,
};
use proptest::prelude::*;

use super::model::ModelBreaker;

#[derive(Clone, Debug)]
enum Step {
    Ask {
        deadline_in: Option<u64>,
    },
    /// Reports a trial by how many came after it, or no trial.
    Report {
        outcome: CallOutcome,
        back: Option<u64>,
    },
    Reset,
    Wait(u64),
    /// Waits for the moment of the next trial, plus this offset.
    WaitForTrial(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let outcome = prop_oneof![
        5 => Just(CallOutcome::Failed),
        2 => Just(CallOutcome::Alive),
        1 => Just(CallOutcome::Unknown),
    ];
    let back = prop_oneof![4 => Just(Some(0)), 1 => Just(Some(1)), 4 => Just(None)];
    let deadline = prop_oneof![2 => Just(None), 1 => (0u64..90_000).prop_map(Some)];
    let step = prop_oneof![
        4 => deadline.prop_map(|deadline_in| Step::Ask { deadline_in }),
        8 => (outcome, back).prop_map(|(outcome, back)| Step::Report { outcome, back }),
        1 => Just(Step::Reset),
        2 => (0u64..400_000).prop_map(Step::Wait),
        3 => (-1i64..2).prop_map(Step::WaitForTrial),
    ];
    proptest::collection::vec(step, 0..60)
}

fn retry_after(decision: AdmissionDecision) -> u64 {
    match decision {
        AdmissionDecision::Open { retry_after_ms, .. } => retry_after_ms,
        AdmissionDecision::Closed { .. } | AdmissionDecision::Trial { .. } => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_breaker_decides_like_the_model(steps in steps()) {
        let settings = Settings::default();
        let (mut breaker, mut model) = (Breaker::default(), ModelBreaker::new(settings));
        let mut now: Millis = 1_000_000;
        let (mut trials, mut last) = (0u64, AdmissionDecision::Closed { failures: 0 });
        // The end of the trial under way. There are never two at a time.
        let mut out_until: Option<Millis> = None;
        for step in steps {
            let (event, expected) = match step {
                Step::Wait(millis) => {
                    now += millis;
                    continue;
                }
                Step::WaitForTrial(off) => {
                    now = (now + retry_after(last)).saturating_add_signed(off).max(now);
                    continue;
                }
                Step::Ask { deadline_in } => {
                    let deadline_at = deadline_in.map(|millis| now + millis);
                    (BreakerEvent::AdmissionRequested { deadline_at }, model.ask(now, deadline_at))
                }
                Step::Report { outcome, back } => {
                    let trial = back.and_then(|back| trials.checked_sub(back)).filter(|number| *number > 0);
                    (BreakerEvent::CallEnded { outcome, trial }, model.report(now, outcome, trial))
                }
                Step::Reset => (BreakerEvent::Reset, model.reset(now)),
            };
            let before = breaker.clone();
            let (decision, changed) = breaker.handle(now, &settings, event);
            prop_assert_eq!(decision, expected, "{:?} at {}", event, now);
            prop_assert_eq!(changed, breaker != before, "what changed is saved, and nothing else");
            prop_assert!(!changed || breaker.revision == before.revision + 1);
            if let AdmissionDecision::Trial { number } = decision {
                prop_assert!(number > trials, "the number of a trial is not reused");
                prop_assert!(out_until.is_none_or(|until| until <= now), "two at a time");
                trials = number;
            }
            out_until = model.trial().map(|(_, until)| until);
            let state = match (model.is_open(), model.is_escalated(), model.trial()) {
                (false, _, _) => BreakerState::Closed,
                (true, true, _) => BreakerState::Escalated,
                (true, false, Some(_)) => BreakerState::HalfOpen,
                (true, false, None) => BreakerState::Open,
            };
            prop_assert_eq!(breaker.state(), state);
            let text = serde_json::to_string(&breaker).map_err(|error| TestCaseError::fail(error.to_string()))?;
            breaker = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            last = decision;
        }
    }
}
