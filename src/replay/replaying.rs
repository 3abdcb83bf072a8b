//! One replay: starts the run at its recorded moment, lets time go from event to event, and stops at its end, at a call that the
//! recording cannot answer for, or at a bound.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::error::Error;
use crate::api::start::{ResolvedWorkflow, StartBody, StartRun};
use crate::base::time::Millis;
use crate::host::{Config, SubrequestBudget};
use crate::protocol::caller::Caller;
use crate::protocol::run::{PageRequest, RunRequest, RunResponse};
use crate::replay::departure::AttemptLimits;
use crate::replay::export::{Export, RunView, TimeoutView, TokenView};
use crate::replay::export_bounds::Copies;
use crate::replay::recorded_calls::CallPlace;
use crate::replay::recorded_tasks::{CalledWorkflows, RecordedTasks, read_snapshot};
use crate::replay::recorded_world::{RecordedWorld, UnknownCall};
use crate::replay::recording::Recording;
use crate::run::CallbackKey;
use crate::simulate::{Environment, InFlight, Next, Rng, Simulator, Taken, is_stalled};

/// What became of the run.
pub struct Replayed {
    pub run: RunView,
    pub tokens: Vec<TokenView>,
    pub timeouts: Vec<TimeoutView>,
    pub unknown: Vec<UnknownCall>,
    /// Those of the attempts.
    pub limits: BTreeMap<CallPlace, AttemptLimits>,
}

pub struct Plan<'a> {
    pub export: &'a Export,
    pub workflow: &'a ResolvedWorkflow,
    pub input: Value,
    pub changed: Changed,
}

/// What is not as in the recording.
#[derive(Clone, Copy, Default)]
pub struct Changed {
    pub workflow: bool,
    pub input: bool,
    pub durations: bool,
}

impl Changed {
    pub fn is_nothing(self) -> bool {
        !self.workflow && !self.input && !self.durations
    }
}

pub fn replay(plan: &Plan<'_>, recording: Recording, tasks: Rc<RecordedTasks>) -> Result<Replayed, Error> {
    let mut replay = Replay::new(plan, recording, tasks)?;
    replay.start(plan)?;
    replay.run_until_end()?;
    replay.finish()
}

struct Replay {
    simulator: Simulator<RecordedWorld>,
    run_id: String,
    /// The last moment of a recording whose run has not ended.
    stops_at: Option<Millis>,
    taken: Taken,
    /// When the last request of the recording arrives.
    last_request: Option<(Millis, u64)>,
}

impl Replay {
    fn new(plan: &Plan<'_>, mut recording: Recording, tasks: Rc<RecordedTasks>) -> Result<Replay, Error> {
        let export = plan.export;
        let reap_ms = export.settings.heartbeat_ms;
        let mut environment = Environment::new(Rng::seeded(0), export.run.started_at);
        environment.heartbeat_ms = environment.heartbeat_ms.min((reap_ms / 3).max(1));
        let requests = std::mem::take(&mut recording.requests);
        let called = match plan.changed.is_nothing() {
            true => CalledWorkflows::default(),
            false => tasks.called_by(&read_snapshot(plan.workflow.stored())?),
        };
        let is_unchanged = plan.changed.is_nothing();
        let world = RecordedWorld::new(environment, recording, tasks, called, is_unchanged, reap_ms);
        let config = Config {
            settings: export.settings,
            silence_ms: u64::MAX,
            exports_traces: false,
        };
        let calls = SubrequestBudget::default().remaining();
        let mut simulator = Simulator::new(Rc::new(world), config, calls);
        simulator.keeps_ended_runs = true;
        let run_id = export.run.id.clone();
        let mut last_request = None;
        let mut copies = Copies::default();
        let mut versions: BTreeMap<u64, ResolvedWorkflow> = BTreeMap::new();
        for mut recorded in requests {
            if let Some(version) = recorded.version.filter(|_| !plan.changed.workflow) {
                let stored = export.snapshot_of(version)?;
                copies.add(stored)?;
                let workflow = match versions.entry(version) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(ResolvedWorkflow::new(stored.clone())?),
                };
                go_on_with(&mut recorded.request, workflow, &run_id);
            }
            let request = InFlight::Request {
                run: run_id.clone(),
                caller: recorded.by.map(|name| Caller {
                    name: Some(name),
                    ..Caller::default()
                }),
                request: recorded.request,
                is_repeated: false,
            };
            let environment = &simulator.world.environment;
            let arrival = environment.post_ranked(recorded.after_ms, recorded.rank, request);
            last_request = last_request.max(Some(arrival));
        }
        let has_ended = export.run.ended_at.is_some();
        let last = export.run.started_at.saturating_add(export.run.duration_ms);
        Ok(Replay {
            simulator,
            run_id,
            stops_at: (!has_ended).then_some(last),
            taken: Taken::default(),
            last_request,
        })
    }

    fn start(&mut self, plan: &Plan<'_>) -> Result<(), Error> {
        let export = plan.export;
        let start = StartBody {
            run_id: None,
            input: plan.input.clone(),
            request: export.start.request.clone(),
        };
        // What has run was accepted, and children are not checked as callers are.
        let is_accepted = !plan.changed.workflow && !plan.changed.input;
        let mut command = match is_accepted || export.start.parent.is_some() {
            true => plan.workflow.start_unchecked(self.run_id.clone(), start),
            false => StartRun::new(self.run_id.clone(), start, plan.workflow)?,
        };
        command.callback_secret = Some(callback_secret(&self.run_id));
        command.parent = export.start.parent.clone();
        command.triggered_by = export.start.triggered_by.clone();
        command.started_by = export.run.started_by.clone();
        let start = RunRequest::Start {
            command,
            wait_ms: None,
        };
        match self.simulator.request(&self.run_id, start) {
            Some(RunResponse::Created(_) | RunResponse::Done(_)) => Ok(()),
            Some(other) => Err(refusal("the run cannot be started", other)),
            None => Err(lost()),
        }
    }

    fn run_until_end(&mut self) -> Result<(), Error> {
        loop {
            let world = &self.simulator.world;
            if let Some(broken) = world.broken.borrow().first() {
                let message =
                    format!("the replay broke a rule of any run, which is a bug in Curfew: {broken}");
                return Err(Error::new(422, "not_replayable", message));
            }
            let is_known = world.unknown.borrow().is_empty();
            if !is_known || self.is_over() {
                return Ok(());
            }
            let next = self.simulator.next_at();
            if let (Some(next), Some(stops_at)) = (next, self.stops_at)
                && next > stops_at
            {
                world.environment.advance(stops_at);
                return Ok(());
            }
            let commits = world.commits.get();
            match self.simulator.take_turn() {
                Next::Handled => {}
                Next::Scheduled(number) => {
                    if let Some(run) = self.simulator.runs.get(&self.run_id) {
                        self.simulator.world.recording_ends(number, &run.store());
                    }
                }
                Next::Nothing => {
                    self.rest();
                    return Ok(());
                }
            }
            let is_idle = self.simulator.world.commits.get() == commits;
            self.taken.count_turn(is_idle, self.simulator.world.steps.take());
            let rows_bytes = self.simulator.world.rows_bytes.get();
            self.taken.check(self.simulator.runs.len(), rows_bytes, 0)?;
            if is_idle && is_stalled(&self.simulator) {
                self.rest();
                return Ok(());
            }
        }
    }

    /// Nothing will ever happen again: the run goes on as long as it was recorded.
    fn rest(&self) {
        if let Some(stops_at) = self.stops_at {
            self.simulator.world.environment.advance(stops_at);
        }
    }

    /// The run has ended, and no recorded request brings it back.
    fn is_over(&self) -> bool {
        let mut runs = self.simulator.runs.values();
        let in_flight = self.simulator.world.environment.in_flight.borrow();
        // What arrives before it is handled before it.
        let has_requests = self
            .last_request
            .is_some_and(|arrival| in_flight.contains_key(&arrival));
        !has_requests && !runs.any(|run| run.has_something_to_do())
    }

    fn finish(mut self) -> Result<Replayed, Error> {
        Ok(Replayed {
            run: self.ask(RunRequest::Read { wait_ms: 0 })?,
            tokens: self.all(RunRequest::ListTokens)?,
            timeouts: self.all(RunRequest::ListTimeouts)?,
            unknown: self.simulator.world.unknown.take(),
            limits: self.simulator.world.limits.take(),
        })
    }

    fn all<T: DeserializeOwned>(&mut self, list: fn(PageRequest) -> RunRequest) -> Result<Vec<T>, Error> {
        let (mut items, mut after) = (Vec::new(), 0);
        loop {
            let mut page: Value = self.ask(list(PageRequest { after, limit: PAGE }))?;
            let more: Vec<T> = read(page["items"].take())?;
            items.extend(more);
            match page["next_cursor"].as_str().and_then(|next| next.parse().ok()) {
                Some(next) => after = next,
                None => return Ok(items),
            }
        }
    }

    fn ask<T: DeserializeOwned>(&mut self, request: RunRequest) -> Result<T, Error> {
        match self.simulator.request(&self.run_id, request) {
            Some(RunResponse::Done(text)) => read(serde_json::from_str(&text).map_err(|_| lost())?),
            Some(_) | None => Err(lost()),
        }
    }
}

/// A history that no run can have may lead anywhere.
fn lost() -> Error {
    let message = "the replay left nothing of the run that can be read: the export is not that of a run; export the run again";
    Error::new(422, "not_replayable", message)
}

/// Puts the version into the request that brought the run back.
fn go_on_with(request: &mut RunRequest, workflow: &ResolvedWorkflow, run_id: &str) {
    if let RunRequest::Retry { version, .. } | RunRequest::Restart { version, .. } = request {
        *version = Some(workflow.for_run(Some(callback_secret(run_id))));
    }
}

/// From which the capabilities of callbacks are derived: any will do.
fn callback_secret(run_id: &str) -> String {
    let key = CallbackKey::parse(&"0".repeat(64)).expect("64 hex digits");
    key.secret_of(run_id)
}

/// Items of one page.
const PAGE: u64 = 1_000;

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|_| lost())
}

fn refusal(what: &str, response: RunResponse) -> Error {
    let (_, body) = response.into_parts();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let why = body["error"]["message"].as_str().unwrap_or("it was refused");
    Error::new(422, "limit_exceeded", format!("{what}: {why}"))
}
