//! Random histories: any events for a run, in any order, valid or not.

use crate::run::plans::Plans;
use std::collections::{BTreeMap, BTreeSet};

use curfew::base::time::Millis;
use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{
    ChildReport, ChildStatusUpdate, Command, Decision, Event, Extension, GateDecision, NotifySettings,
    RetryMode, Routes, Run, RunStatus, Settings, Token, TokenId, TokenStatus, Write,
};
use curfew::storage::commit::Commit;
use serde_json::{Value, json};

use super::driver::{ROOM, child_of, create_run, failed, store_document, succeeded, timed_out};
use super::generator;
use super::progress::progress;
use curfew::simulate::Rng;
use curfew::simulate::Store;

/// A run, its decisions so far, and all attempts it has dispatched.
pub struct History {
    pub run: Run,
    pub now: Millis,
    pub steps: Vec<(Millis, Event)>,
    pub decisions: Vec<Decision>,
    /// One per decision, encoded before the next decision is made.
    commits: Vec<Commit>,
    pub settings: Settings,
    /// The call budget of each decision.
    pub room: u32,
    attempts: Vec<(TokenId, u64)>,
}

pub const SETTINGS: Settings = Settings {
    retry_delay_ms: 1_000,
    queue: false,
    routes: Routes::ALL,
    pending_ms: 5_000,
    no_route_ms: 300_000,
    resend_ms: 10_000,
    claim_ms: 30_000,
    progress_save_ms: 30_000,
    heartbeat_ms: 300_000,
    suspend_ms: 30_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 3,
    retention_ms: 100_000_000,
    timeout_max_ms: 2_592_000_000,
    notify: NotifySettings::DEFAULT,
};

/// Decisions at gates, weighted towards the choices of node gates.
const CHOICES: &[&str] = &[
    "approve", "approve", "approve", "approve", "reject", "reject", "shrug", "extend", "abort", "fail",
    "retry", "retry", "skip",
];

impl History {
    pub fn start(settings: Settings, room: u32, document: &Value) -> History {
        let now = 1_000;
        let (run, decision) = create_run(now, settings, store_document(document), json!({"x": 2}));
        let mut history = History {
            run,
            now,
            steps: Vec::new(),
            decisions: Vec::new(),
            commits: Vec::new(),
            settings,
            room,
            attempts: Vec::new(),
        };
        history.record(decision);
        history
    }

    pub fn random(rng: &mut Rng, length: usize) -> History {
        let document = generator::workflow(rng);
        let settings = Settings {
            queue: rng.chance(50),
            ..SETTINGS
        };
        let room = *rng.pick(&[ROOM, ROOM, ROOM, 1]);
        let mut history = History::start(settings, room, &document);
        for _ in 0..length {
            history.step(rng);
        }
        history
    }

    pub fn step(&mut self, rng: &mut Rng) {
        let (now, event) = self.next(rng);
        self.feed(now, event);
    }

    pub fn feed(&mut self, now: Millis, event: Event) {
        self.now = now;
        self.steps.push((now, event.clone()));
        let (_, decision) = self.run.handle(now, self.room, event);
        self.record(decision);
    }

    fn record(&mut self, decision: Decision) {
        for command in decision.commands() {
            match command {
                Command::DispatchTask(order) => self.attempts.push((order.token, order.epoch)),
                Command::EnqueueAttempt { token, epoch } => self.attempts.push((*token, *epoch)),
                _others => {}
            }
        }
        self.commits
            .push(Commit::of(decision.writes(), &self.run).expect("rows are JSON"));
        self.decisions.push(decision);
    }

    /// Mostly reports for the newest attempts; also late, repeated and wrong ones.
    pub fn next(&self, rng: &mut Rng) -> (Millis, Event) {
        let now = match rng.below(6) {
            0 | 1 => self.now + rng.below(200),
            2 => self.now,
            3 => self.now + 1_000 + rng.below(1_000),
            4 => self.run.next_deadline().unwrap_or(self.now).max(self.now),
            _ => self.now + rng.below(45_000),
        };
        let reach = if rng.chance(25) { 8 } else { 2 };
        let back = rng.below(reach);
        let newest = self.attempts.len().checked_sub(1 + back as usize);
        let (token, epoch) = newest.map_or((TokenId(7), 1), |index| self.attempts[index]);
        let attempt = format!("{token}@{epoch}");
        let words = if self.settings.queue { 36 } else { 28 };
        let event = match rng.below(words) {
            0..=6 => Event::TaskReported(Box::new(succeeded(&attempt, json!({"epoch": epoch})))),
            7..=8 => Event::TaskReported(Box::new(failed(&attempt))),
            9 => Event::TaskReported(Box::new(TaskReport {
                status: ReportStatus::Suspended,
                ..succeeded(&attempt, json!(null))
            })),
            10..=11 => Event::TaskReported(Box::new(timed_out(&attempt))),
            12..=13 => Event::CallLost {
                token,
                epoch,
                message: "reset".into(),
            },
            14 => Event::AlarmFired {
                open_calls: self.attempts.clone(),
            },
            15 => Event::Woken {
                open_calls: self.attempts.clone(),
            },
            16..=17 => Event::Woken {
                open_calls: Vec::new(),
            },
            18 => Event::Loaded,
            28..=34 => Event::Claimed {
                token: token.to_string(),
                epoch,
                claimant: (!rng.chance(25)).then(|| format!("message-{}", rng.below(2))),
            },
            35 => Event::Heartbeat {
                token: token.to_string(),
                epoch,
                progress: rng.chance(50).then(|| Box::new(progress(rng.below(3), "so far"))),
            },
            20..=27 => self.external_event(rng),
            _ if rng.chance(40) => Event::CancelRequested {
                reason: None,
                by: None,
            },
            _ if rng.chance(10) => Event::Abandoned,
            _ => Event::Loaded,
        };
        (now, event)
    }

    /// An event from a user, another run or the outbox, valid or not.
    fn external_event(&self, rng: &mut Rng) -> Event {
        let waiting: Vec<&Token> = self
            .run
            .live_tokens()
            .filter(|token| token.status == TokenStatus::WaitingForSubworkflow)
            .collect();
        let gates: Vec<&str> = self.run.gates().map(|gate| gate.id.as_str()).collect();
        match rng.below(13) {
            0 | 1 | 9 if !gates.is_empty() => Event::GateDecided {
                gate: (*rng.pick(&gates)).to_string(),
                decision: GateDecision {
                    choice: (*rng.pick(CHOICES)).to_string(),
                    input: json!({"by_ms": 1 + rng.below(20_000)}),
                    comment: None,
                    by: None,
                    at: 0,
                },
            },
            0..=2 => Event::SignalReceived {
                name: (*rng.pick(&["go", "stop"])).to_string(),
                payload: json!({"n": rng.below(3)}),
                by: None,
            },
            3 => Event::PauseRequested { by: None },
            4 | 5 => Event::ResumeRequested { by: None },
            6 => Event::Delivered { id: 1 + rng.below(4) },
            9 | 10 if self.run.header.status.is_terminal() => {
                let store = self.store();
                let past = store.past().expect("rows can be read");
                let modes = [
                    RetryMode::RetryStep,
                    RetryMode::DiscardAndRetry,
                    RetryMode::Escalate,
                ];
                let tokens = self.run.resume_plan(&past).tokens;
                let chosen = tokens.get(rng.below(9) as usize).copied();
                let mode = *rng.pick(&modes);
                let token = chosen.filter(|_| rng.chance(50));
                store.retry(&self.run, None, mode, token)
            }
            9 | 10 if rng.chance(50) => Event::ExtendRequested {
                extension: Extension::By(1 + rng.below(30_000)),
                by: None,
                operation: None,
            },
            9 | 10 => Event::ExtendRequested {
                extension: Extension::Until(self.now + rng.below(90_000)),
                by: None,
                operation: None,
            },
            11 if !waiting.is_empty() && rng.chance(50) => {
                let token = *rng.pick(&waiting);
                Event::ChildStatusUpdate(Box::new(ChildStatusUpdate {
                    token_id: token.id.to_string(),
                    epoch: token.epoch,
                    run_id: child_of(&self.run, token.id, token.epoch),
                    number: rng.below(4),
                    paused: rng.chance(50),
                }))
            }
            11 | 12 => Event::ParentHolds {
                number: rng.below(8),
                held: rng.chance(40),
                budget_ms: Some(rng.below(30_000)).filter(|_| rng.chance(50)),
            },
            7 if !waiting.is_empty() => {
                let token = *rng.pick(&waiting);
                let status = *rng.pick(&[
                    RunStatus::Completed,
                    RunStatus::Completed,
                    RunStatus::Failed,
                    RunStatus::TimedOut,
                    RunStatus::Cancelled,
                ]);
                Event::ChildEnded(Box::new(ChildReport {
                    token_id: token.id.to_string(),
                    epoch: token.epoch,
                    run_id: child_of(&self.run, token.id, token.epoch),
                    status,
                    output: Some(json!({"by": "child"})),
                    error: None,
                }))
            }
            _refused => Event::DeliveryFailed {
                id: 1 + rng.below(4),
                is_gone: rng.chance(50),
            },
        }
    }

    /// All rows saved so far.
    pub fn store(&self) -> Store {
        let mut store = Store::default();
        for commit in &self.commits {
            store.apply(commit).expect("no commit breaks a rule");
        }
        store.alarm_at = self.run.alarm_at();
        store
    }

    /// Every status change of a token in the commits. Tokens are created as pending.
    pub fn moves(&self) -> BTreeSet<(TokenStatus, TokenStatus)> {
        let mut status_line: BTreeMap<TokenId, (TokenStatus, u64)> = BTreeMap::new();
        let mut moves = BTreeSet::new();
        for write in self.decisions.iter().flat_map(Decision::writes) {
            if let Write::SaveToken(token) = write {
                let before = status_line.insert(token.id, (token.status, token.epoch));
                let (before, epoch) = before.unwrap_or((TokenStatus::Pending, 0));
                if before != TokenStatus::Pending && token.epoch > epoch {
                    // A new attempt within one commit: the token was pending in between.
                    moves.extend([
                        (before, TokenStatus::Pending),
                        (TokenStatus::Pending, token.status),
                    ]);
                } else {
                    moves.insert((before, token.status));
                }
            }
        }
        moves.retain(|(from, to)| from != to);
        moves
    }
}
