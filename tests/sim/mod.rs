//! The deterministic simulator: one seed is one workflow with its children, executors, operators and one series of faults. It
//! runs `curfew::host`, the code of the Durable Object, over a platform with faults. While faults last no property may break;
//! when they stop, every run must end.
//!
//! `CURFEW_SIM_SEEDS=100000` runs more seeds, `CURFEW_SIM_FIRST=5000` begins with a later one, `CURFEW_SIM_SEED=17` runs one and prints its trace. A failing seed is reported with
//! its shortest history: the one whose faults stop earliest and that still fails.

mod bounds;
mod deliveries;
mod environment;
mod events;
mod executor;
mod faults;
mod features;
pub mod notifications;
mod operators;
mod outcome;
mod progress;
mod properties;
mod queue;
mod replays;
mod simulation;
mod traces;
mod versions;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use features::check_features;
use outcome::Outcome;
use simulation::Simulation;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn simulate(seed: u64, trace: bool) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, trace).run())) {
        Ok(outcome) => outcome,
        Err(_) => {
            let events = shortest(seed, |events| {
                Simulation::new(seed, false).with_faulty_events(events).run()
            });
            println!("seed {seed}, shortest history: {events} events with faults, then none");
            catch_unwind(AssertUnwindSafe(|| {
                Simulation::new(seed, true).with_faulty_events(events).run()
            }))
            .ok();
            panic!(
                "seed {seed} failed, also with {events} events with faults; see it whole with CURFEW_SIM_SEED={seed}"
            );
        }
    }
}

/// The least number of events with faults in it that still makes `run` fail.
fn shortest<T>(seed: u64, run: impl Fn(u64) -> T) -> u64 {
    let most = Simulation::new(seed, false).faulty_events();
    let fails = |events: &u64| catch_unwind(AssertUnwindSafe(|| run(*events))).is_err();
    (0..most).find(fails).unwrap_or(most)
}

#[test]
fn the_shortest_history_is_the_first_that_fails() {
    let most = Simulation::new(5, false).faulty_events();
    assert!(most > 2);
    let found = shortest(5, |events| assert!(events < 2, "an invented failure"));
    assert_eq!(found, 2);
    assert_eq!(
        shortest(5, |_| ()),
        most,
        "where none fails earlier it is the whole one"
    );
}

/// Every seed on its own, on as many threads as there are cores; the first that fails ends them all.
fn simulate_all(seeds: Range<u64>) -> Outcome {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let has_failed = AtomicBool::new(false);
    let part = |first: usize| {
        let mut total = Outcome::default();
        for seed in seeds.clone().skip(first).step_by(threads) {
            if has_failed.load(Ordering::Relaxed) {
                break;
            }
            match catch_unwind(|| simulate(seed, false)) {
                Ok(outcome) => total.add(&outcome),
                Err(failure) => {
                    has_failed.store(true, Ordering::Relaxed);
                    resume_unwind(failure);
                }
            }
        }
        total
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        let mut total = Outcome::default();
        for part in parts {
            match part.join() {
                Ok(outcome) => total.add(&outcome),
                Err(failure) => resume_unwind(failure),
            }
        }
        total
    })
}

#[test]
fn every_run_ends_and_no_property_breaks() {
    if let Some(seed) = number("CURFEW_SIM_SEED") {
        let outcome = simulate(seed, true);
        println!("seed {seed}: {outcome:?}");
        return;
    }
    let seeds = number("CURFEW_SIM_SEEDS").unwrap_or(5_000);
    let first = number("CURFEW_SIM_FIRST").unwrap_or(0);
    let total = simulate_all(first..first + seeds);
    println!("{seeds} seeds from {first}: {total:?}");
    // What does not happen proves nothing.
    for (what, count) in total.counters() {
        assert!(count > seeds / 100, "only {count} {what} in {seeds} seeds");
    }
    if seeds >= 5_000 {
        check_features(&total.features);
    }
}

#[test]
fn a_seed_always_has_the_same_history() {
    for seed in [1, 2, 3] {
        let first = format!("{:?}", simulate(seed, false));
        assert_eq!(first, format!("{:?}", simulate(seed, false)));
    }
}
