//! Why a deadline passed: runs that time out in each way, and what their rows say about it afterwards.

mod confirmed;
mod course;
mod gates;
mod inside;
mod joins;
mod limits;
mod runs;
mod soundness;
mod steps;
mod usual;
mod workflows;

use curfew::run::RunEvent;
use curfew::storage::pages::ListedRow;
use curfew::why::{self, Facts, FactsReader, Rows};
use serde_json::{Value, json};

use crate::run::driver::Driver;

/// The records of a run, oldest first.
pub fn records(run: &Driver) -> Vec<RunEvent> {
    let entries = run.store.entries().into_iter();
    entries.filter(|event| event.record.is_some()).collect()
}

/// Reads the rows that the host reads.
pub fn facts(run: &Driver, event: &RunEvent) -> Facts {
    let mut reader = FactsReader::default();
    run.store.entries().iter().for_each(|event| reader.event(event));
    let rows = why::rows_of(&run.run, event.record.as_ref().expect("a record"));
    let is_read = |listed: &ListedRow| match rows {
        Rows::None => false,
        Rows::Token(id) => id.0 == listed.number,
        Rows::All => true,
    };
    for listed in run.store.list_tokens(0, u64::MAX).iter().filter(|it| is_read(it)) {
        let row = run.store.listed_value(listed);
        reader
            .token(listed.number, &row, rows != Rows::All)
            .expect("a token's row");
    }
    if rows == Rows::All {
        for listed in &run.store.list_instances() {
            reader
                .instance(&run.store.listed_value(listed))
                .expect("an instance's row");
        }
    }
    reader.finish()
}

/// `why` of the record `number`, from 0.
pub fn why(run: &Driver, number: usize) -> Value {
    let event = records(run)
        .into_iter()
        .nth(number)
        .expect("the timeout was recorded");
    why::of(&run.run, &event, &facts(run, &event)).expect("it has a record")
}

/// Smallest limit, lower bound and change.
pub fn smallest(why: &Value) -> Value {
    json!([why["smallest_limit_ms"], why["more_than_ms"], why["change"]])
}

/// Layer, source and pointer of the limit.
pub fn limit(why: &Value) -> Value {
    let limit = &why["limit"];
    json!([limit["layer"], limit["source"], limit["pointer"]])
}

pub fn reason(why: &Value) -> &str {
    why["smallest_limit_reason"].as_str().expect("a sentence")
}

#[test]
fn only_timeouts_are_asked_about() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    run.at(2_000).pause();
    let event = run.store.entries().remove(0);
    assert_eq!(why::of(&run.run, &event, &Facts::default()), None);
}
