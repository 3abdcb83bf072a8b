//! The deterministic simulator: one seed is one workflow with its children, executors, operators and one series of faults. It
//! runs `curfew::host`, the code of the Durable Object, over a platform with faults. While faults last no property may break;
//! when they stop, every run must end.
//!
//! `CURFEW_SIM_SEEDS=100000` runs more seeds, `CURFEW_SIM_SEED=17` runs one and prints its trace. A failing seed is reported with
//! its shortest history: the one whose faults stop earliest and that still fails.

mod environment;
mod events;
mod executor;
mod faults;
mod in_flight;
pub mod notifications;
mod operators;
mod outcome;
mod platform;
mod properties;
mod queue;
mod running_time;
mod simulated_run;
mod simulation;
pub mod store;
mod versions;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

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
fn simulate_all(seeds: u64) -> Outcome {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let has_failed = AtomicBool::new(false);
    let part = |first: usize| {
        let mut total = Outcome::default();
        for seed in (first as u64..seeds).step_by(threads) {
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
    let total = simulate_all(seeds);
    println!("{seeds} seeds: {total:?}");
    // Faults that do not happen prove nothing.
    for (what, count) in [
        ("crashes before a commit", total.crashes_before_commit),
        ("crashes after a commit", total.crashes_after_commit),
        ("failed commits", total.failed_commits),
        ("tokens that failed for their size", total.too_large),
        ("evictions", total.evictions),
        ("rejected events", total.rejections),
        ("late alarms", total.late_alarms),
        ("early alarms", total.early_alarms),
        ("runs that completed", total.completed),
        ("runs that failed", total.failed),
        ("runs that timed out", total.timed_out),
        ("runs that were cancelled", total.cancelled),
        ("children", total.runs - seeds),
        ("pauses", total.pauses),
        ("decisions", total.decisions),
        ("signals", total.signals),
        ("lost messages", total.messages_lost),
        ("joins that fired", total.joins_fired),
        ("runs at the gate of their limit", total.timeout_gates),
        ("clocks that stopped at gates", total.clocks_stopped),
        ("extensions", total.extensions),
        ("retried runs", total.retries),
        ("runs that went on with another version", total.version_changes),
        ("versions that did not fit", total.misfits),
        ("warnings", total.warnings),
        ("timeouts", total.timeouts),
        ("claims", total.claims),
        ("refused claims", total.claims_refused),
        ("lost responses to claims", total.claim_responses_lost),
        ("attempts enqueued again", total.requeued),
        ("reaped attempts", total.reaped),
        ("callbacks", total.callbacks),
        ("events", total.emitted),
        ("events brought in parts", total.events_in_parts),
        ("tokens that waited for a call", total.waits_for_calls),
        ("tokens without a route", total.unroutable),
        ("tokens that failed without a route", total.no_route),
        ("simulations without operators", total.unattended),
        ("reused connections", total.connections_reused),
        ("reports handled together", total.reports_batched),
        ("notifications", total.notifications),
        (
            "notifications to a receiver that is down",
            total.notifications_failed,
        ),
        ("notifications received twice", total.notifications_repeated),
        ("events that watchers got", total.events_published),
    ] {
        assert!(count > seeds / 100, "only {count} {what} in {seeds} seeds");
    }
    // Five failures in a row are rare.
    assert!(
        total.given_up > seeds / 5_000,
        "{} runs were given up",
        total.given_up
    );
}

#[test]
fn a_seed_always_has_the_same_history() {
    for seed in [1, 2, 3] {
        let first = format!("{:?}", simulate(seed, false));
        assert_eq!(first, format!("{:?}", simulate(seed, false)));
    }
}
