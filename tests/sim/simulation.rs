//! The simulation of one seed: runs whose objects may crash at any moment, their storage, executors, operators, and the messages
//! between them. A child is a run like any other.
//!
//! The objects run `curfew::host`, the same code as the Durable Object; only the platform below it is simulated.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use curfew::base::time::Millis;
use curfew::host::Config;
use curfew::protocol::caller::Caller;
use curfew::protocol::run::{RunRequest, RunResponse};
use curfew::protocol::start::StartRun;
use curfew::run::{NotifySettings, Routes, Settings};
use curfew::simulate::{Faults, InFlight, Next, Rng, Simulator};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::environment::{Environment, Retry};
use super::faults::Disturbances;
use super::outcome::Outcome;
use crate::run::driver::{callback_key, store_document};
use crate::run::generator;

pub(super) const SETTINGS: Settings = Settings {
    retry_delay_ms: 1_000,
    queue: false,
    routes: Routes::ALL,
    pending_ms: 5_000,
    no_route_ms: 300_000,
    resend_ms: 10_000,
    claim_ms: 30_000,
    // Short, or most attempts would meet their own deadline before their silence is noticed.
    heartbeat_ms: 45_000,
    progress_save_ms: 10_000,
    suspend_ms: 30_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 5,
    retention_ms: 86_400_000,
    timeout_max_ms: 2_592_000_000,
    notify: NotifySettings::DEFAULT,
};

pub(super) const SILENCE_MS: u64 = 45_000;
/// The caller that starts the first run.
pub(super) const STARTER: &str = "eve";

/// Faults happen during the first events only.
const FAULTY_EVENTS: &[u64] = &[15, 40, 150];
/// No simulation needs as many; one that does is stuck.
const EVENTS_MAX: u64 = 20_000;

/// The id of the run that is started first; the others are its descendants.
pub(super) const FIRST_RUN: &str = "run-1";

pub struct Simulation {
    pub(super) environment: Rc<Environment>,
    simulator: Simulator<Environment>,
    /// The newest document of the first run's workflow, and its version.
    pub(super) document: Value,
    pub(super) input: Value,
    pub(super) version: u64,
    /// All versions, resolved.
    pub(super) versions: BTreeMap<u64, Value>,
    faulty_events: u64,
    /// No operator acts any more.
    pub(super) is_unattended: bool,
    /// By when runs must have ended that are left alone, not counting the time at gates, and how long they stood there before.
    pub(super) ends_by: BTreeMap<String, (Millis, u64)>,
}

impl Deref for Simulation {
    type Target = Simulator<Environment>;

    fn deref(&self) -> &Simulator<Environment> {
        &self.simulator
    }
}

impl DerefMut for Simulation {
    fn deref_mut(&mut self) -> &mut Simulator<Environment> {
        &mut self.simulator
    }
}

impl Simulation {
    pub fn new(seed: u64, trace: bool) -> Simulation {
        Simulation::prepare(seed, trace, |_, faults, disturbances| (faults, disturbances)).started()
    }

    /// A simulation with the seed's workflow and faults, or what `change` makes of them.
    pub(super) fn prepare(
        seed: u64,
        trace: bool,
        change: impl FnOnce(&mut Value, Faults, Disturbances) -> (Faults, Disturbances),
    ) -> Simulation {
        let mut rng = Rng::seeded(seed);
        let faults = Faults::of(&mut rng);
        let disturbances = Disturbances::of(&mut rng);
        let mut document = generator::workflow(&mut rng);
        let (faults, disturbances) = change(&mut document, faults, disturbances);
        if trace {
            println!("{faults:?}\n{disturbances:?}\n{document:#}");
        }
        let faulty_events = *rng.pick(FAULTY_EVENTS);
        let input = json!({"x": rng.below(4), "name": "Ada"});
        let settings = Settings {
            queue: rng.chance(60),
            ..SETTINGS
        };
        let invocation_calls = *rng.pick(&[24, 24, 1, 2]);
        let environment = Rc::new(Environment::new(rng, faults, disturbances, trace));
        let config = Config {
            settings,
            silence_ms: SILENCE_MS,
            exports_traces: true,
        };
        Simulation {
            simulator: Simulator::new(Rc::clone(&environment), config, invocation_calls),
            environment,
            versions: BTreeMap::from([(1, json!(store_document(&document)))]),
            document,
            input,
            version: 1,
            faulty_events,
            is_unattended: false,
            ends_by: BTreeMap::new(),
        }
    }

    pub(super) fn started(mut self) -> Simulation {
        let (document, input) = (self.document.clone(), self.input.clone());
        self.start_first(&document, input);
        self
    }

    /// A caller repeats a start until it is confirmed.
    fn start_first(&mut self, document: &Value, input: Value) {
        let stored = to_raw_value(&store_document(document)).expect("a snapshot is JSON");
        let command = StartRun {
            run_id: "run-1".into(),
            stored: Rc::from(stored),
            input,
            request: Default::default(),
            parent: None,
            triggered_by: None,
            callback_secret: Some(callback_key().secret_of("run-1")),
            started_by: None,
            traceparent: None,
        };
        let starter = Caller {
            name: Some(STARTER.into()),
            ..Caller::default()
        };
        loop {
            let start = RunRequest::Start {
                command: command.clone(),
                wait_ms: None,
            };
            match self.call("run-1", Some(starter.clone()), start) {
                Some(RunResponse::Created(_) | RunResponse::Done(_)) => return,
                None | Some(RunResponse::Refused { status: 500, .. }) => {}
                Some(other) => panic!("the start was answered with {other:?}"),
            }
        }
    }

    /// Faults and operators for so many events, instead of as many as the seed says.
    pub fn with_faulty_events(mut self, events: u64) -> Simulation {
        self.faulty_events = events;
        if events == 0 {
            self.stop_faults();
            self.leave_alone();
        }
        self
    }

    pub fn faulty_events(&self) -> u64 {
        self.faulty_events
    }

    pub(super) fn stop_faults(&mut self) {
        *self.environment.faults.borrow_mut() = Faults::default();
        *self.environment.disturbances.borrow_mut() = Disturbances::default();
    }

    pub fn run(mut self) -> Outcome {
        self.run_to_end();
        let mut snapshots = Default::default();
        for (id, run) in &self.runs {
            let continued = run
                .check_end(&mut snapshots)
                .unwrap_or_else(|broken| panic!("{id}: {broken}"));
            self.environment.outcome.borrow_mut().joins_continued += continued;
            if run.store().header().is_some() {
                self.environment.check_all_received(id, &run.store());
            }
        }
        self.check_ends();
        self.environment.check_all_published();
        self.count_ends();
        self.check_traces();
        self.environment.outcome.take()
    }

    /// Until every run was deleted.
    pub(super) fn run_to_end(&mut self) {
        while self.runs.values().any(|run| !run.is_over()) {
            let events = {
                let mut outcome = self.environment.outcome.borrow_mut();
                outcome.events += 1;
                outcome.events
            };
            assert!(
                events < EVENTS_MAX,
                "the simulation is stuck: {}",
                self.describe()
            );
            if events == self.faulty_events {
                self.stop_faults();
                // Or the routes stay missing: then, too, every run ends.
                if self.environment.chance(70) {
                    self.deploy(Routes::ALL);
                }
                self.leave_alone();
            }
            self.disturb();
            self.next_event();
            for (id, run) in &self.runs {
                let checked = run.check(self.environment.now.get());
                checked.unwrap_or_else(|broken| panic!("{id}: {broken}"));
            }
            self.check_children_are_paused();
        }
    }

    pub(super) fn faults_are_over(&self) -> bool {
        self.environment.outcome.borrow().events >= self.faulty_events
    }

    /// Drops what operators have sent.
    pub(super) fn forget_requests(&mut self) {
        let is_of_operator =
            |message: &InFlight| matches!(message, InFlight::Request { .. } | InFlight::Scheduled(_));
        let mut in_flight = self.environment.in_flight.borrow_mut();
        in_flight.retain(|_, message| !is_of_operator(message));
    }

    fn count_ends(&self) {
        let mut outcome = self.environment.outcome.borrow_mut();
        for run in self.runs.values() {
            let store = run.store();
            let Some(header) = store.header() else { continue };
            outcome.runs += 1;
            outcome.children += u64::from(header.parent.is_some());
            let error = header.error.as_ref();
            outcome.given_up += u64::from(error.is_some_and(|it| it.code == "internal_error"));
            let count = match header.status.name() {
                "completed" => &mut outcome.completed,
                "failed" => &mut outcome.failed,
                "timed_out" => &mut outcome.timed_out,
                "cancelled" => &mut outcome.cancelled,
                other => panic!("{other} is no end"),
            };
            *count += 1;
            let rows = store.run.iter();
            let fired =
                rows.filter(|(key, row)| key.starts_with("instance/") && row.contains("\"fired_at\""));
            outcome.joins_fired += fired.count() as u64;
        }
    }

    pub(super) fn next_event(&mut self) {
        match self.simulator.take_turn() {
            Next::Handled => {}
            Next::Scheduled(number) => {
                let retry = self.environment.retries.borrow_mut().remove(&number);
                if let Some(Retry { run, mode, choice }) = retry {
                    self.retry(&run, mode, choice);
                }
            }
            Next::Nothing => {
                let stuck = "nothing will ever happen again";
                assert!(!self.is_unattended, "{stuck}: {}", self.describe());
                let ids: Vec<String> = self.runs.keys().cloned().collect();
                let cared_for = ids.iter().filter(|id| self.take_care(id)).count();
                assert!(cared_for > 0, "{stuck}: {}", self.describe());
            }
        }
    }

    /// Every object leaves memory and comes back with the new settings.
    pub(super) fn deploy(&mut self, routes: Routes) {
        if self.environment.trace {
            println!("{} deployed with {routes:?}", self.environment.now.get());
        }
        self.config.settings.routes = routes;
        let ids: Vec<String> = self.runs.keys().cloned().collect();
        for id in &ids {
            self.evict(id);
        }
    }

    fn describe(&self) -> String {
        let open = self.runs.iter().filter(|(_, run)| !run.is_over());
        open.map(|(id, run)| format!("{id}: {:?}\n", run.store()))
            .collect()
    }
}
