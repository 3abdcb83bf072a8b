//! One simulation: starts the run, lets time go from event to event, and stops when every run has ended, when nothing will
//! ever happen again, or at a bound.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::api::error::Error;
use crate::api::start::{ResolvedWorkflow, StartBody, StartRun};
use crate::api::views;
use crate::base::time::Millis;
use crate::breaker::machine::Settings as BreakerSettings;
use crate::host::{Config, SubrequestBudget};
use crate::protocol::caller::Caller;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::start::StartRequest;
use crate::run::{CallbackKey, Routes, Run, Settings, TokenStatus};
use crate::simulate::answer;
use crate::simulate::body::SimulateBody;
use crate::simulate::calls::{CallLog, Mocks};
use crate::simulate::environment::Environment;
use crate::simulate::faults::Faults;
use crate::simulate::in_flight::InFlight;
use crate::simulate::limits::Taken;
use crate::simulate::mocked_world::MockedWorld;
use crate::simulate::names;
use crate::simulate::rng::Rng;
use crate::simulate::simulator::{Next, Simulator};
use crate::simulate::task_runner::Peers;
use crate::simulate::world::World;
use crate::storage::restore::Snapshots;

/// The id of the run; children have it as their first part.
pub const RUN_ID: &str = "simulated";

/// How often a request is repeated that a fault broke.
const REPEATS_MAX: u32 = 1_000;

/// What a deployment sets.
#[derive(Clone, Copy)]
pub struct Deployment {
    pub settings: Settings,
    pub silence_ms: u64,
    pub breakers: BreakerSettings,
}

impl Default for Deployment {
    fn default() -> Deployment {
        Deployment {
            settings: Settings::default(),
            silence_ms: 90_000,
            breakers: BreakerSettings::default(),
        }
    }
}

pub struct Simulation {
    pub(super) simulator: Simulator<MockedWorld>,
    pub(super) started_at: Millis,
    taken: Taken,
    faulty_turns: u64,
    pub(super) has_faults: bool,
}

/// How far a simulation goes, if it does not end before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Every run has ended, or nothing will ever happen again.
    End,
    /// Everything that is due by then has happened.
    Moment(Millis),
    /// A row has changed.
    Change,
}

/// Simulates a run of `workflow`. The answer is the ended run as the API shows it.
pub fn simulate(
    body: SimulateBody,
    workflow: &ResolvedWorkflow,
    deployment: &Deployment,
) -> Result<Value, Error> {
    simulate_sharing(body, workflow, deployment, &Rc::default())
}

/// The same, with parsed snapshots that other simulations use, too.
pub(super) fn simulate_sharing(
    body: SimulateBody,
    workflow: &ResolvedWorkflow,
    deployment: &Deployment,
    snapshots: &Rc<RefCell<Snapshots>>,
) -> Result<Value, Error> {
    let stops_at = body
        .until_ms
        .map(|millis| Until::Moment(body.start_at.saturating_add(millis)));
    let mut simulation = Simulation::new(body, workflow, deployment, snapshots)?;
    simulation.go_on(stops_at.unwrap_or(Until::End))?;
    answer::of(&mut simulation)
}

impl Simulation {
    pub(super) fn new(
        body: SimulateBody,
        workflow: &ResolvedWorkflow,
        deployment: &Deployment,
        snapshots: &Rc<RefCell<Snapshots>>,
    ) -> Result<Simulation, Error> {
        names::check(&body, workflow.stored())?;
        let mut environment = Environment::new(Rng::seeded(body.seed), body.start_at);
        environment.snapshots = Rc::clone(snapshots);
        let faults = body.faults.as_ref();
        if let Some(plan) = faults {
            let drawn = || Faults::around_workflow(&mut environment.rng.borrow_mut());
            let odds = plan.odds.clone().unwrap_or_else(drawn);
            *environment.faults.borrow_mut() = odds;
            environment.has_delays = true;
            environment.is_checked = true;
        }
        let peers = Peers {
            environment,
            mocks: Mocks::new(body.mocks),
            calls: CallLog::default(),
            breaker_settings: deployment.breakers,
            breakers: RefCell::default(),
            admissions: RefCell::default(),
            tasks: RefCell::default(),
            error: RefCell::default(),
            steps: Default::default(),
        };
        let mut settings = deployment.settings;
        settings.queue = body.queue.unwrap_or(settings.queue);
        // The executors are simulated, too.
        settings.routes = Routes::ALL;
        let config = Config {
            settings,
            silence_ms: deployment.silence_ms,
            exports_traces: false,
        };
        let calls = SubrequestBudget::default().remaining();
        let signals = body.signals.iter().map(|signal| signal.name.clone()).collect();
        let world = Rc::new(MockedWorld::new(peers, body.people, signals, body.stand_ins));
        let mut simulation = Simulation {
            simulator: Simulator::new(world, config, calls),
            started_at: body.start_at,
            taken: Taken::default(),
            faulty_turns: faults.map_or(0, |plan| plan.turns),
            has_faults: faults.is_some(),
        };
        simulation.simulator.keeps_ended_runs = true;
        if simulation.faulty_turns == 0 {
            simulation.stop_faults();
        }
        let starter = body.by.map(|name| Caller {
            name: Some(name),
            ..Caller::default()
        });
        let start = StartBody {
            run_id: None,
            input: body.input,
            request: StartRequest {
                timeout_ms: body.timeout_ms,
                ..StartRequest::default()
            },
        };
        let start = StartRun::new(RUN_ID.into(), start, workflow)?;
        let start = StartRun {
            callback_secret: Some(callback_key(body.seed).secret_of(RUN_ID)),
            ..start
        };
        simulation.start(start, starter.as_ref())?;
        for signal in body.signals {
            let request = InFlight::Request {
                run: RUN_ID.into(),
                caller: None,
                request: RunRequest::Signal {
                    name: signal.name,
                    payload: signal.payload,
                },
                is_repeated: true,
            };
            simulation.environment().post(signal.at_ms, request);
        }
        Ok(simulation)
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.simulator.world.peers.environment
    }

    fn start(&mut self, command: StartRun, starter: Option<&Caller>) -> Result<(), Error> {
        let start = RunRequest::Start {
            command,
            wait_ms: None,
        };
        match self.answer_to(RUN_ID, starter, &start) {
            Some(RunResponse::Created(_) | RunResponse::Done(_)) => Ok(()),
            Some(other) => {
                let (status, body) = other.into_parts();
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                let why = body["error"]["message"].as_str().unwrap_or("it was refused");
                let message = format!("the run cannot be started: {why}");
                Err(match status {
                    413 => Error::new(413, "limit_exceeded", message),
                    _other => Error::new(422, "limit_exceeded", message),
                })
            }
            None => {
                let message =
                    "the run could not be started: every start met a fault; lower the odds of \"faults\"";
                Err(Error::new(422, "limit_exceeded", message))
            }
        }
    }

    /// A caller repeats a request until it is answered. `None`: each time it met a fault.
    pub(super) fn answer_to(
        &mut self,
        run: &str,
        caller: Option<&Caller>,
        request: &RunRequest,
    ) -> Option<RunResponse> {
        (0..REPEATS_MAX).find_map(|_| {
            let response = self.simulator.call(run, caller.cloned(), request.clone())?;
            let is_broken = matches!(response, RunResponse::Refused { status: 500, .. });
            (!is_broken).then_some(response)
        })
    }

    /// Lets time go. An error ends the simulation.
    pub(super) fn go_on(&mut self, until: Until) -> Result<(), Error> {
        self.take_turns(until)?;
        // The last turn may have found one.
        match self.simulator.world.peers.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn take_turns(&mut self, until: Until) -> Result<(), Error> {
        loop {
            if let Some(error) = self.simulator.world.peers.error.take() {
                return Err(error);
            }
            let is_broken = !self.simulator.world.broken.borrow().is_empty();
            if is_broken || self.is_over() || self.stops_before_next(until) {
                return Ok(());
            }
            if self.taken.turns == self.faulty_turns {
                self.stop_faults();
            }
            self.evict_some();
            let commits = self.simulator.world.commits.get();
            match self.simulator.take_turn() {
                Next::Handled => {}
                Next::Scheduled(task) => self.simulator.world.wake_task(task),
                Next::Nothing => return Ok(()),
            }
            let is_idle = self.simulator.world.commits.get() == commits;
            self.count_turn(is_idle)?;
            if self.has_faults {
                self.check_runs();
            }
            let is_enough = !is_idle && until == Until::Change;
            if is_enough || is_idle && is_stalled(&self.simulator) {
                return Ok(());
            }
        }
    }

    fn stop_faults(&self) {
        *self.environment().faults.borrow_mut() = Faults::default();
    }

    fn is_over(&self) -> bool {
        let mut runs = self.simulator.runs.values();
        !runs.any(|run| run.has_something_to_do())
    }

    /// Whether the caller wants to see the run before the next event.
    fn stops_before_next(&self, until: Until) -> bool {
        let Until::Moment(stops_at) = until else {
            return false;
        };
        let stops = self.simulator.next_at().is_none_or(|next| next > stops_at);
        if stops {
            self.environment().advance(stops_at);
        }
        stops
    }

    /// An object may leave memory between two events.
    fn evict_some(&mut self) {
        if self.simulator.world.fault(|faults| faults.eviction) {
            let environment = self.environment();
            let number = environment.below(self.simulator.runs.len() as u64) as usize;
            let id = self.simulator.runs.keys().nth(number).cloned();
            if let Some(id) = id {
                self.simulator.evict(&id);
            }
        }
    }

    fn count_turn(&mut self, is_idle: bool) -> Result<(), Error> {
        let world = &self.simulator.world;
        self.taken
            .count_turn(is_idle, world.steps.take() + world.peers.steps.take());
        self.taken.calls_bytes = world.peers.calls.bytes();
        self.taken.answers_bytes = world.peers.mocks.given_bytes();
        let runs = self.simulator.runs.len();
        self.taken
            .check(runs, world.rows_bytes.get(), world.peers.calls.len())
    }

    /// What must hold for any run between two events.
    fn check_runs(&self) {
        let now = self.simulator.now();
        for (id, run) in &self.simulator.runs {
            if let Err(broken) = run.check(now) {
                let world = &self.simulator.world;
                world.broken.borrow_mut().push(format!("{id}: {broken}"));
            }
        }
    }
}

/// Nothing is on its way, and no run has a deadline: alarms would ring forever and find nothing to do.
pub fn is_stalled<W: World>(simulator: &Simulator<W>) -> bool {
    let in_flight = simulator.world.environment().in_flight.borrow();
    let only_heartbeats = in_flight
        .values()
        .all(|message| matches!(message, InFlight::Heartbeat { .. }));
    drop(in_flight);
    let now = simulator.now();
    let mut open = simulator.runs.values().filter(|run| run.has_something_to_do());
    only_heartbeats
        && open.all(|run| {
            let host = run.host.as_ref();
            let waits = host.and_then(|host| host.with_run(|run| waits_forever(run, now)).ok());
            run.is_open() && waits.unwrap_or(false)
        })
}

fn waits_forever(run: &Run, now: Millis) -> bool {
    let is_on_its_way =
        |status: TokenStatus| matches!(status, TokenStatus::Pending | TokenStatus::Dispatched);
    let mut tokens = run.live_tokens();
    let has_deadline = views::run(run, now)["deadlines"]
        .as_array()
        .is_some_and(|deadlines| deadlines.iter().any(|deadline| !deadline["due_at"].is_null()));
    run.header.ending.is_none() && !has_deadline && !tokens.any(|token| is_on_its_way(token.status))
}

/// The key from which capabilities of callbacks are derived.
fn callback_key(seed: u64) -> CallbackKey {
    CallbackKey::parse(&format!("{seed:064x}")).expect("64 hex digits")
}
