//! What an executor asks, caches and reports of breakers.

use curfew::base::failure::{Failure, FailureClass};
use curfew::breaker::machine::CallOutcome::{self, Alive, Failed, Unknown};
use curfew::protocol::breaker::AdmissionResponse;
use curfew::task::breaker::{Admission, AdmissionCache, CACHED_MS, Permit, outcome_of};
use curfew::task::runtime::Stopped;
use serde_json::{Value, json};

const CLOSED: AdmissionResponse = AdmissionResponse::Closed { failures: 0 };

fn healthy() -> AdmissionCache {
    let mut cache = AdmissionCache::default();
    cache.store("k", CLOSED, 1_000);
    cache
}

#[test]
fn closed_is_cached_for_a_while() {
    let mut cache = AdmissionCache::default();
    assert!(!cache.is_healthy("k", 1_000), "a fresh isolate asks once");
    cache.store("k", CLOSED, 1_000);
    assert!(cache.is_healthy("k", 1_000 + CACHED_MS - 1));
    assert!(!cache.is_healthy("k", 1_000 + CACHED_MS));
    assert!(!cache.is_healthy("other", 1_000));
    assert!(!cache.must_report("k", Permit::Healthy, Alive));
    assert!(!cache.must_report("k", Permit::Healthy, Unknown));
}

#[test]
fn the_first_failure_drops_the_key_and_the_next_success_is_reported() {
    let mut cache = healthy();
    assert!(cache.must_report("k", Permit::Healthy, Failed));
    assert!(!cache.is_healthy("k", 1_001));
    cache.store("k", AdmissionResponse::Closed { failures: 1 }, 1_001);
    assert!(!cache.is_healthy("k", 1_002));
    // A call that began before another one failed.
    assert!(cache.must_report("k", Permit::Healthy, Alive));
    assert!(cache.must_report("k", Permit::Watched, Alive));
    cache.store("k", CLOSED, 1_003);
    assert!(cache.is_healthy("k", 1_004));
}

#[test]
fn a_trial_is_always_reported_and_a_blind_call_only_if_it_failed() {
    let mut cache = AdmissionCache::default();
    for outcome in [Alive, Failed, Unknown] {
        assert!(cache.must_report("k", Permit::Trial(1), outcome), "{outcome:?}");
        assert_eq!(cache.must_report("k", Permit::Blind, outcome), outcome == Failed);
    }
}

#[test]
fn open_and_trial_are_not_cached() {
    let open = AdmissionResponse::Open {
        retry_after_ms: 5,
        escalated: false,
    };
    for response in [
        open,
        AdmissionResponse::Trial { trial: 2 },
        AdmissionResponse::Closed { failures: 2 },
    ] {
        let mut cache = healthy();
        cache.store("k", response, 1_001);
        assert!(!cache.is_healthy("k", 1_001), "{response:?}");
    }
    assert_eq!(Admission::from(CLOSED), Admission::Call(Permit::Healthy));
    assert_eq!(
        Admission::from(AdmissionResponse::Closed { failures: 1 }),
        Admission::Call(Permit::Watched)
    );
    assert_eq!(
        Admission::from(AdmissionResponse::Trial { trial: 2 }),
        Admission::Call(Permit::Trial(2))
    );
}

#[test]
fn keys_made_of_inputs_do_not_fill_the_cache() {
    let mut cache = AdmissionCache::default();
    for number in 0..2_500 {
        cache.store(&format!("k{number}"), CLOSED, 1_000);
    }
    assert!(cache.is_healthy("k2499", 1_000));
    assert!(!cache.is_healthy("k0", 1_000));
}

fn outcome(code: &str, class: FailureClass) -> CallOutcome {
    outcome_of(&Err(Stopped::Failed(Failure::new(code, class, "no"))))
}

#[test]
fn only_the_dependencys_own_failures_count_and_any_response_below_500_is_alive() {
    assert_eq!(outcome_of(&Ok(Value::Null)), Alive);
    assert_eq!(outcome_of(&Ok(json!(1))), Alive);
    assert_eq!(outcome_of(&Err(Stopped::Deadline { partial: None })), Failed);
    for (code, class) in [
        ("network", FailureClass::Network),
        ("http_500", FailureClass::ServerError),
        ("http_529", FailureClass::ProviderTransient),
        ("slow", FailureClass::Timeout),
        ("http_302", FailureClass::Unknown),
    ] {
        assert_eq!(outcome(code, class), Failed, "{code}");
    }
    for (code, class) in [
        ("http_400", FailureClass::BadRequest),
        ("http_401", FailureClass::Auth),
        ("http_404", FailureClass::NotFound),
        ("http_408", FailureClass::Network),
        ("http_422", FailureClass::Validation),
        ("http_429", FailureClass::RateLimited),
        ("http_204", FailureClass::Validation),
    ] {
        assert_eq!(outcome(code, class), Alive, "{code}");
    }
    for (code, class) in [
        ("expression_failed", FailureClass::Validation),
        ("invalid_response", FailureClass::Validation),
        ("no_binding", FailureClass::Permanent),
        ("assertion_failed", FailureClass::Assertion),
    ] {
        assert_eq!(outcome(code, class), Unknown, "{code}");
    }
}
