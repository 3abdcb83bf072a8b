//! What persons do to the runs of a world, sensible or not: they look after a run, pause it, give it more time, cancel
//! it, bring it back from its end.

use curfew::run::{Event, Extension, GateDecision, GateKind, RetryMode, Routes, RunStatus};
use serde_json::{Value, json};

use super::mail::Mail;
use super::world::{Fate, World};

impl World {
    /// What may happen between two events.
    pub(super) fn disturb(&mut self) {
        let ids: Vec<String> = self.runs.keys().cloned().collect();
        let id = self.dice.pick(&ids).clone();
        if self.dice.chance(self.faults.eviction) && self.runs[&id].object.is_some() {
            self.note(&id, "evicted");
            self.outcome.evictions += 1;
            self.die(&id);
        }
        if self.dice.chance(self.faults.deployment) {
            let routes = Routes {
                executor: self.dice.chance(50),
                queue: self.dice.chance(50),
            };
            self.deploy(routes);
        }
        if self.dice.chance(self.faults.knock) {
            self.ask(
                &id,
                Event::Woken {
                    open_calls: Vec::new(),
                },
            );
        }
        if self.dice.chance(self.faults.cancel) {
            self.ask(&id, Event::CancelRequested { reason: None });
        }
        if self.dice.chance(self.faults.pause) {
            self.ask(&id, Event::PauseRequested);
            self.outcome.pauses += 1;
        }
        if self.dice.chance(self.faults.extend) {
            let more = *self.dice.pick(&[1, 700, 9_000, 60_000]);
            let by = match self.dice.chance(50) {
                true => Extension::Until(self.now + more),
                false => Extension::By(more),
            };
            self.ask(&id, Event::ExtendRequested(by));
        }
        if self.dice.chance(self.faults.restart) {
            self.ask(&id, Event::RestartRequested { from: None });
        }
        if self.dice.chance(self.faults.retry) {
            self.bring_back(&ids);
        }
        if self.dice.chance(self.faults.person) {
            self.help(&id);
        }
        // When the world is kind, persons do what they are asked for, where nothing else would end it.
        if self.is_kind() && !self.quiet && self.dice.chance(20) {
            for id in &ids {
                self.help(id);
            }
        }
    }

    /// Somebody wants a run back that failed or timed out.
    fn bring_back(&mut self, ids: &[String]) {
        let ended = |id: &&String| {
            let header = self.runs[*id].store.header();
            let status = header.map(|header| header.status);
            !self.runs[*id].deleted && matches!(status, Some(RunStatus::Failed | RunStatus::TimedOut))
        };
        let ended: Vec<&String> = ids.iter().filter(ended).collect();
        if ended.is_empty() {
            return;
        }
        let run = (*self.dice.pick(&ended)).clone();
        let modes = [
            RetryMode::RetryStep,
            RetryMode::DiscardAndRetry,
            RetryMode::Escalate,
        ];
        let mode = *self.dice.pick(&modes);
        let choice = Some(self.dice.below(8)).filter(|_| self.dice.chance(30));
        let delay = self.dice.below(20_000);
        self.post(delay, Mail::Retry { run, mode, choice });
    }

    pub(super) fn retry(&mut self, id: &str, mode: RetryMode, choice: Option<u64>) {
        if self.runs[id].deleted || self.load(id) == Fate::Died {
            return;
        }
        let hosted = &self.runs[id];
        let Some(object) = &hosted.object else { return };
        let past = hosted
            .store
            .past(object.run.snapshot())
            .expect("what was saved can be read");
        let tokens = object.run.resume_plan(&past).tokens;
        let token = choice
            .filter(|_| !tokens.is_empty())
            .map(|choice| tokens[choice as usize % tokens.len()]);
        let retry = hosted.store.retry(&object.run, mode, token);
        self.deliver(id, Some(retry));
    }

    /// A person looks after a run: resumes it, decides, sends the signals it waits for. True if there was anything to do.
    pub(super) fn help(&mut self, id: &str) -> bool {
        let hosted = &self.runs[id];
        if !hosted.is_open() {
            return false;
        }
        let (paused, gates, suspended) = (hosted.is_paused(), hosted.open_gates(), hosted.has_suspended());
        if paused {
            self.ask(id, Event::ResumeRequested);
        }
        for gate in &gates {
            let (choice, input) = self.decide(gate.kind);
            let decision = GateDecision {
                choice: choice.to_string(),
                input,
                comment: None,
                by: Some("ada".into()),
                at: 0,
            };
            self.ask(
                id,
                Event::GateDecided {
                    gate: gate.id.clone(),
                    decision,
                },
            );
            self.outcome.decisions += 1;
        }
        if suspended {
            let name = (*self.dice.pick(&["go", "stop"])).to_string();
            self.ask(
                id,
                Event::SignalReceived {
                    name,
                    payload: json!({"n": 1}),
                },
            );
            self.outcome.signals += 1;
        }
        paused || suspended || !gates.is_empty()
    }

    fn decide(&mut self, kind: GateKind) -> (&'static str, Value) {
        match kind {
            GateKind::Node => (*self.dice.pick(&["approve", "reject"]), Value::Null),
            GateKind::WorkflowTimeout => {
                let by_ms = *self.dice.pick(&[1, 900, 15_000, 90_000]);
                let choice = *self.dice.pick(&["extend", "extend", "extend", "abort", "fail"]);
                (choice, json!({"by_ms": by_ms}))
            }
            GateKind::Escalation => (*self.dice.pick(&["retry", "retry", "fail", "skip"]), Value::Null),
        }
    }

    pub(super) fn ask(&mut self, id: &str, event: Event) {
        let delay = self.dice.below(2_000);
        let run = id.to_string();
        self.post(delay, Mail::Request { run, event });
    }
}
