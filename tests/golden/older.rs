//! Runs that an older build started continue and end under this one. `older/` contains rows that older builds wrote. They
//! cannot be regenerated, so a file there is never changed or deleted. A change of the stored format adds a file with the
//! previous format first.

use std::fs;

use curfew::run::{ChildReport, Decision, Event, GateDecision, GateStatus, RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::path;
use crate::run::driver::{Driver, SETTINGS};
use curfew::simulate::Store;

fn older() -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(path("older"))
        .expect("there are older rows")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(file).expect("readable");
            (name, serde_json::from_str(&text).expect("JSON"))
        })
        .collect()
}

fn store_of(rows: &Value) -> Store {
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let list = |name: &str| rows[name].as_array().expect("rows").clone();
    let run = list("run");
    let run = run.iter().map(|row| (text(&row[0]), text(&row[1])));
    let tokens = list("tokens");
    let tokens = tokens
        .iter()
        .map(|row| (row[0].as_u64().expect("an id"), (text(&row[1]), text(&row[2]))));
    Store::of_rows(run.collect(), tokens.collect(), rows["alarm_at"].as_u64())
}

/// Performs one step of every pending command.
fn advance(driver: &mut Driver) {
    let run = &driver.run;
    let gate = run.gates().find(|gate| gate.status == GateStatus::Open);
    let calling = run
        .live_tokens()
        .find(|token| token.status == TokenStatus::WaitingForSubworkflow);
    let executing = run
        .live_tokens()
        .find(|token| token.status == TokenStatus::Executing);
    if let Some(gate) = gate {
        let decision = GateDecision {
            choice: gate.choices[0].clone(),
            input: Value::Null,
            comment: None,
            by: None,
            at: 0,
        };
        let gate = gate.id.clone();
        driver.feed(Event::GateDecided { gate, decision });
    } else if run.header.paused_at.is_some() {
        driver.feed(Event::ResumeRequested { by: None });
    } else if let Some(token) = calling {
        // The id in the format of the build that started the child.
        let report = ChildReport {
            token_id: token.id.to_string(),
            epoch: token.epoch,
            run_id: format!("run-1.{}", token.id),
            status: RunStatus::Completed,
            output: Some(json!({"n": token.id.0})),
            error: None,
        };
        driver.feed(Event::ChildEnded(Box::new(report)));
    } else if let Some(token) = executing {
        let attempt = format!("{}@{}", token.id, token.epoch);
        driver.succeed(&attempt, json!({"n": token.id.0}));
    } else {
        let (name, payload) = ("go".to_string(), json!(1));
        driver.feed(Event::SignalReceived {
            name,
            payload,
            by: None,
        });
        if let Some(due) = driver.run.next_deadline() {
            let now = driver.now.max(due);
            driver.at(now).wake("");
        }
    }
}

/// Its snapshot says nothing about the clock, which ran at gates then.
#[test]
fn the_limit_of_an_older_run_passes_at_its_gate() {
    let older = older()
        .into_iter()
        .find(|(name, _)| name == "build3_gate_under_limit");
    let (_, rows) = older.expect("rows of an older build");
    let store = store_of(&rows);
    let run = store.recall(SETTINGS).expect("older rows can be read");
    let mut driver = Driver::of(run, Decision::default(), SETTINGS);
    driver.store = store;
    driver
        .at(2_000)
        .load()
        .assert_status("waiting ask:awaiting_human");
    driver
        .at(20_999)
        .wake("")
        .assert_status("waiting ask:awaiting_human");
    driver
        .at(21_000)
        .fire_alarm("")
        .assert_status("failed workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn a_run_of_an_older_build_continues_and_ends() {
    let older = older();
    assert!(older.len() >= 16, "rows of older builds are gone");
    for (name, rows) in older {
        let store = store_of(&rows);
        let now = rows["now"].as_u64().expect("a moment");
        let run = store
            .recall(SETTINGS)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut driver = Driver::of(run, Decision::default(), SETTINGS);
        driver.store = store;
        driver.at(now).load();
        for _ in 0..50 {
            if driver.run.header.status.is_terminal() {
                break;
            }
            advance(&mut driver);
        }
        let header = &driver.run.header;
        assert_eq!(header.status, RunStatus::Completed, "{name}: {:?}", header.error);
        let output = json!(driver.run.context().output());
        match name.split_once('_').map(|(_, what)| what) {
            // The result of the first node is from the older build.
            Some("chain" | "paused") => assert_eq!(output, json!({"from": 1}), "{name}"),
            // Two of the branches were still running.
            Some("fan") => assert_eq!(
                output["all"].as_array().map(Vec::len),
                Some(3),
                "{name}: {output}"
            ),
            // Its condition is false: the build that began it ended the path there.
            Some("dead_end") => assert_eq!(driver.run.header.output, Some(json!({"n": 2})), "{name}"),
            _other => {}
        }
    }
}
