//! Every ended run is exported and replayed unchanged: status, path, timeouts and retries must be the recorded ones.

use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::run::{PageRequest, RunRequest, RunResponse};
use curfew::replay::{LISTS, Page, Parts, WhatIfBody, export_text, what_if_alone};
use curfew::simulate::Faults;
use serde_json::{Value, json};

use super::faults::Disturbances;
use super::number;
use super::simulation::{FIRST_RUN, Simulation};

impl Simulation {
    /// The exports of all runs, in the words of the API.
    fn exports(&mut self) -> Vec<Value> {
        let ids: Vec<String> = self.runs.keys().cloned().collect();
        ids.iter().filter_map(|id| self.export(id)).collect()
    }

    /// None for a run that was never started.
    fn export(&mut self, id: &str) -> Option<Value> {
        let run = self.runs.get_mut(id)?;
        run.store().header()?;
        // Its rows are still there.
        run.durable.deleted.set(false);
        run.evict();
        let mut parts = Parts::default();
        parts.add_recording(self.text_of(id, RunRequest::ReadRecording));
        for (name, list) in LISTS {
            let mut after = 0;
            loop {
                let text = self.text_of(id, list(PageRequest { after, limit: 1_000 }));
                let page: Page = serde_json::from_str(&text).expect("a page");
                parts.add_page(name, &page).expect("a small run");
                match page.next_cursor {
                    Some(next) => after = next.parse().expect("a number"),
                    None => break,
                }
            }
        }
        let text = export_text(&parts, false).expect("JSON");
        let mut export: Value = serde_json::from_str(&text).expect("JSON");
        // Only the first run's workflow has versions.
        if id == FIRST_RUN {
            export["versions"] = json!(self.versions);
        }
        Some(export)
    }

    fn text_of(&mut self, id: &str, request: RunRequest) -> String {
        match self.request(id, request) {
            Some(RunResponse::Done(text)) => text,
            other => panic!("{id}: {other:?}"),
        }
    }
}

/// What a replay of the seed's runs says that is not as recorded.
fn differences_of(seed: u64, disturbances: fn(Disturbances) -> Disturbances) -> Vec<String> {
    let change = |_: &mut Value, _: Faults, drawn: Disturbances| (Faults::default(), disturbances(drawn));
    let mut simulation = Simulation::prepare(seed, false, change).started();
    simulation.run_to_end();
    let mut found = Vec::new();
    for export in simulation.exports() {
        let id = export["run"]["id"].clone();
        match what_if_alone(export, WhatIfBody::default(), &TimeoutRules::WIDEST) {
            Ok(answer) => {
                for what in ["differences", "unknown"] {
                    let list = answer[what].as_array().expect("a list");
                    found.extend(
                        list.iter()
                            .map(|it| format!("seed {seed}, run {id}, {what}: {it}")),
                    );
                }
            }
            Err(error) => found.push(format!("seed {seed}, run {id}: {} {}", error.code, error.message)),
        }
    }
    found
}

/// The seeds with runs that are replayed in another way.
fn wrong_seeds(disturbances: fn(Disturbances) -> Disturbances) -> (u64, Vec<u64>) {
    let seeds = match number("CURFEW_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CURFEW_SIM_SEEDS").unwrap_or(200),
    };
    let count = seeds.end - seeds.start;
    let mut wrong = Vec::new();
    for seed in seeds {
        let found = differences_of(seed, disturbances);
        if !found.is_empty() {
            wrong.push(seed);
            println!("{}", found.join("\n"));
        }
    }
    (count, wrong)
}

/// What happened in one millisecond has an order that the history does not have, and of calls that were lost only when the next
/// one was made. Of 600 seeds 4 are played in another way for that.
fn check_few_are_wrong(count: u64, wrong: &[u64]) {
    assert!(
        wrong.len() as u64 <= count.div_ceil(100),
        "{wrong:?} of {count} seeds"
    );
}

#[test]
fn without_faults_every_run_is_replayed_as_it_was() {
    let (count, wrong) = wrong_seeds(|_| Disturbances {
        operator: 40,
        ..Disturbances::default()
    });
    check_few_are_wrong(count, &wrong);
}

#[test]
fn what_people_do_to_a_run_is_replayed() {
    let (count, wrong) = wrong_seeds(|drawn| Disturbances {
        deployment: 0,
        abandon: 0,
        probe: 0,
        oversized: 0,
        ..drawn
    });
    check_few_are_wrong(count, &wrong);
}
