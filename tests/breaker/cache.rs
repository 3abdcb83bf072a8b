//! What an executor asks, remembers and says of breakers.

use curfew::base::failure::{Failure, FailureClass};
use curfew::breaker::machine::Outcome::{self, Alive, Failed, Unknown};
use curfew::protocol::breaker::AdmissionResponse;
use curfew::task::breaker::{Admission, BELIEVED_MS, Memory, Permit, word_of};
use curfew::task::steps::Stopped;
use serde_json::{Value, json};

const CLOSED: AdmissionResponse = AdmissionResponse::Closed { failures: 0 };

fn healthy() -> Memory {
    let mut memory = Memory::default();
    memory.hear("k", CLOSED, 1_000);
    memory
}

#[test]
fn closed_is_believed_for_a_while_and_costs_nothing() {
    let mut memory = Memory::default();
    assert!(!memory.is_healthy("k", 1_000), "a fresh isolate asks once");
    memory.hear("k", CLOSED, 1_000);
    assert!(memory.is_healthy("k", 1_000 + BELIEVED_MS - 1));
    assert!(!memory.is_healthy("k", 1_000 + BELIEVED_MS));
    assert!(!memory.is_healthy("other", 1_000));
    assert!(!memory.is_news("k", Permit::Healthy, Alive));
    assert!(!memory.is_news("k", Permit::Healthy, Unknown));
}

#[test]
fn the_first_failure_ends_the_belief_and_a_success_after_it_is_news() {
    let mut memory = healthy();
    assert!(memory.is_news("k", Permit::Healthy, Failed));
    assert!(!memory.is_healthy("k", 1_001));
    memory.hear("k", AdmissionResponse::Closed { failures: 1 }, 1_001);
    assert!(!memory.is_healthy("k", 1_002));
    // A call that began before somebody else's failed.
    assert!(memory.is_news("k", Permit::Healthy, Alive));
    assert!(memory.is_news("k", Permit::Watched, Alive));
    memory.hear("k", CLOSED, 1_003);
    assert!(memory.is_healthy("k", 1_004));
}

#[test]
fn a_trial_is_always_answered_for_and_a_blind_call_only_if_it_failed() {
    let mut memory = Memory::default();
    for word in [Alive, Failed, Unknown] {
        assert!(memory.is_news("k", Permit::Trial(1), word), "{word:?}");
        assert_eq!(memory.is_news("k", Permit::Blind, word), word == Failed);
    }
}

#[test]
fn open_and_trial_are_not_remembered() {
    let open = AdmissionResponse::Open {
        retry_after_ms: 5,
        escalated: false,
    };
    for said in [
        open,
        AdmissionResponse::Trial { trial: 2 },
        AdmissionResponse::Closed { failures: 2 },
    ] {
        let mut memory = healthy();
        memory.hear("k", said, 1_001);
        assert!(!memory.is_healthy("k", 1_001), "{said:?}");
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
fn keys_made_of_inputs_do_not_fill_the_memory() {
    let mut memory = Memory::default();
    for number in 0..2_500 {
        memory.hear(&format!("k{number}"), CLOSED, 1_000);
    }
    assert!(memory.is_healthy("k2499", 1_000));
    assert!(!memory.is_healthy("k0", 1_000));
}

fn word(code: &str, class: FailureClass) -> Outcome {
    word_of(&Err(Stopped::Failed(Failure::new(code, class, "no"))))
}

#[test]
fn only_the_dependencys_own_failures_count_and_any_answer_below_500_is_a_sign_of_life() {
    assert_eq!(word_of(&Ok(Value::Null)), Alive);
    assert_eq!(word_of(&Ok(json!(1))), Alive);
    assert_eq!(word_of(&Err(Stopped::Deadline { partial: None })), Failed);
    for (code, class) in [
        ("network", FailureClass::Network),
        ("http_500", FailureClass::ServerError),
        ("http_529", FailureClass::ProviderTransient),
        ("slow", FailureClass::Timeout),
        ("http_302", FailureClass::Unknown),
    ] {
        assert_eq!(word(code, class), Failed, "{code}");
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
        assert_eq!(word(code, class), Alive, "{code}");
    }
    for (code, class) in [
        ("expression_failed", FailureClass::Validation),
        ("invalid_response", FailureClass::Validation),
        ("no_binding", FailureClass::Permanent),
        ("assertion_failed", FailureClass::Assertion),
    ] {
        assert_eq!(word(code, class), Unknown, "{code}");
    }
}
