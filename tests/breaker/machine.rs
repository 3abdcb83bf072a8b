//! The breaker's own story: closed, open, tried, escalated, closed again.

use curfew::base::time::Millis;
use curfew::breaker::machine::{
    AdmissionDecision, Breaker, BreakerEvent, BreakerState, CallOutcome, Settings,
};
use curfew::protocol::breaker::{AdmissionResponse, view};
use serde_json::json;

struct Told {
    breaker: Breaker,
    now: Millis,
}

impl Told {
    fn new() -> Told {
        Told {
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

    fn after(&mut self, millis: u64) -> &mut Told {
        self.now += millis;
        self
    }

    /// Open, by three failures.
    fn open() -> Told {
        let mut told = Told::new();
        for _ in 0..3 {
            told.fail(None);
        }
        assert_eq!(told.breaker.state(), BreakerState::Open);
        told
    }

    /// Escalated, by three failures and two trials.
    fn escalated() -> Told {
        let mut told = Told::open();
        for number in 1..=2 {
            assert_eq!(told.after(30_000).ask(), AdmissionDecision::Trial { number });
            told.fail(Some(number));
        }
        assert_eq!(told.breaker.state(), BreakerState::Escalated);
        told
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
fn asking_a_healthy_one_leaves_no_trace() {
    let mut told = Told::new();
    assert_eq!(told.ask(), AdmissionDecision::Closed { failures: 0 });
    assert_eq!(
        told.report(CallOutcome::Alive, None),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(
        told.feed(BreakerEvent::Reset),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(told.breaker, Breaker::default());
}

#[test]
fn failures_in_a_row_open_it_and_a_success_between_does_not_let_them() {
    let mut told = Told::new();
    for failures in [1, 2] {
        assert_eq!(told.fail(None), AdmissionDecision::Closed { failures });
    }
    assert_eq!(
        told.report(CallOutcome::Alive, None),
        AdmissionDecision::Closed { failures: 0 }
    );
    for failures in [1, 2] {
        assert_eq!(told.fail(None), AdmissionDecision::Closed { failures });
    }
    assert_eq!(told.fail(None), open_for(30_000));
    assert_eq!(told.after(29_999).ask(), open_for(1));
}

#[test]
fn one_caller_gets_the_trial_and_the_others_wait_for_it() {
    let mut told = Told::open();
    assert_eq!(told.after(30_000).ask(), AdmissionDecision::Trial { number: 1 });
    assert_eq!(told.breaker.state(), BreakerState::HalfOpen);
    assert_eq!(told.after(100).ask(), open_for(30_000));
    assert_eq!(
        told.report(CallOutcome::Alive, Some(1)),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(told.ask(), AdmissionDecision::Closed { failures: 0 });
}

#[test]
fn a_trial_that_fails_opens_it_again_for_as_long() {
    let mut told = Told::open();
    told.after(40_000).ask();
    assert_eq!(told.after(5_000).fail(Some(1)), open_for(30_000));
    assert_eq!(told.after(29_999).ask(), open_for(1));
    assert_eq!(told.after(1).ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn a_trial_that_nobody_reports_is_given_to_another() {
    let mut told = Told::open();
    told.after(30_000).ask();
    assert_eq!(told.after(59_999).ask(), open_for(1));
    assert_eq!(told.after(1).ask(), AdmissionDecision::Trial { number: 2 });
    // The first one is not the one that is waited for any more.
    assert_eq!(told.fail(Some(1)), open_for(30_000));
    assert_eq!(told.breaker.failures, 3);
    let deadline_at = Some(told.now + 500);
    let mut brief = Told::open();
    brief.after(30_000);
    brief.now = told.now;
    assert_eq!(
        brief.feed(BreakerEvent::AdmissionRequested { deadline_at }),
        AdmissionDecision::Trial { number: 1 }
    );
    assert_eq!(brief.after(499).ask(), open_for(1));
    assert_eq!(brief.after(1).ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn a_trial_that_never_got_there_is_given_back() {
    let mut told = Told::open();
    told.after(30_000).ask();
    told.report(CallOutcome::Unknown, Some(1));
    assert_eq!(told.breaker.failures, 3);
    assert_eq!(told.ask(), AdmissionDecision::Trial { number: 2 });
}

#[test]
fn calls_that_were_under_way_do_not_count_once_it_is_open() {
    let mut told = Told::open();
    for _ in 0..10 {
        assert_eq!(told.fail(None), open_for(30_000));
    }
    assert_eq!(told.breaker.failures, 3);
}

#[test]
fn five_in_a_row_are_a_persons_matter() {
    let mut told = Told::escalated();
    assert_eq!(told.ask(), escalated_for(300_000));
    // What is not a trial ends it no more.
    assert_eq!(told.report(CallOutcome::Alive, None), escalated_for(300_000));
    assert_eq!(
        told.feed(BreakerEvent::Reset),
        AdmissionDecision::Closed { failures: 0 }
    );
    assert_eq!(told.ask(), AdmissionDecision::Closed { failures: 0 });
    assert_eq!(told.breaker.failures, 0);
}

#[test]
fn a_trial_after_five_minutes_may_end_an_escalation() {
    let mut told = Told::escalated();
    let escalated_at = told.now;
    assert_eq!(told.after(299_999).ask(), escalated_for(1));
    assert_eq!(told.after(1).ask(), AdmissionDecision::Trial { number: 3 });
    assert_eq!(told.fail(Some(3)), escalated_for(300_000));
    let since = told.breaker.opening.as_ref().and_then(|it| it.escalated_at);
    assert_eq!(since, Some(escalated_at), "it is the same escalation");
    told.after(300_000).ask();
    assert_eq!(
        told.report(CallOutcome::Alive, Some(4)),
        AdmissionDecision::Closed { failures: 0 }
    );
}

#[test]
fn a_clock_that_jumps_back_makes_it_no_younger() {
    let mut told = Told::open();
    told.now = 5;
    assert_eq!(told.ask(), open_for(30_000));
}

#[test]
fn what_is_kept_and_what_is_said_is_pinned() {
    let mut told = Told::escalated();
    told.after(300_000).ask();
    assert_eq!(
        json!(told.breaker),
        json!({"failures": 5, "trials": 3, "revision": 8, "updated_at": 370_000, "opening": {
            "opened_at": 10_000, "trial_at": 370_000, "escalated_at": 70_000, "trial": {"number": 3, "until": 430_000}}})
    );
    assert_eq!(
        view("pay", &told.breaker),
        json!({"key": "pay", "state": "escalated", "failures": 5, "opened_at": 10_000, "trial_at": 370_000,
            "escalated_at": 70_000, "updated_at": 370_000})
    );
    let said = [
        AdmissionDecision::Closed { failures: 2 },
        AdmissionDecision::Trial { number: 7 },
        open_for(9),
    ]
    .map(AdmissionResponse::from);
    assert_eq!(
        json!(said),
        json!([{"state": "closed", "failures": 2}, {"state": "trial", "trial": 7},
            {"state": "open", "retry_after_ms": 9, "escalated": false}])
    );
}
