//! The answer of a simulation: the run as the API shows it, the calls that were made, and what they would cost.

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::price;
use crate::base::text::json_bytes;
use crate::definition::node::NodeKind;
use crate::definition::wait::Wait;
use crate::host::Host;
use crate::protocol::run::{PageRequest, RunRequest, RunResponse};
use crate::run::{Run, TokenStatus};
use crate::simulate::limits::{ANSWER_BYTES, exceeded};
use crate::simulate::mocked_world::{MockedWorld, name_of};
use crate::simulate::object::SimulatedRun;
use crate::simulate::platform::SimPlatform;
use crate::simulate::simulation::{RUN_ID, Simulation};

/// Items of one page.
const PAGE: u64 = 1_000;

const SMALLER: &str = "use a smaller input, smaller mocked results or fewer branches";

pub fn of(simulation: &mut Simulation) -> Result<Value, Error> {
    let broken_at_the_end = simulation.check_ends();
    *simulation.environment().faults.borrow_mut() = Default::default();
    let mut view = simulation.view_of(RUN_ID)?;
    // The start of a child may have met a fault.
    let runs = simulation.simulator.runs.iter();
    let others = runs.filter(|(id, run)| *id != RUN_ID && run.store().status().is_some());
    let others: Vec<String> = others.map(|(id, _)| id.clone()).collect();
    let (mut children, mut bytes) = (Vec::new(), 0);
    for id in &others {
        let child = simulation.view_of(id)?;
        bytes += json_bytes(&child);
        if bytes > ANSWER_BYTES {
            return Err(exceeded("bytes of answer", ANSWER_BYTES, SMALLER));
        }
        children.push(child);
    }
    let calls = simulation
        .simulator
        .world
        .peers
        .calls
        .views(simulation.started_at);
    let run = &view["run"];
    let virtual_ms = run["duration_ms"].clone();
    let has_ended = !run["ended_at"].is_null();
    view["calls"] = json!(calls);
    view["virtual_ms"] = virtual_ms;
    view["dollars"] = json!(price::dollars(
        &simulation.simulator.usage(simulation.simulator.world.attempts())
    ));
    if !children.is_empty() {
        view["children"] = json!(children);
    }
    if !has_ended {
        view["waits_for"] = json!(simulation.waits_for());
    }
    if simulation.has_faults {
        let world = &simulation.simulator.world;
        let broken = world.broken.borrow();
        view["violations"] = broken
            .iter()
            .chain(&broken_at_the_end)
            .map(|it| json!(it))
            .collect();
        let started_at = simulation.started_at;
        let history = world.history.borrow();
        let faults = history
            .iter()
            .map(|(at, fault)| json!({"at_ms": at - started_at, "fault": fault}));
        view["faults"] = faults.collect();
    }
    match json_bytes(&view) > ANSWER_BYTES {
        true => Err(exceeded("bytes of answer", ANSWER_BYTES, SMALLER)),
        false => Ok(view),
    }
}

impl Simulation {
    /// The run as the API shows it, with all pages of its lists.
    fn view_of(&mut self, id: &str) -> Result<Value, Error> {
        let (run, _) = self.ask(id, RunRequest::Read { wait_ms: 0 })?;
        Ok(json!({
            "run": run,
            "tokens": self.all(id, RunRequest::ListTokens)?,
            "events": self.all(id, RunRequest::ListEvents)?,
            "timeouts": self.all(id, RunRequest::ListTimeouts)?,
        }))
    }

    fn all(&mut self, id: &str, list: fn(PageRequest) -> RunRequest) -> Result<Vec<Value>, Error> {
        let (mut items, mut bytes, mut after) = (Vec::new(), 0, 0);
        loop {
            let (mut page, page_bytes) = self.ask(id, list(PageRequest { after, limit: PAGE }))?;
            bytes += page_bytes;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            if bytes > ANSWER_BYTES {
                return Err(exceeded("bytes of answer", ANSWER_BYTES, SMALLER));
            }
            let next = page["next_cursor"].as_str().and_then(|next| next.parse().ok());
            match next {
                Some(next) => after = next,
                None => return Ok(items),
            }
        }
    }

    /// An answer and its size.
    pub(super) fn ask(&mut self, id: &str, request: RunRequest) -> Result<(Value, usize), Error> {
        match self.simulator.request(id, request) {
            Some(RunResponse::Done(text)) => {
                let answer = serde_json::from_str(&text).map_err(|_| Error::internal())?;
                Ok((answer, text.len()))
            }
            Some(_) | None => Err(Error::internal()),
        }
    }

    /// What must hold for every run that has ended, and does not.
    fn check_ends(&self) -> Vec<String> {
        if !self.has_faults {
            return Vec::new();
        }
        let runs = self.simulator.runs.iter();
        let ended = runs.filter(|(_, run)| run.store().has_ended());
        let mut snapshots = self.environment().snapshots.borrow_mut();
        let broken = ended.filter_map(|(id, run)| {
            let broken = run.check_end(&mut snapshots).err()?;
            Some(format!("{id}: {broken}"))
        });
        broken.collect()
    }

    /// What open runs wait for that never came.
    fn waits_for(&self) -> Vec<Value> {
        let mut waits = self.simulator.world.peers.calls.open();
        for run in self.simulator.runs.values().filter(|run| run.is_open()) {
            waits.extend(gates_of(run));
            let of_run = |host: &Host<SimPlatform<MockedWorld>>| host.with_run(signals_of).ok();
            waits.extend(run.host.as_ref().and_then(of_run).into_iter().flatten());
        }
        waits
    }
}

fn gates_of(run: &SimulatedRun<MockedWorld>) -> Vec<Value> {
    let gates = run.open_gates().into_iter();
    let gates = gates.map(|gate| {
        let add = json!({"gate": name_of(&gate), "choice": gate.choices.first()});
        json!({"for": "decision", "node_id": gate.node_id, "gate_id": gate.id, "choices": gate.choices, "add": add})
    });
    gates.collect()
}

/// Signals and callbacks.
fn signals_of(run: &Run) -> Vec<Value> {
    let suspended = run
        .live_tokens()
        .filter(|token| token.status == TokenStatus::Suspended);
    let waits = suspended.map(|token| {
        let node = &run.snapshot().workflow.nodes[token.node];
        let run_id = &run.header.id;
        match &node.kind {
            NodeKind::Wait(wait) => match &**wait {
                Wait::Signal { name, .. } => {
                    let add = json!({"name": name, "at": 0, "payload": null});
                    json!({"for": "signal", "run_id": run_id, "node_id": node.id, "signal": name, "add": add})
                }
                Wait::Sleep(_) | Wait::Until(_) => {
                    json!({"for": "time", "run_id": run_id, "node_id": node.id})
                }
            },
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Gate(_)
            | NodeKind::PassThrough => {
                json!({"for": "callback", "run_id": run_id, "node_id": node.id})
            }
        }
    });
    waits.collect()
}
