//! A delivery that ends after its run was loaded again.

use std::rc::Rc;

use curfew::host::{Config, Delivery, DeliveryResult, Host, SubrequestBudget};
use curfew::protocol::run::{RunCall, RunRequest, RunResponse};
use curfew::protocol::start::StartRun;
use curfew::simulate::{Durable, Faults, InFlight, Rng, SimPlatform, ready};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::environment::Environment;
use super::faults::Disturbances;
use super::simulation::{SETTINGS, SILENCE_MS};
use crate::run::driver::{callback_key, complete_document, store_document};

struct Object {
    environment: Rc<Environment>,
    durable: Rc<Durable>,
    host: Host<SimPlatform<Environment>>,
    budget: SubrequestBudget,
}

impl Object {
    /// A run that has called a child.
    fn calling() -> Object {
        let environment = Rc::new(Environment::new(
            Rng::seeded(1),
            Faults::default(),
            Disturbances::default(),
            false,
        ));
        let durable = Rc::<Durable>::default();
        let platform = SimPlatform::new("run-1", 0, &environment, &durable);
        let config = Config {
            settings: SETTINGS,
            silence_ms: SILENCE_MS,
            exports_traces: false,
        };
        let object = Object {
            host: Host::new(platform, config, Rc::default()),
            budget: SubrequestBudget::new(24),
            environment,
            durable,
        };
        let document =
            complete_document(json!({"nodes": [{"id": "a", "workflow_id": "child"}], "transitions": []}));
        let stored = to_raw_value(&store_document(&document)).expect("a snapshot is JSON");
        let command = StartRun {
            run_id: "run-1".into(),
            stored: Rc::from(stored),
            input: json!({"x": 1}),
            request: Default::default(),
            parent: None,
            triggered_by: None,
            callback_secret: Some(callback_key().secret_of("run-1")),
            started_by: Some("eve".into()),
            traceparent: None,
        };
        let wait_ms = None;
        let answer = object.ask(RunRequest::Start { command, wait_ms });
        assert!(matches!(answer, RunResponse::Created(_)), "{answer:?}");
        object
    }

    fn ask(&self, request: RunRequest) -> RunResponse {
        let call = RunCall {
            caller: None,
            operation: None,
            request,
        };
        ready(self.host.respond(&self.budget, &json!(call).to_string()))
    }

    fn sent(&self) -> Delivery {
        let mut in_flight = self.environment.in_flight.borrow_mut();
        match in_flight.pop_first() {
            Some((_, InFlight::Message { delivery, .. })) => delivery,
            _other => panic!("no message was sent"),
        }
    }

    fn arrives(&self, delivery: &Delivery) {
        let result = DeliveryResult::Response(RunResponse::Done("{}".into()));
        self.host
            .delivery_ended(&self.budget, delivery.id, delivery.kind, result);
    }

    fn outbox(&self) -> Vec<String> {
        let store = self.durable.store.borrow();
        let keys = store.run.keys().filter(|key| key.starts_with("outbox/"));
        keys.cloned().collect()
    }
}

/// The start of the child was delivered twice. Between the two answers the run is loaded again, and its next message gets the
/// number of the start.
#[test]
fn a_late_answer_does_not_count_for_a_message_of_the_same_number() {
    let object = Object::calling();
    let start = object.sent();
    object.arrives(&start);
    assert!(object.outbox().is_empty());
    object.environment.faults.borrow_mut().commit_fails = 100;
    let refused = object.ask(RunRequest::Pause);
    assert!(matches!(refused, RunResponse::Refused { .. }), "{refused:?}");
    object.environment.faults.borrow_mut().commit_fails = 0;
    object.ask(RunRequest::Cancel { reason: None });
    assert_eq!(object.outbox(), ["outbox/1"], "the child is to be cancelled");
    object.arrives(&start);
    assert_eq!(object.outbox(), ["outbox/1"], "nothing says that it arrived");
    object.arrives(&object.sent());
    assert!(object.outbox().is_empty());
}
