//! What operators do to runs, sensible or not: they take care of a run, pause it, extend it, cancel it, retry it. Deployments and
//! evictions happen here as well.

use curfew::protocol::caller::Caller;
use curfew::protocol::run::{Extension, GateDecision, RetryMode, RunRequest, RunResponse};
use curfew::run::{GateKind, Routes, RunStatus};
use curfew::simulate::{InFlight, World};
use serde_json::{Value, json};

use super::environment::Retry;
use super::simulation::Simulation;

impl Simulation {
    /// What may happen between two events.
    pub(super) fn disturb(&mut self) {
        let ids: Vec<String> = self.runs.keys().cloned().collect();
        let id = self.environment.pick(&ids);
        let is_in_memory = self.runs[&id].host.is_some();
        if is_in_memory && self.environment.fault(|faults| faults.eviction) {
            self.environment.note(&id, "evicted");
            self.evict(&id);
        }
        let environment = self.environment.clone();
        if environment.disturbs(|odds| odds.abandon) {
            self.evict(&id);
            self.request(&id, RunRequest::Abandon);
        }
        if environment.disturbs(|odds| odds.deployment) {
            let routes = Routes {
                executor: environment.chance(50),
                queue: environment.chance(50),
            };
            self.deploy(routes);
        }
        if environment.disturbs(|odds| odds.probe) {
            self.ask(&id, RunRequest::Probe);
        }
        if environment.disturbs(|odds| odds.cancel) {
            self.ask(&id, RunRequest::Cancel { reason: None });
        }
        if environment.disturbs(|odds| odds.pause) {
            self.ask(&id, RunRequest::Pause);
            environment.outcome.borrow_mut().pauses += 1;
        }
        if environment.disturbs(|odds| odds.extend) {
            let more = environment.pick(&[1, 700, 9_000, 60_000]);
            let extension = match environment.chance(50) {
                true => Extension::Until(environment.now.get() + more),
                false => Extension::By(more),
            };
            self.ask(&id, RunRequest::Extend(extension));
        }
        if environment.disturbs(|odds| odds.restart) {
            let version = self.some_version(&id);
            let from_node_id = self.some_node(&id);
            let restart = RunRequest::Restart {
                from_node_id,
                version,
            };
            self.ask(&id, restart);
        }
        if environment.disturbs(|odds| odds.retry) {
            self.retry_some(&ids);
        }
        if environment.disturbs(|odds| odds.operator) {
            self.take_care(&id);
        }
        // After the faults operators do what a run waits for, where nothing else would end it.
        if self.faults_are_over() && !self.is_unattended && environment.chance(20) {
            for id in &ids {
                self.take_care(id);
            }
        }
    }

    /// A node to restart from, which the run may not have come to yet. `None`: from the beginning.
    fn some_node(&self, id: &str) -> Option<String> {
        let run = &self.runs[id];
        if run.is_over() || self.environment.chance(50) {
            return None;
        }
        let snapshot = run.store().snapshot();
        let nodes = snapshot["workflow"]["nodes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let node = self.environment.pick(&nodes);
        node["id"].as_str().map(str::to_string)
    }

    fn retry_some(&mut self, ids: &[String]) {
        let can_be_retried = |id: &&String| {
            let run = &self.runs[*id];
            let status = run.store().header().map(|header| header.status);
            !run.is_deleted() && matches!(status, Some(RunStatus::Failed | RunStatus::TimedOut))
        };
        let ended: Vec<&String> = ids.iter().filter(can_be_retried).collect();
        if ended.is_empty() {
            return;
        }
        let environment = &self.environment;
        let run = environment.pick(&ended).clone();
        let modes = [
            RetryMode::RetryStep,
            RetryMode::DiscardAndRetry,
            RetryMode::Escalate,
        ];
        let mode = environment.pick(&modes);
        let choice = Some(environment.below(8)).filter(|_| environment.chance(30));
        let delay = environment.below(20_000);
        environment.post_retry(delay, Retry { run, mode, choice });
    }

    pub(super) fn retry(&mut self, id: &str, mode: RetryMode, choice: Option<u64>) {
        if self.runs[id].is_deleted() || self.request(id, RunRequest::Read { wait_ms: 0 }).is_none() {
            return;
        }
        let run = &self.runs[id];
        let tokens = run.host.as_ref().map(|host| {
            host.with_run(|it| {
                let past = run.store().past().expect("rows can be read");
                it.resume_plan(&past).tokens
            })
        });
        // After a failed commit the run is not in memory.
        let Some(Ok(tokens)) = tokens else { return };
        let token = choice
            .filter(|_| !tokens.is_empty())
            .map(|choice| tokens[choice as usize % tokens.len()]);
        let token_id = token.map(|token| token.to_string());
        let version = self.some_version(id);
        let operator = self.operator();
        let retry = RunRequest::Retry {
            mode,
            token_id,
            version,
        };
        let response = self.call(id, Some(operator), retry);
        let misfits = match response {
            Some(RunResponse::Conflict(body)) => body.contains("version_does_not_fit"),
            Some(_) | None => false,
        };
        self.environment.outcome.borrow_mut().misfits += u64::from(misfits);
    }

    /// Resumes a run, decides its gates and sends the signals it waits for. True if there was anything to do.
    pub(super) fn take_care(&mut self, id: &str) -> bool {
        let run = &self.runs[id];
        if !run.is_open() {
            return false;
        }
        let (paused, gates, suspended) = (run.is_paused(), run.open_gates(), run.has_suspended());
        if paused {
            self.ask(id, RunRequest::Resume);
        }
        for gate in &gates {
            let (choice, input) = self.decide(gate.kind);
            let decision = GateDecision {
                choice: choice.to_string(),
                input,
                comment: None,
                by: None,
                at: 0,
            };
            self.ask(
                id,
                RunRequest::DecideGate {
                    gate_id: gate.id.clone(),
                    decision,
                },
            );
            self.environment.outcome.borrow_mut().decisions += 1;
        }
        if suspended {
            let name = self.environment.pick(&["go", "stop"]).to_string();
            self.ask(
                id,
                RunRequest::Signal {
                    name,
                    payload: json!({"n": 1}),
                },
            );
            self.environment.outcome.borrow_mut().signals += 1;
        }
        paused || suspended || !gates.is_empty()
    }

    fn decide(&self, kind: GateKind) -> (&'static str, Value) {
        match kind {
            GateKind::Node => (self.environment.pick(&["approve", "reject"]), Value::Null),
            GateKind::WorkflowTimeout => {
                let by_ms = self.environment.pick(&[1, 900, 15_000, 90_000]);
                let choice = self
                    .environment
                    .pick(&["extend", "extend", "extend", "abort", "fail"]);
                (choice, json!({"by_ms": by_ms}))
            }
            GateKind::Escalation => (
                self.environment.pick(&["retry", "retry", "fail", "skip"]),
                Value::Null,
            ),
        }
    }

    /// In development an operator has no name. Not random: a seed plays the same history with and without names.
    fn operator(&self) -> Caller {
        let name = [Some("ada"), Some("bob"), None][(self.environment.now.get() % 3) as usize];
        Caller {
            name: name.map(str::to_string),
            ..Caller::default()
        }
    }

    pub(super) fn ask(&self, id: &str, request: RunRequest) {
        let delay = self.environment.below(2_000);
        let run = id.to_string();
        let request = InFlight::Request {
            run,
            caller: Some(self.operator()),
            request,
            is_repeated: false,
        };
        self.environment.post(delay, request);
    }
}
