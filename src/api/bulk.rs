//! Bulk operations: `POST /v1/runs:cancel` and its like change many runs in the background. Pure: the body, the stored operation,
//! the runs of its next page, and what the answer of a run counts as.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::control::{self, Control};
use crate::api::error::Error;
use crate::api::run_filter::{FILTERS, RunList};
use crate::base::ids;
use crate::base::limits::BULK_IDS;
use crate::base::text::shorten_to;
use crate::base::time::Millis;
use crate::definition::reader::Reader;
use crate::protocol::caller::{Caller, WorkflowScope};
use crate::protocol::run::RunRequest;

/// Runs of a page. Progress is saved after each page.
pub const PAGE_RUNS: usize = 25;
/// Failures that an operation keeps.
pub const ERRORS_MAX: usize = 100;

const MESSAGE_CHARACTERS: usize = 300;

/// An operation as D1 stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The runs are changed on its behalf, and only those that it may reach.
    pub caller: Caller,
    pub runs: Selection,
    /// Sent to each run.
    pub request: RunRequest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    Ids(Vec<String>),
    /// Parameters of the list of runs.
    Filter(Vec<(String, String)>),
}

/// The runs of a page, and where the next one begins.
#[derive(Debug, PartialEq, Eq)]
pub enum Page {
    Ids {
        ids: Vec<String>,
        next: Option<String>,
    },
    /// The page has to be read from the index.
    List(Box<RunList>),
}

impl Operation {
    /// `body` is `{filter | ids, with?}`. A filter selects runs that started before `now`, so that runs that start meanwhile are not
    /// changed and the operation comes to an end.
    pub fn read(control: &Control, body: &Value, caller: Caller, now: Millis) -> Result<Operation, Error> {
        let ids = control::read(body, |reader| {
            reader.value("with");
            for name in ["filter", "ids"] {
                if reader.is_written(name) && reader.value(name).is_none() {
                    reader.report(name, "wrong_type", "null selects nothing; leave it out");
                }
            }
            match (reader.value("filter"), reader.value("ids")) {
                (Some(_), None) => Some(None),
                (None, Some(_)) => Some(read_ids(reader)),
                (None, None) | (Some(_), Some(_)) => {
                    let message = "say which runs: {\"filter\": {...}} or {\"ids\": [...]}";
                    reader.report("filter", "missing_field", message);
                    None
                }
            }
        })?;
        let with = with(body);
        control.check(&with).map_err(|error| within("/with", error))?;
        if !with["token_id"].is_null() {
            let message = "a token belongs to one run; retry that run by itself";
            return Err(Error::invalid_request("/with/token_id", message));
        }
        if !with["version"].is_null() {
            let message =
                "runs go on with another version one by one: POST /v1/runs/{id}/retry says what does not fit";
            return Err(Error::invalid_request("/with/version", message));
        }
        let runs = match ids {
            Some(ids) => Selection::Ids(ids),
            None => Selection::Filter(read_filter(&body["filter"], &caller.workflows, now)?),
        };
        Ok(Operation {
            caller,
            runs,
            request: control.clone().request(with)?,
        })
    }

    /// The number of runs, if it is known before the end.
    pub fn total(&self) -> Option<usize> {
        match &self.runs {
            Selection::Ids(ids) => Some(ids.len()),
            Selection::Filter(_) => None,
        }
    }

    /// `cursor` is that of the previous page, empty for the first. A position in the order of starts or of ids: neither depends on
    /// what the operation changes.
    pub fn page(&self, cursor: &str) -> Result<Page, Error> {
        match &self.runs {
            Selection::Ids(ids) => {
                let at = cursor.parse().unwrap_or(0).min(ids.len());
                let end = (at + PAGE_RUNS).min(ids.len());
                Ok(Page::Ids {
                    ids: ids[at..end].to_vec(),
                    next: (end < ids.len()).then(|| end.to_string()),
                })
            }
            Selection::Filter(pairs) => {
                let mut pairs = pairs.clone();
                pairs.push(("limit".into(), PAGE_RUNS.to_string()));
                pairs.push(("cursor".into(), cursor.into()));
                let list = RunList::read(&pairs)?.within(&self.caller.workflows)?;
                Ok(Page::List(Box::new(list)))
            }
        }
    }
}

/// The body of the control.
pub fn with(body: &Value) -> Value {
    match &body["with"] {
        Value::Null => json!({}),
        with => with.clone(),
    }
}

/// The error of a part of the body, with pointers into the whole body: also those in its message and its details.
fn within(pointer: &str, mut error: Error) -> Error {
    if let Some(rest) = error.pointer.take() {
        if error.message.starts_with(&format!("{rest}:")) {
            error.message.insert_str(0, pointer);
        }
        error.pointer = Some(format!("{pointer}{rest}"));
    }
    for problem in error.details.iter_mut().filter_map(Value::as_array_mut).flatten() {
        if let Some(rest) = problem["pointer"].as_str() {
            problem["pointer"] = json!(format!("{pointer}{rest}"));
        }
    }
    error
}

/// Each id once, in the order of the body.
fn read_ids(reader: &Reader) -> Option<Vec<String>> {
    let elements = reader.array("ids");
    if reader.value("ids").is_some_and(Value::is_array) && !(1..=BULK_IDS).contains(&elements.len()) {
        let message = format!("{} ids; an operation has 1 to {BULK_IDS} of them", elements.len());
        reader.report("ids", "limit_exceeded", message);
        return None;
    }
    let mut ids: Vec<String> = Vec::new();
    for element in elements {
        match element.value.as_str().filter(|id| ids::is_any_run_id(id)) {
            Some(id) if ids.iter().any(|other| other == id) => {}
            Some(id) => ids.push(id.to_string()),
            None => reader
                .problems()
                .report(&element.pointer, "invalid_id", ids::RUN_ID_RULE),
        }
    }
    Some(ids)
}

/// The parameters of the list. A filter without a value is refused and never ignored: it would select more runs than its sender
/// thinks.
fn read_filter(filter: &Value, reached: &WorkflowScope, now: Millis) -> Result<Vec<(String, String)>, Error> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let read = control::read(filter, |reader| {
        let all = reader.boolean("all").unwrap_or(false);
        for name in FILTERS {
            let Some(value) = reader.value(name) else {
                if reader.is_written(name) {
                    reader.report(name, "wrong_type", "null selects nothing; leave the filter out");
                }
                continue;
            };
            let values = match value {
                // Each is one status: the commas are for texts.
                Value::Array(values) if *name == "status" => match values.iter().any(has_comma) {
                    true => &[],
                    false => values.as_slice(),
                },
                single => std::slice::from_ref(single),
            };
            let texts: Option<Vec<String>> = values.iter().map(|value| text_of(name, value)).collect();
            match texts.filter(|texts| !texts.is_empty()) {
                Some(texts) => pairs.extend(texts.into_iter().map(|text| (name.to_string(), text))),
                None => reader.report(name, "wrong_type", expected(name)),
            }
        }
        Some(all)
    });
    match (read.map_err(|error| within("/filter", error))?, pairs.is_empty()) {
        (true, true) | (false, false) => {}
        (false, true) => {
            let message =
                "an empty filter selects every run; write {\"filter\": {\"all\": true}} if that is meant";
            return Err(Error::bad_request(message));
        }
        (true, false) => {
            let message = "\"all\" selects every run; leave it out, or the other filters";
            return Err(Error::bad_request(message));
        }
    }
    let list = RunList::read(&pairs).map_err(|error| Error {
        pointer: error.pointer.or(Some("/filter".into())),
        ..error
    })?;
    let list = list.within(reached)?;
    pairs.retain(|(name, _)| name != "until");
    let until = list.filter.until.map_or(now, |until| until.min(now));
    pairs.push(("until".into(), until.to_string()));
    Ok(pairs)
}

/// The text of a filter in the list of runs. A value of another type is refused: a mistake would change other runs.
fn text_of(name: &str, value: &Value) -> Option<String> {
    match (name, value) {
        ("since" | "until", Value::Number(number)) => Some(number.to_string()),
        (_, Value::String(text)) => {
            Some(text.clone()).filter(|text| text.split(',').any(|part| !part.is_empty()))
        }
        (_, _) => None,
    }
}

fn has_comma(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains(','))
}

fn expected(name: &str) -> &'static str {
    match name {
        "since" | "until" => "expected a moment in Unix milliseconds",
        "status" => "expected a status or a list of them",
        _other => "expected a text",
    }
}

/// What an operation has done so far, or in one page.
#[derive(Debug, Default, PartialEq)]
pub struct Counts {
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    /// `{run_id, code, message}` of failures.
    pub errors: Vec<Value>,
}

/// Answers of a run that had nothing to do for the operation.
const NOTHING_TO_DO: &[&str] = &["run_finished", "run_ending", "run_not_ended", "not_paused"];

impl Counts {
    /// Counts the answer of a run.
    pub fn add(&mut self, run_id: &str, status: u16, body: &str) {
        if status < 300 {
            self.done += 1;
            return;
        }
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let code = body["error"]["code"].as_str().unwrap_or("internal");
        if NOTHING_TO_DO.contains(&code) {
            self.skipped += 1;
            return;
        }
        let message = body["error"]["message"].as_str().unwrap_or_default();
        self.fail(run_id, code, message);
    }

    pub fn fail(&mut self, run_id: &str, code: &str, message: &str) {
        self.failed += 1;
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(
                json!({"run_id": run_id, "code": code, "message": shorten_to(message, MESSAGE_CHARACTERS)}),
            );
        }
    }
}
