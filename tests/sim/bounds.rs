//! The static analysis is sound: no simulated run of a random workflow takes longer, is wider or costs more than the analysis says
//! it can, and a workflow that surely ends does.
//!
//! Executors are slow up to their deadlines, people decide some gates and leave others, nobody operates on runs and nothing
//! crashes: that is what the worst case covers. `npm run simulate` and `CURFEW_BOUNDS_SEEDS=10000` run more seeds, `CURFEW_BOUNDS_SEED=17` runs one and
//! prints it.

use curfew::analysis::{Analysis, Deployment, Facts, analyze};
use curfew::base::price::dollars;
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::run::{GateDecision, RunRequest};
use curfew::run::{GateKind, RunEventKind};
use curfew::simulate::Faults;
use serde_json::{Value, json};

use super::faults::Disturbances;
use super::number;
use super::simulation::{FIRST_RUN, Simulation};
use crate::run::driver::library;

/// A run that needs more events without an end does not end.
const EVENTS_MAX: u64 = 1_500;

/// What a run took.
#[derive(Debug, Default)]
struct Measured {
    /// `None`: it did not end.
    duration_ms: Option<u64>,
    tokens_alive: u64,
    rows: u64,
    dollars: f64,
    /// The longest time in which nothing was decided.
    longest_wait_ms: u64,
    /// A run failed because too many tokens were alive.
    is_too_wide: bool,
}

fn simulation(seed: u64, trace: bool, change: impl FnOnce(&mut Value)) -> Simulation {
    let mut simulation = Simulation::prepare(seed, trace, |document, _, _| {
        // The second receiver is down for minutes, and each attempt is a row.
        if let Some(targets) = document["notify"].as_array_mut() {
            targets.truncate(1);
        }
        change(document);
        let faults = Faults {
            slow: [0, 30, 80][(seed % 3) as usize],
            ..Faults::default()
        };
        (faults, Disturbances::default())
    });
    simulation.is_unattended = true;
    simulation.environment.messages_are_prompt.set(true);
    simulation
}

fn facts_of(simulation: &Simulation) -> Analysis {
    let deployment = Deployment {
        rules: TimeoutRules::default(),
        settings: simulation.config.settings,
        secrets: None,
    };
    analyze(&simulation.document, &library(), &deployment).expect("the library has all that is called")
}

impl Simulation {
    /// Until every run has ended, or nothing more happens.
    fn measure(&mut self, people: bool) -> Measured {
        let mut events = 0;
        let mut decided_at = self.now();
        let mut longest_wait_ms = 0;
        let mut rows = self.rows_written();
        while self.runs.values().any(|run| run.is_open()) && events < EVENTS_MAX {
            events += 1;
            if people && self.environment.chance(10) {
                self.decide_some();
            }
            let is_asleep = self.environment.in_flight.borrow().is_empty()
                && self.runs.values().all(|run| run.durable.rings_at.get().is_none());
            if is_asleep {
                break;
            }
            self.next_event();
            if rows != self.rows_written() {
                rows = self.rows_written();
                longest_wait_ms = longest_wait_ms.max(self.now() - decided_at);
                decided_at = self.now();
            }
        }
        let attempts = self.environment.attempts.borrow().len() as u64;
        let first = self.runs[FIRST_RUN].store();
        let header = first.header().expect("it was started");
        let first_alive = self.runs[FIRST_RUN].durable.tokens_alive_max.get();
        let is_limit = |event: &curfew::run::RunEvent| {
            let limit = event.fields.get("limit").and_then(Value::as_str);
            event.kind == RunEventKind::LimitExceeded && limit == Some("tokens_active")
        };
        Measured {
            duration_ms: header.ended_at.map(|at| at - header.started_at),
            tokens_alive: first_alive,
            rows,
            dollars: dollars(&self.usage(attempts)),
            longest_wait_ms,
            is_too_wide: first.entries().iter().any(is_limit),
        }
    }

    /// In the objects of all runs.
    fn rows_written(&self) -> u64 {
        self.runs.values().map(|run| run.durable.rows_written.get()).sum()
    }

    /// A person decides a gate of a node, or sends a signal.
    fn decide_some(&mut self) {
        let open: Vec<String> = self
            .runs
            .iter()
            .filter(|(_, run)| run.is_open())
            .map(|(id, _)| id.clone())
            .collect();
        let id = self.environment.pick(&open);
        let gates = self.runs[&id].open_gates();
        if let Some(gate) = gates.iter().find(|gate| gate.kind == GateKind::Node) {
            let decision = GateDecision {
                choice: self.environment.pick(&["approve", "reject"]).to_string(),
                input: Value::Null,
                comment: None,
                by: None,
                at: 0,
            };
            let gate_id = gate.id.clone();
            self.ask(&id, RunRequest::DecideGate { gate_id, decision });
        }
        if self.runs[&id].has_suspended() {
            let name = self.environment.pick(&["go", "stop"]).to_string();
            let payload = json!({"n": 1});
            self.ask(&id, RunRequest::Signal { name, payload });
        }
    }
}

#[derive(Debug, Default)]
struct Checked {
    surely: u64,
    unsure: u64,
    unended: u64,
    /// Runs that came to more than half of a bound.
    long: u64,
    wide: u64,
    /// To more than a fifth.
    dear: u64,
    limits_of_width: u64,
    /// Runs whose longest wait was more than half of what it can be.
    slow: u64,
}

fn check(seed: u64, trace: bool, checked: &mut Checked) {
    let people = seed.is_multiple_of(2);
    let mut simulated = simulation(seed, trace, |_| {}).started();
    let analysis = facts_of(&simulated);
    assert!(analysis.errors.is_empty(), "seed {seed}: {:?}", analysis.errors);
    let facts: Facts = analysis.facts.expect("a document without errors has facts");
    let measured = simulated.measure(people);
    let place = format!("seed {seed}: {measured:?} {facts:?}");
    match (facts.duration_max_ms, measured.duration_ms) {
        (Some(most), Some(found)) => {
            assert!(found <= most, "longer than its worst case: {place}");
            checked.long += u64::from(found * 2 > most);
        }
        (Some(_), None) => panic!("it surely ends and does not: {place}"),
        (None, Some(_)) => {}
        (None, None) => checked.unended += 1,
    }
    assert_eq!(facts.ends.surely, facts.duration_max_ms.is_some(), "{place}");
    match facts.ends.surely {
        true => checked.surely += 1,
        false => checked.unsure += 1,
    }
    assert!(measured.tokens_alive <= facts.tokens_alive_max, "wider: {place}");
    checked.wide += u64::from(measured.tokens_alive * 2 > facts.tokens_alive_max);
    let rows = facts.rows_written.worst.unwrap_or(u64::MAX);
    assert!(measured.rows <= rows, "dearer: {place}");
    checked.dear += u64::from(measured.rows.saturating_mul(5) > rows);
    let dollars = facts.dollars.worst.unwrap_or(f64::INFINITY);
    assert!(measured.dollars <= dollars, "more expensive: {place}");
    let longest_wait_ms = facts.longest_wait.ms.unwrap_or(u64::MAX);
    assert!(
        measured.longest_wait_ms <= longest_wait_ms,
        "a longer wait: {place}"
    );
    checked.slow += u64::from(measured.longest_wait_ms.saturating_mul(2) > longest_wait_ms);
    let limit = simulated.document["limits"]["tokens_active"].as_u64();
    if limit.is_some_and(|limit| facts.tokens_alive_max < limit) {
        // As wide as the analysis says is wide enough, also in the middle of a decision.
        let set = |document: &mut Value| document["limits"]["tokens_active"] = json!(facts.tokens_alive_max);
        let mut narrow = simulation(seed, false, set).started();
        assert!(
            !narrow.measure(people).is_too_wide,
            "wider in a decision: {place}"
        );
        checked.limits_of_width += 1;
    }
}

#[test]
fn no_run_exceeds_its_worst_case() {
    let mut checked = Checked::default();
    if let Some(seed) = number("CURFEW_BOUNDS_SEED") {
        check(seed, true, &mut checked);
        return;
    }
    // The long run has so many seeds that a hundredth of them is enough here.
    let of_long_run = number("CURFEW_SIM_SEEDS").map(|seeds| (seeds / 100).max(200));
    let seeds = number("CURFEW_BOUNDS_SEEDS").or(of_long_run).unwrap_or(300);
    let first = number("CURFEW_BOUNDS_FIRST").unwrap_or(0);
    for seed in first..first + seeds {
        check(seed, false, &mut checked);
    }
    println!("{seeds} seeds from {first}: {checked:?}");
    // Bounds that nothing comes near prove little.
    let Checked {
        surely,
        unsure,
        unended,
        long,
        wide,
        dear,
        limits_of_width,
        slow,
    } = checked;
    for (what, count) in [
        ("surely", surely),
        ("unsure", unsure),
        ("unended", unended),
        ("long", long),
        ("wide", wide),
        ("dear", dear),
        ("limits_of_width", limits_of_width),
        ("slow", slow),
    ] {
        assert!(count > seeds / 100, "only {count} {what} in {seeds} seeds");
    }
}
