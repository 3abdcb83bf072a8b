//! Whatever is asked and reported, in whatever order and at whatever times, the machine says what the naive one says,
//! also when it was stored and loaded in between, and keeps its promises.

use curfew::base::time::Millis;
use curfew::breaker::machine::{
    AdmissionDecision, Breaker, BreakerEvent, BreakerState, CallOutcome, Settings,
};
use proptest::prelude::*;

use super::naive::Naive;

#[derive(Clone, Debug)]
enum Step {
    Ask {
        deadline_in: Option<u64>,
    },
    /// About the trial so many back, or about none.
    Report {
        outcome: CallOutcome,
        back: Option<u64>,
    },
    Reset,
    Wait(u64),
    /// To the moment the next trial may be had, and a little off.
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

fn retry_after(answer: AdmissionDecision) -> u64 {
    match answer {
        AdmissionDecision::Open { retry_after_ms, .. } => retry_after_ms,
        AdmissionDecision::Closed { .. } | AdmissionDecision::Trial { .. } => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_is_the_naive_one(steps in steps()) {
        let settings = Settings::default();
        let (mut breaker, mut naive) = (Breaker::default(), Naive::new(settings));
        let mut now: Millis = 1_000_000;
        let (mut trials, mut last) = (0u64, AdmissionDecision::Closed { failures: 0 });
        // Trials that are waited for: never two at a time.
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
                    (BreakerEvent::AdmissionRequested { deadline_at }, naive.ask(now, deadline_at))
                }
                Step::Report { outcome, back } => {
                    let trial = back.and_then(|back| trials.checked_sub(back)).filter(|number| *number > 0);
                    (BreakerEvent::CallEnded { outcome, trial }, naive.report(now, outcome, trial))
                }
                Step::Reset => (BreakerEvent::Reset, naive.reset(now)),
            };
            let before = breaker.clone();
            let (answer, changed) = breaker.handle(now, &settings, event);
            prop_assert_eq!(answer, expected, "{:?} at {}", event, now);
            prop_assert_eq!(changed, breaker != before, "what changed is saved, and nothing else");
            prop_assert!(!changed || breaker.revision == before.revision + 1);
            if let AdmissionDecision::Trial { number } = answer {
                prop_assert!(number > trials, "no trial is taken for another");
                prop_assert!(out_until.is_none_or(|until| until <= now), "two at a time");
                trials = number;
            }
            out_until = naive.trial().map(|(_, until)| until);
            let standing = match (naive.is_open(), naive.is_escalated(), naive.trial()) {
                (false, _, _) => BreakerState::Closed,
                (true, true, _) => BreakerState::Escalated,
                (true, false, Some(_)) => BreakerState::HalfOpen,
                (true, false, None) => BreakerState::Open,
            };
            prop_assert_eq!(breaker.state(), standing);
            let text = serde_json::to_string(&breaker).map_err(|error| TestCaseError::fail(error.to_string()))?;
            breaker = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            last = answer;
        }
    }
}
