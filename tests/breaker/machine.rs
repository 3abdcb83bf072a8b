//! The states of a breaker: closed, open, half open, escalated, closed again.

use curfew::base::time::Millis;
use curfew::breaker::machine::{
    AdmissionDecision, Breaker, BreakerEvent, BreakerState, CallOutcome, Settings,
};
use curfew::protocol::breaker::{AdmissionResponse, view};
use serde_json::json;

struct TestBreaker {
    breaker: Breaker,
    now: Millis,
}

impl TestBreaker {
    fn new() -> TestBreaker {
        TestBreaker {
            breaker: Breaker::default(),
            now: 10_000,
        }
    }

    fn feed(&mut self, event: BreakerEvent) -> AdmissionDecision {
        self.breaker.handle(self.now, &Settings::default(), event).0
    }

    fn report(&mut self, outcome: CallOutcome, trial: Option<u64>) -> AdmissionDecision {
        self.feed(BreakerEvent::CallEnded { outcome, trial })
    }

    fn fail(&mut self, trial: Option<u64>) -> AdmissionDecision {
        self.report(CallOutcome::Failed, trial)
    }

    fn ask(&mut self) -> AdmissionDecision {
        self.feed(BreakerEvent::AdmissionRequested { deadline_at: None })
    }

    fn after(&mut self, millis: u64) -> &mut TestBreaker {
        self.now += millis;
        self
    }

    /// Open after three failures.
    fn open() -> TestBreaker {
        let mut test = TestBreaker::new();
        for _ in 0..3 {
            test.fail(None);
        }
        assert_eq!(test.breaker.state(), BreakerState::Open);
        test
    }

    /// Escalated after three failures and two trials.
    fn escalated() -> TestBreaker {
        let mut test = TestBreaker::open();
        for number in 1..=2 {
            assert_eq!(test.after(30_000).ask(), AdmissionDecision::Trial { number });
            test.fail(Some(number));
        }
        assert_eq!(test.breaker.state(), BreakerState::Escalated);
        test
    }
}

const fn open_for(retry_after_ms: u64) -> AdmissionDecision {
    AdmissionDecision::Open {
        retry_after_ms,
        escalated: false,
    }
}

const fn escalated_for(retry_after_ms: u64) -> AdmissionDecision {
    AdmissionDecision::Open {
        retry_after_ms,
        escalated: true,
    }
}

#[test]
fn asking_a_healthy_breaker_changes_nothing() {
    let mut test = TestBreaker::new();
    assert_eq!(test.ask(), AdmissionDecision::Closed { failures: 0 });
    assert_eq!(
        test.report(CallOutcome::Alive, None),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(
        test.feed(BreakerEvent::Reset),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(test.breaker, Breaker::default());
}

#[test]
fn consecutive_failures_open_it_and_a_success_resets_the_count() {
    let mut test = TestBreaker::new();
    for failures in [1, 2] {
        assert_eq!(test.fail(None), AdmissionDecision::Closed { failures });
    }
    assert_eq!(
        test.report(CallOutcome::Alive, None),
        AdmissionDecision::Closed { failures: 0 }
    );
    for failures in [1, 2] {
        assert_eq!(test.fail(None), AdmissionDecision::Closed { failures });
    }
    assert_eq!(test.fail(None), open_for(30_000));
    assert_eq!(test.after(29_999).ask(), open_for(1));
}

#[test]
fn one_caller_makes_the_trial_and_the_others_wait() {
    let mut test = TestBreaker::open();
    assert_eq!(test.after(30_000).ask(), AdmissionDecision::Trial { number: 1 });
    assert_eq!(test.breaker.state(), BreakerState::HalfOpen);
    assert_eq!(test.after(100).ask(), open_for(30_000));
    assert_eq!(
        test.report(CallOutcome::Alive, Some(1)),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(test.ask(), AdmissionDecision::Closed { failures: 0 });
}

#[test]
fn a_trial_that_fails_opens_it_again_for_as_long() {
    let mut test = TestBreaker::open();
    test.after(40_000).ask();
    assert_eq!(test.after(5_000).fail(Some(1)), open_for(30_000));
    assert_eq!(test.after(29_999).ask(), open_for(1));
    assert_eq!(test.after(1).ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn a_trial_without_a_report_is_repeated() {
    let mut test = TestBreaker::open();
    test.after(30_000).ask();
    assert_eq!(test.after(59_999).ask(), open_for(1));
    assert_eq!(test.after(1).ask(), AdmissionDecision::Trial { number: 2 });
    // The report of the first one does not count any more.
    assert_eq!(test.fail(Some(1)), open_for(30_000));
    assert_eq!(test.breaker.failures, 3);
    let deadline_at = Some(test.now + 500);
    let mut brief = TestBreaker::open();
    brief.after(30_000);
    brief.now = test.now;
    assert_eq!(
        brief.feed(BreakerEvent::AdmissionRequested { deadline_at }),
        AdmissionDecision::Trial { number: 1 }
    );
    assert_eq!(brief.after(499).ask(), open_for(1));
    assert_eq!(brief.after(1).ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn a_trial_that_did_not_reach_the_dependency_is_repeated() {
    let mut test = TestBreaker::open();
    test.after(30_000).ask();
    test.report(CallOutcome::Unknown, Some(1));
    assert_eq!(test.breaker.failures, 3);
    assert_eq!(test.ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn calls_that_were_under_way_do_not_count_once_it_is_open() {
    let mut test = TestBreaker::open();
    for _ in 0..10 {
        assert_eq!(test.fail(None), open_for(30_000));
    }
    assert_eq!(test.breaker.failures, 3);
}

#[test]
fn five_consecutive_failures_escalate() {
    let mut test = TestBreaker::escalated();
    assert_eq!(test.ask(), escalated_for(300_000));
    // Only a trial can end it.
    assert_eq!(test.report(CallOutcome::Alive, None), escalated_for(300_000));
    assert_eq!(
        test.feed(BreakerEvent::Reset),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(test.ask(), AdmissionDecision::Closed { failures: 0 });
    assert_eq!(test.breaker.failures, 0);
}

#[test]
fn a_trial_after_five_minutes_may_end_an_escalation() {
    let mut test = TestBreaker::escalated();
    let escalated_at = test.now;
    assert_eq!(test.after(299_999).ask(), escalated_for(1));
    assert_eq!(test.after(1).ask(), AdmissionDecision::Trial { number: 3 });
    assert_eq!(test.fail(Some(3)), escalated_for(300_000));
    let since = test.breaker.opening.as_ref().and_then(|it| it.escalated_at);
    assert_eq!(since, Some(escalated_at), "it is the same escalation");
    test.after(300_000).ask();
    assert_eq!(
        test.report(CallOutcome::Alive, Some(4)),
        AdmissionDecision::Closed { failures: 0 }
    );
}

#[test]
fn a_clock_that_jumps_back_changes_nothing() {
    let mut test = TestBreaker::open();
    test.now = 5;
    assert_eq!(test.ask(), open_for(30_000));
}

#[test]
fn stored_and_sent_json_is_pinned() {
    let mut test = TestBreaker::escalated();
    test.after(300_000).ask();
    assert_eq!(
        json!(test.breaker),
        json!({"failures": 5, "trials": 3, "revision": 8, "updated_at": 370_000, "opening": {
            "opened_at": 10_000, "trial_at": 370_000, "escalated_at": 70_000, "trial": {"number": 3, "until": 430_000}}})
    );
    assert_eq!(
        view("pay", &test.breaker),
        json!({"key": "pay", "state": "escalated", "failures": 5, "opened_at": 10_000, "trial_at": 370_000,
            "escalated_at": 70_000, "updated_at": 370_000})
    );
    let sent = [
        AdmissionDecision::Closed { failures: 2 },
        AdmissionDecision::Trial { number: 7 },
        open_for(9),
    ]
    .map(AdmissionResponse::from);
    assert_eq!(
        json!(sent),
        json!([{"state": "closed", "failures": 2}, {"state": "trial", "trial": 7},
            {"state": "open", "retry_after_ms": 9, "escalated": false}])
    );
}
