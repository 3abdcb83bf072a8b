//! Properties of time under random pauses, extensions, gates, parent messages and retries: a pause changes no remaining time,
//! a restored run decides like the one in memory, and every run ends once all its work succeeds, also after resumes.

use crate::run::plans::Plans;
use std::collections::BTreeMap;

use curfew::api::views;
use curfew::run::{
    ChildReport, Command, Decision, Event, Extension, RetryMode, RunStatus, TokenId, TokenStatus,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::driver::{
    Driver, ROOM, SETTINGS, child_of, create_run, failed, render, store_document, succeeded, timed_out,
};
use super::generator;
use curfew::simulate::Rng;

const LENGTH: usize = 25;

/// `CURFEW_PROPERTY_CASES=20000` tries more.
fn cases() -> u32 {
    let wanted = std::env::var("CURFEW_PROPERTY_CASES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn choices() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..400)
}

/// A run, and every attempt it dispatched.
struct Supervised {
    driver: Driver,
    attempts: Vec<(TokenId, u64)>,
}

impl Supervised {
    fn start(rng: &mut Rng) -> Supervised {
        let mut document = generator::workflow(rng);
        if rng.chance(60) {
            document["on_timeout"] = json!("human_gate");
            document["gate"] =
                json!({"timeout_ms": 400_000, "on_timeout": *rng.pick(&["cancel_all", "fail"])});
        }
        if rng.chance(30) {
            document["timeouts"] = json!({"inherit_budget": true});
        }
        let (run, decision) = create_run(1_000, SETTINGS, store_document(&document), json!({"x": 2}));
        let mut supervised = Supervised {
            driver: Driver::of(run, decision, SETTINGS),
            attempts: Vec::new(),
        };
        supervised.keep();
        supervised
    }

    fn keep(&mut self) {
        let dispatched = self
            .driver
            .decision
            .commands()
            .iter()
            .filter_map(|command| match command {
                Command::DispatchTask(order) => Some((order.token, order.epoch)),
                _others => None,
            });
        self.attempts.extend(dispatched);
    }

    fn feed(&mut self, now: u64, event: Event) {
        self.driver.at(now).feed(event);
        self.keep();
    }

    fn has_ended(&self) -> bool {
        self.driver.run.header.status.is_terminal()
    }

    /// A random event, sensible or not.
    fn next(&self, rng: &mut Rng) -> (u64, Event) {
        let run = &self.driver.run;
        let now = match rng.below(4) {
            0 => self.driver.now + rng.below(500),
            1 => run.next_deadline().unwrap_or(0).max(self.driver.now),
            2 => self.driver.now + 1_000,
            _long => self.driver.now + rng.below(60_000),
        };
        let newest = self.attempts.len().checked_sub(1 + rng.below(3) as usize);
        let (token, epoch) = newest.map_or((TokenId(9), 1), |index| self.attempts[index]);
        let attempt = format!("{token}@{epoch}");
        let event = match rng.below(24) {
            0..=4 => Event::TaskReported(Box::new(succeeded(&attempt, json!({"epoch": epoch})))),
            5..=7 => Event::TaskReported(Box::new(failed(&attempt))),
            8 | 9 => Event::TaskReported(Box::new(timed_out(&attempt))),
            10 | 11 => Event::Woken {
                open_calls: self.attempts.clone(),
            },
            12 => Event::Loaded,
            13 => Event::PauseRequested { by: None },
            14 => Event::ResumeRequested { by: None },
            15 => Event::ExtendRequested {
                extension: Extension::By(rng.below(30_000)),
                by: None,
                operation: None,
            },
            16 => Event::ParentHolds {
                number: rng.below(9),
                held: rng.chance(50),
                budget_ms: None,
            },
            17 => {
                let choices = ["extend", "abort", "fail", "retry", "approve", "reject"];
                self.decision(choices[rng.below(6) as usize])
            }
            18 => {
                self.child_ended(*rng.pick(&[RunStatus::Completed, RunStatus::Failed, RunStatus::TimedOut]))
            }
            _retry => {
                let mode = *rng.pick(&[
                    RetryMode::RetryStep,
                    RetryMode::DiscardAndRetry,
                    RetryMode::Escalate,
                ]);
                self.driver.store.retry(&self.driver.run, None, mode, None)
            }
        };
        (now, event)
    }

    /// A decision at the first open gate with this choice.
    fn decision(&self, choice: &str) -> Event {
        let open = |gate: &&curfew::run::GateState| {
            gate.status == curfew::run::GateStatus::Open && gate.choices.iter().any(|it| it == choice)
        };
        let gate = self.driver.run.gates().find(open).map_or("none", |gate| &gate.id);
        Event::GateDecided {
            gate: gate.to_string(),
            decision: curfew::run::GateDecision {
                choice: choice.to_string(),
                input: json!({"by_ms": 100_000}),
                comment: None,
                by: None,
                at: 0,
            },
        }
    }

    fn child_ended(&self, status: RunStatus) -> Event {
        let mut live = self.driver.run.live_tokens();
        let waiting = live.find(|token| token.status == TokenStatus::WaitingForSubworkflow);
        let (token, epoch) = waiting.map_or((TokenId(0), 0), |token| (token.id, token.epoch));
        Event::ChildEnded(Box::new(ChildReport {
            token_id: token.to_string(),
            epoch,
            run_id: child_of(&self.driver.run, token, epoch),
            status,
            output: Some(json!({"by": "child"})),
            error: None,
        }))
    }

    /// One step towards the end: every participant does its work.
    fn make_progress(&mut self) {
        let now = self.driver.now + 1;
        let run = &self.driver.run;
        let has = |status: TokenStatus| run.live_tokens().find(|token| token.status == status);
        let gate_choice = run
            .gates()
            .find(|gate| gate.status == curfew::run::GateStatus::Open);
        let event = if let Some(gate) = gate_choice {
            // A token that always fails could be retried forever, and one that needs its result escalates again when it is
            // skipped.
            let asked_again = gate.choices.iter().any(|choice| choice == "skip") && !gate.id.ends_with(".1");
            let wanted = if asked_again { "fail" } else { "skip" };
            let choice = gate.choices.iter().find(|choice| *choice == wanted);
            self.decision(choice.unwrap_or(&gate.choices[0]))
        } else if run
            .header
            .pause_reasons
            .contains(&curfew::run::PauseReason::Parent)
        {
            Event::ParentHolds {
                number: run.header.hold_seq_received + 1,
                held: false,
                budget_ms: None,
            }
        } else if run.header.paused_at.is_some() {
            Event::ResumeRequested { by: None }
        } else if let Some(token) = has(TokenStatus::Executing) {
            let attempt = format!("{}@{}", token.id, token.epoch);
            Event::TaskReported(Box::new(succeeded(&attempt, json!({"epoch": 1}))))
        } else if has(TokenStatus::WaitingForSubworkflow).is_some() {
            self.child_ended(RunStatus::Completed)
        } else if let Some(due) = run
            .next_deadline()
            .filter(|_| has(TokenStatus::Suspended).is_none())
        {
            let open_calls = Vec::new();
            return self.feed(due.max(now), Event::Woken { open_calls });
        } else {
            // A suspended token waits for one of two signals, or for a moment.
            let due = run.next_deadline().unwrap_or(now).max(now);
            for name in ["go", "stop"] {
                let (name, payload) = (name.to_string(), json!(1));
                self.feed(
                    now,
                    Event::SignalReceived {
                        name,
                        payload,
                        by: None,
                    },
                );
            }
            let open_calls = Vec::new();
            return self.feed(due, Event::Woken { open_calls });
        };
        self.feed(now, event);
    }
}

/// The remaining time of every deadline, except absolute moments and the run's gate, which a pause does not move.
fn remaining(driver: &Driver) -> BTreeMap<String, u64> {
    let view = views::run(&driver.run, driver.now);
    let left = |deadline: &Value| match deadline["remaining_ms"].as_u64() {
        Some(left) => left,
        None => deadline["due_at"]
            .as_u64()
            .unwrap_or(0)
            .saturating_sub(driver.now),
    };
    let deadlines = view["deadlines"].as_array().cloned().unwrap_or_default();
    deadlines
        .iter()
        .filter(|deadline| deadline["gate_id"].is_null() && deadline["kind"] != json!("wait"))
        .map(|deadline| {
            let name = format!(
                "{} {} {}",
                deadline["kind"], deadline["node_id"], deadline["token_id"]
            );
            (name, left(deadline))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_time: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The store refuses commits that break an invariant, so every step is checked.
    #[test]
    fn every_run_ends_once_its_work_succeeds(choices in choices()) {
        let mut rng = Rng::listed(choices);
        let mut run = Supervised::start(&mut rng);
        for _ in 0..LENGTH {
            let (now, event) = run.next(&mut rng);
            run.feed(now, event);
            if run.driver.decision == Decision::DeleteStorage {
                return Ok(());
            }
            if rng.chance(20) {
                let before = (run.driver.status_line(), run.driver.run.header.clone());
                run.driver.reload();
                prop_assert_eq!(before, (run.driver.status_line(), run.driver.run.header.clone()));
            }
        }
        for resumes in 0..3 {
            let mut steps = 0;
            while !run.has_ended() {
                steps += 1;
                prop_assert!(steps < 2_000, "{} never ends (resumed {resumes} times)", run.driver.status_line());
                run.make_progress();
            }
            prop_assert_eq!(run.driver.run.live_tokens().count(), 0);
            let now = run.driver.now + 10;
            let retry = run.driver.store.retry(&run.driver.run, None, RetryMode::RetryStep, None);
            run.feed(now, retry);
            if run.driver.answer.is_err() {
                return Ok(());
            }
        }
    }

    #[test]
    fn a_pause_changes_no_remaining_time(choices in choices(), steps in 0..LENGTH) {
        let mut rng = Rng::listed(choices);
        let mut run = Supervised::start(&mut rng);
        for _ in 0..steps {
            let (now, event) = run.next(&mut rng);
            run.feed(now, event);
        }
        let header = &run.driver.run.header;
        // An overdue timer has no remaining time, and the end of a run cannot be paused.
        if run.has_ended() || header.ending.is_some() || header.paused_at.is_some() || run.driver.run.is_due(run.driver.now) {
            return Ok(());
        }
        let before = remaining(&run.driver);
        run.feed(run.driver.now, Event::PauseRequested { by: None });
        prop_assert_eq!(&remaining(&run.driver), &before, "stopped");
        run.driver.at(run.driver.now + 1_000_000).reload();
        prop_assert_eq!(&remaining(&run.driver), &before, "paused");
        run.feed(run.driver.now, Event::ResumeRequested { by: None });
        prop_assert_eq!(&remaining(&run.driver), &before, "resumed");
    }

    #[test]
    fn a_restored_supervised_run_decides_like_the_one_in_memory(choices in choices(), before in 0..LENGTH) {
        let mut rng = Rng::listed(choices);
        let mut run = Supervised::start(&mut rng);
        for _ in 0..before {
            let (now, event) = run.next(&mut rng);
            run.feed(now, event);
        }
        let mut loaded = run.driver.store.recall(SETTINGS).map_err(TestCaseError::fail)?;
        let of_the_run = |decision: &Decision, of: &curfew::run::Run| -> Vec<String> {
            const OF_MESSAGES: &[&str] = &["message", "unmessage", "deliver", "notification", "notify", "alarm"];
            let lines = render(decision, of).into_iter();
            lines.filter(|line| !OF_MESSAGES.contains(&line.split(' ').next().unwrap_or_default())).collect()
        };
        let mut pending = vec![(run.driver.now, Event::Loaded)];
        for _ in 0..LENGTH {
            let (now, event) = pending.pop().unwrap_or_else(|| run.next(&mut rng));
            run.feed(now, event.clone());
            let (answer, decision) = loaded.handle(now, ROOM, event);
            prop_assert_eq!(&run.driver.answer, &answer);
            prop_assert_eq!(of_the_run(&run.driver.decision, &loaded), of_the_run(&decision, &loaded));
        }
        prop_assert_eq!(run.driver.run.header.status, loaded.header.status);
        prop_assert_eq!(run.driver.run.context().state(), loaded.context().state());
    }
}
