//! A what-if: a recorded run once more, with changes.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::api::start::ResolvedWorkflow;
use crate::base::limits::{DOCUMENT_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::definition::snapshot::{
    CheckError, Library, Reference, Resolution, StoredSnapshot, check_workflow, resolve,
};
use crate::definition::timeouts::TimeoutRules;
use crate::replay::changed_durations::{ChangedDuration, DURATIONS_MAX, RecordedDurations, change_durations};
use crate::replay::comparison::differences;
use crate::replay::departure::AttemptLimits;
use crate::replay::documents::{library_of, self_contained};
use crate::replay::export::Export;
use crate::replay::json_patch;
use crate::replay::recorded_calls::CallPlace;
use crate::replay::recorded_tasks::{RecordedTasks, read_snapshot};
use crate::replay::recording::Recording;
use crate::replay::replaying::{Changed, Plan, Replayed, replay};

/// The body of `POST /v1/runs/:id/what-if`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIfBody {
    /// JSON Patch on the document; null for none.
    pub changes: Value,
    pub version: Option<u64>,
    pub input: Option<Value>,
    pub durations: Vec<ChangedDuration>,
}

impl WhatIfBody {
    pub fn read(body: &Value) -> Result<WhatIfBody, Error> {
        control::read(body, |reader| {
            let version = control::read_version(reader);
            Some(WhatIfBody {
                changes: reader.value("changes").cloned().unwrap_or_default(),
                version,
                input: reader.value("input").cloned(),
                durations: reader.list("durations", DURATIONS_MAX, ChangedDuration::read),
            })
        })
    }

    fn has_changes(&self) -> bool {
        !self.changes.is_null() && self.changes.as_array().is_none_or(|changes| !changes.is_empty())
    }
}

/// What is known of the workflow so far.
pub enum Resolved {
    Workflow(Box<StoredSnapshot>),
    /// These are not among the documents of the run: they must be looked up and added to the library.
    Missing(Vec<Reference>),
}

pub struct WhatIf {
    export: Export,
    body: WhatIfBody,
    /// The changed document. `None`: the run's own snapshot counts.
    document: Option<Value>,
    library: Library,
}

impl WhatIf {
    /// `other_version`: the document of `body.version`, where that is not the run's own.
    pub fn new(export: Export, body: WhatIfBody, other_version: Option<Value>) -> Result<WhatIf, Error> {
        let stored = &export.snapshot;
        let document = match (&other_version, body.has_changes()) {
            (Some(document), _) => Some(document.clone()),
            (None, true) if export.document.is_object() => Some(export.document.clone()),
            (None, true) => Some(self_contained(stored)),
            (None, false) => None,
        };
        let document = match document {
            Some(mut document) if body.has_changes() => {
                // One from a snapshot has its tasks inline, and may be larger than what is stored.
                let bytes_max = DOCUMENT_BYTES.max(json_bytes(&document));
                json_patch::apply(&mut document, &body.changes)?;
                let bytes = json_bytes(&document);
                TooLarge::check("the changed document", bytes, bytes_max)
                    .map_err(|large| Error::new(422, "limit_exceeded", large.to_string()))?;
                Some(document)
            }
            other => other,
        };
        Ok(WhatIf {
            library: library_of(stored),
            export,
            body,
            document,
        })
    }

    /// Documents that the catalogue has; `None` where it has none.
    pub fn add(&mut self, found: Library) {
        self.library.extend(found);
    }

    pub fn resolve(&self, rules: &TimeoutRules) -> Result<Resolved, Error> {
        let recorded = &self.export.snapshot;
        let Some(document) = &self.document else {
            let first = self.export.snapshot_of(self.export.first_version())?;
            return Ok(Resolved::Workflow(Box::new(first.clone())));
        };
        let rules = TimeoutRules {
            preset: recorded.preset,
            ..*rules
        };
        match check_workflow(document, &self.library, &rules) {
            Ok(_) => {}
            Err(CheckError::Missing(references)) => return Ok(Resolved::Missing(references)),
            Err(CheckError::Invalid(problems)) => return Err(Error::invalid_document(&problems)),
        }
        let version = self.body.version.unwrap_or(recorded.version);
        match resolve(document, version, &self.library, &rules) {
            Resolution::Resolved(mut stored) => {
                stored.latencies.clone_from(&recorded.latencies);
                Ok(Resolved::Workflow(stored))
            }
            Resolution::Missing(references) => Ok(Resolved::Missing(references)),
            Resolution::Invalid(problems) => Err(Error::invalid_document(&problems)),
        }
    }

    /// `{recorded, recorded_durations, replayed, differences, unknown}`.
    pub fn run(&self, stored: StoredSnapshot) -> Result<Value, Error> {
        let tasks = Rc::new(self.recorded_tasks()?);
        let mut recording = Recording::of(&self.export, &tasks)?;
        let recorded_durations = RecordedDurations::of(&recording);
        recorded_durations.check(&self.body.durations)?;
        let changed = Changed {
            workflow: self.document.is_some(),
            input: self.body.input.is_some(),
            durations: !self.body.durations.is_empty(),
        };
        if !changed.is_nothing() {
            recording.limits = self.recorded_limits(&tasks)?;
        }
        change_durations(&mut recording, &self.body.durations);
        let workflow = ResolvedWorkflow::new(stored)?;
        let plan = Plan {
            export: &self.export,
            workflow: &workflow,
            input: self
                .body
                .input
                .clone()
                .unwrap_or_else(|| self.export.run.input.clone()),
            changed,
        };
        let replayed = replay(&plan, recording, tasks)?;
        Ok(self.answer(&replayed, &recorded_durations))
    }

    fn recorded_tasks(&self) -> Result<RecordedTasks, Error> {
        let mut tasks = RecordedTasks::default();
        for snapshot in self.export.versions.values().chain([&self.export.snapshot]) {
            tasks.add(&read_snapshot(snapshot)?);
        }
        Ok(tasks)
    }

    /// The history does not have the limits of attempts, but they follow from it: the run is replayed without changes.
    fn recorded_limits(
        &self,
        tasks: &Rc<RecordedTasks>,
    ) -> Result<BTreeMap<CallPlace, AttemptLimits>, Error> {
        let first = self.export.snapshot_of(self.export.first_version())?;
        let workflow = ResolvedWorkflow::new(first.clone())?;
        let plan = Plan {
            export: &self.export,
            workflow: &workflow,
            input: self.export.run.input.clone(),
            changed: Changed::default(),
        };
        let recording = Recording::of(&self.export, tasks)?;
        Ok(replay(&plan, recording, tasks.clone())?.limits)
    }

    fn answer(&self, replayed: &Replayed, recorded_durations: &RecordedDurations) -> Value {
        let started_at = self.export.run.started_at;
        let is_stopped = !replayed.unknown.is_empty();
        let unknown = replayed.unknown.iter().map(|call| {
            json!({
                "node_id": call.place.node_id.trim_end_matches('~'),
                "token_id": call.place.token_id,
                "epoch": call.place.epoch,
                "at_ms": call.at.saturating_sub(started_at),
                "message": format!("what this call would answer is not recorded: {}", call.why),
            })
        });
        let (before, after) = (self.export.outcome(), replayed.outcome());
        json!({
            "recorded": before.view(),
            "recorded_durations": recorded_durations.view(),
            "replayed": after.view(),
            "differences": differences(before, after, is_stopped),
            "unknown": unknown.collect::<Vec<Value>>(),
        })
    }
}

/// Without a catalogue: what the export does not have does not exist.
pub fn what_if_alone(export: Value, body: WhatIfBody, rules: &TimeoutRules) -> Result<Value, Error> {
    let export = Export::read(export)?;
    if body
        .version
        .is_some_and(|version| version != export.snapshot.version)
    {
        let message =
            "another version is not part of the export; ask the server, with POST /v1/runs/{id}/what-if";
        return Err(Error::invalid_request("/version", message));
    }
    let mut what_if = WhatIf::new(export, body, None)?;
    loop {
        match what_if.resolve(rules)? {
            Resolved::Workflow(stored) => return what_if.run(*stored),
            Resolved::Missing(references) => {
                let missing = references.into_iter().map(|reference| (reference, None));
                what_if.add(missing.collect());
            }
        }
    }
}
