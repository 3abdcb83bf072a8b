//! The body of a simulation: the workflow, and what the world around it answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::base::failure::FailureClass;
use crate::base::ids;
use crate::base::text::json_bytes;
use crate::base::time::{Millis, parse_moment};
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};
use crate::definition::timeouts::TimeoutRules;
use crate::simulate::faults::Faults;
use crate::simulate::limits::{DECISIONS_MAX, DOCUMENTS_MAX, FAULTY_TURNS, MOCKS_MAX};

/// When a simulation starts that does not say: 1 January 2026. Not the clock, so that the answer is always the same.
pub const START_AT: Millis = 1_767_225_600_000;

#[derive(Clone, Debug)]
pub struct SimulateBody {
    pub source: Source,
    pub input: Value,
    /// The name of the caller that starts the run: a gate with `four_eyes` compares it with that of the decision.
    pub by: Option<String>,
    pub start_at: Millis,
    /// As in the body of a start.
    pub timeout_ms: Option<u64>,
    pub mocks: Vec<Mock>,
    pub people: Vec<PersonDecision>,
    pub signals: Vec<SentSignal>,
    pub seed: u64,
    pub faults: Option<FaultPlan>,
    /// The simulation stops so long after the start.
    pub until_ms: Option<u64>,
    /// Tasks go by the queue, as with the variable `CURFEW_QUEUE`.
    pub queue: Option<bool>,
    /// Nodes that call workflows without a document: only mocks answer for them.
    pub stand_ins: BTreeSet<String>,
    /// Documents that the workflow refers to. They come before those of the catalogue.
    pub documents: Library,
}

/// The workflow that is simulated.
#[derive(Clone, Debug)]
pub enum Source {
    Document(Value),
    Stored { id: String, version: Option<u64> },
}

/// The answer to calls.
#[derive(Clone, Debug)]
pub struct Mock {
    /// Its place in the list.
    pub number: usize,
    pub node: Option<String>,
    pub action: Option<String>,
    pub step: Option<String>,
    pub after_ms: u64,
    pub answer: MockAnswer,
    /// Text that has arrived when the call fails or is cut.
    pub partial: Option<String>,
    /// None: any number of calls.
    pub times: Option<u64>,
    /// Of the answer.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub enum MockAnswer {
    Result(Value),
    Fail {
        class: FailureClass,
        code: Option<String>,
        message: Option<String>,
        retry_after_ms: Option<u64>,
    },
    Hang,
}

impl MockAnswer {
    fn bytes(&self) -> usize {
        match self {
            MockAnswer::Result(result) => json_bytes(result),
            MockAnswer::Fail { code, message, .. } => {
                let texts = [code, message].into_iter().flatten();
                texts.map(String::len).sum()
            }
            MockAnswer::Hang => 0,
        }
    }
}

/// What a person decides at a gate, once.
#[derive(Clone, Debug)]
pub struct PersonDecision {
    /// The id of a node, or `timeout`.
    pub gate: String,
    /// After the gate has opened.
    pub after_ms: u64,
    pub choice: String,
    pub input: Value,
    pub by: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SentSignal {
    pub name: String,
    /// After the start.
    pub at_ms: u64,
    pub payload: Value,
}

/// Faults that happen in the first turns of a simulation.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// None: the seed draws them.
    pub odds: Option<Faults>,
    pub turns: u64,
}

impl SimulateBody {
    pub fn read(body: &Value, rules: &TimeoutRules) -> Result<SimulateBody, Error> {
        let problems = Problems::new(*rules);
        let read = Reader::new(body, "", &problems).and_then(|reader| {
            let read = read_body(&reader);
            reader.finish();
            read
        });
        match read {
            Some(read) if !problems.has_errors() => Ok(read),
            Some(_) | None => Err(Error::invalid_body(problems)),
        }
    }
}

fn read_body(reader: &Reader) -> Option<SimulateBody> {
    let source = read_source(reader);
    let start_at = reader.value("start_at").map(parse_moment);
    let start_at = start_at.unwrap_or(Ok(START_AT));
    let start_at = start_at.map_err(|message| reader.report("start_at", "wrong_type", message));
    let timeout_ms = reader.limit("timeout", "timeout_ms").millis();
    let input = reader.value("input").cloned().unwrap_or_else(|| json!({}));
    let by = read_name(reader);
    let mut mocks = reader.list("mocks", MOCKS_MAX, read_mock);
    for (number, mock) in mocks.iter_mut().enumerate() {
        mock.number = number;
    }
    let people = reader.list("people", DECISIONS_MAX, read_decision);
    let signals = reader.list("signals", DECISIONS_MAX, read_signal);
    let seed = reader.integer("seed", 0, i64::MAX).unwrap_or(0);
    let queue = reader.boolean("queue");
    let until_ms = reader.length("until");
    let faults = reader.object("faults").map(read_faults);
    let documents = reader.object("documents").map(read_documents);
    Some(SimulateBody {
        source: source?,
        input,
        by,
        start_at: start_at.ok()?,
        timeout_ms,
        mocks,
        people,
        signals,
        seed: seed as u64,
        faults,
        until_ms,
        queue,
        stand_ins: BTreeSet::new(),
        documents: documents.unwrap_or_default(),
    })
}

fn read_source(reader: &Reader) -> Option<Source> {
    let document = reader.value("workflow");
    let id = reader.id("workflow_id");
    let version = reader.integer("version", 1, i64::MAX);
    match (document, id) {
        (Some(document), None) => {
            if version.is_some() {
                reader.report(
                    "version",
                    "wrong_type",
                    "a version belongs to \"workflow_id\"; leave it out",
                );
            }
            Some(Source::Document(document.clone()))
        }
        (None, Some(id)) => Some(Source::Stored {
            id,
            version: version.map(|version| version as u64),
        }),
        (Some(_), Some(_)) => {
            let message =
                "write \"workflow\", a document, or \"workflow_id\", the id of a stored one, not both";
            reader.report("workflow_id", "wrong_type", message);
            None
        }
        (None, None) if reader.is_written("workflow_id") => None,
        (None, None) => {
            let message =
                "write the document of a workflow here, or the id of a stored one as \"workflow_id\"";
            reader.report("workflow", "missing_field", message);
            None
        }
    }
}

fn read_mock(reader: &Reader) -> Option<Mock> {
    let [node, action, step] =
        ["node", "action", "step"].map(|field| reader.string(field).map(str::to_string));
    if node.is_none() && action.is_none() && step.is_none() {
        let message = "say which calls it answers: \"node\", \"action\" or \"step\", or several of them";
        reader.report("node", "missing_field", message);
    }
    let after_ms = reader.length("after").unwrap_or(0);
    let partial = reader.string("partial").map(str::to_string);
    let times = reader.integer("times", 0, i64::MAX).map(|times| times as u64);
    let answer = read_answer(reader)?;
    let bytes = answer.bytes() + partial.as_deref().map_or(0, str::len);
    Some(Mock {
        number: 0,
        node,
        action,
        step,
        after_ms,
        answer,
        partial,
        times,
        bytes: bytes as u64,
    })
}

fn read_answer(reader: &Reader) -> Option<MockAnswer> {
    let fail = reader.value("fail");
    let hangs = reader.boolean("hang");
    // A result may be null.
    let result = reader.value("result").cloned();
    let result = result.or_else(|| reader.is_written("result").then_some(Value::Null));
    match (result, fail, hangs) {
        (Some(result), None, None | Some(false)) => Some(MockAnswer::Result(result)),
        (None, Some(fail), None | Some(false)) => read_failure(reader, fail),
        (None, None, Some(true)) => Some(MockAnswer::Hang),
        _none_or_several => {
            let message = "write one of \"result\", \"fail\" and \"hang\": true";
            reader.report("result", "missing_field", message);
            None
        }
    }
}

fn read_failure(reader: &Reader, fail: &Value) -> Option<MockAnswer> {
    let class_of = |name: &str, pointer: &str| {
        let class = FailureClass::parse(name);
        if class.is_none() {
            let message = format!(
                "\"{name}\" is no class; they are {}",
                FailureClass::NAMES.join(", ")
            );
            reader.problems().report(pointer, "invalid_choice", message);
        }
        class
    };
    if let Some(name) = fail.as_str() {
        return Some(MockAnswer::Fail {
            class: class_of(name, &reader.pointer_of("fail"))?,
            code: None,
            message: None,
            retry_after_ms: None,
        });
    }
    let fields = reader.object("fail")?;
    let class = fields.required_string("class");
    let class = class.and_then(|name| class_of(name, &fields.pointer_of("class")));
    let code = fields.string("code").map(str::to_string);
    let message = fields.string("message").map(str::to_string);
    let retry_after_ms = fields.length("retry_after");
    fields.finish();
    Some(MockAnswer::Fail {
        class: class?,
        code,
        message,
        retry_after_ms,
    })
}

fn read_decision(reader: &Reader) -> Option<PersonDecision> {
    let gate = reader.required_string("gate").map(str::to_string);
    let after_ms = reader.length("after").unwrap_or(0);
    let choice = reader.required_string("choice").map(str::to_string);
    let input = reader.value("input").cloned().unwrap_or_default();
    let by = read_name(reader);
    Some(PersonDecision {
        gate: gate?,
        after_ms,
        choice: choice?,
        input,
        by,
    })
}

/// The name of a caller, as a start or a decision has it.
fn read_name(reader: &Reader) -> Option<String> {
    control::read_by(reader);
    reader.string("by").map(str::to_string)
}

fn read_signal(reader: &Reader) -> Option<SentSignal> {
    let name = reader.required_string("name");
    if name.is_some_and(|name| !ids::is_name(name)) {
        reader.report("name", "invalid_id", ids::NAME_RULE);
    }
    let at_ms = reader.length("at").unwrap_or(0);
    let payload = reader.value("payload").cloned().unwrap_or_default();
    Some(SentSignal {
        name: name?.to_string(),
        at_ms,
        payload,
    })
}

/// `{"events": 40}` draws the odds from the seed; any odds besides it are exactly these.
fn read_faults(reader: Reader) -> FaultPlan {
    let turns = reader.integer("events", 0, FAULTY_TURNS.max as i64);
    let mut odds = Faults::default();
    let mut has_odds = false;
    for name in Faults::NAMES {
        if let Some(percent) = reader.integer(name, 0, 100) {
            has_odds = true;
            odds.set(name, percent as u64);
        }
    }
    reader.finish();
    FaultPlan {
        odds: has_odds.then_some(odds),
        turns: turns.map_or(FAULTY_TURNS.default, |turns| turns as u64),
    }
}

/// Documents of a body: `{workflows?, tasks?, actions?}`, each a list.
pub fn read_library(documents: &Value, pointer: &str) -> Result<Library, Error> {
    if documents.is_null() {
        return Ok(Library::new());
    }
    let problems = Problems::default();
    let library = Reader::new(documents, pointer, &problems).map(read_documents);
    match library {
        Some(library) if !problems.has_errors() => Ok(library),
        Some(_) | None => Err(Error::invalid_body(problems)),
    }
}

fn read_documents(reader: Reader) -> Library {
    let mut library = Library::new();
    for (field, kind) in [
        ("workflows", DocumentKind::Workflows),
        ("tasks", DocumentKind::Tasks),
        ("actions", DocumentKind::Actions),
    ] {
        for element in reader.array(field) {
            let Some(id) = element.value["id"].as_str() else {
                let message = "a document here has an \"id\", by which others refer to it";
                let pointer = format!("{}/id", element.pointer);
                reader.problems().report(&pointer, "missing_field", message);
                continue;
            };
            // The catalogue keeps the number of a version apart from its document.
            let mut content = element.value.clone();
            let version = content
                .as_object_mut()
                .and_then(|fields| fields.remove("version"));
            let document = CatalogueDocument {
                version: version.and_then(|version| version.as_u64()).unwrap_or(1),
                content,
            };
            let reference = |version| Reference {
                kind,
                id: id.to_string(),
                version,
            };
            let (number, without) = (document.version, reference(None));
            let is_newest = match library.get(&without) {
                Some(Some(known)) => known.version < number,
                Some(None) | None => true,
            };
            if library
                .insert(reference(Some(number)), Some(document.clone()))
                .is_some()
            {
                let message = format!("version {number} of \"{id}\" is in the list twice");
                let pointer = format!("{}/id", element.pointer);
                reader.problems().report(&pointer, "duplicate_id", message);
            }
            // Without a version the newest is meant.
            if is_newest {
                library.insert(without, Some(document));
            }
        }
    }
    if library
        .keys()
        .filter(|reference| reference.version.is_some())
        .count()
        > DOCUMENTS_MAX
    {
        let message = format!("more than {DOCUMENTS_MAX} documents");
        reader.report("workflows", "limit_exceeded", message);
    }
    reader.finish();
    library
}
