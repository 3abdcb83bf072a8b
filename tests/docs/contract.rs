//! The OpenAPI document and the code say the same: routes, parameters, roles, fields of bodies, codes, names and views.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use curfew::api::analyze::AnalyzeBody;
use curfew::api::auth::Role;
use curfew::api::batch;
use curfew::api::bulk::Operation;
use curfew::api::contract::OPENAPI;
use curfew::api::control::{self, Control};
use curfew::api::error::Error;
use curfew::api::routes::{BodyRule, Route};
use curfew::api::start::StartBody;
use curfew::base::failure::FailureClass;
use curfew::definition::event_kinds::EVENT_KINDS;
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::caller::Caller;
use curfew::replay::WhatIfBody;
use curfew::run::{RunStatus, TokenStatus};
use curfew::simulate::SimulateBody;
use serde_json::{Value, json};

use super::completeness::{PROBE, error_codes, variant_name, variants_of};
use super::root;

fn document() -> Value {
    serde_json::from_str(OPENAPI).expect("the document is JSON")
}

struct Call {
    method: String,
    path: String,
    operation: Value,
}

impl Call {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The route of this call, with an example for each part of the path.
    fn route(&self) -> Route {
        let parts = self.path.split('/').map(|part| match part {
            "{n}" => "1".to_string(),
            "{name}.json" => "workflow.json".to_string(),
            part if part.starts_with('{') => "x".to_string(),
            part => part.to_string(),
        });
        let path = parts.collect::<Vec<_>>().join("/");
        Route::parse(&self.method, &path).unwrap_or_else(|error| panic!("{}: {error:?}", self.name()))
    }

    fn parameters(&self, place: &str) -> BTreeSet<String> {
        let parameters = self.operation["parameters"].as_array();
        let parameters = parameters.into_iter().flatten();
        let of_place = parameters.filter(|parameter| parameter["in"] == place);
        of_place.map(|parameter| text(&parameter["name"])).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_string()
}

fn calls(document: &Value) -> Vec<Call> {
    let paths = document["paths"].as_object().expect("paths");
    let calls = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().expect("operations");
        operations.iter().map(|(method, operation)| Call {
            method: method.to_uppercase(),
            path: path.clone(),
            operation: operation.clone(),
        })
    });
    calls.collect()
}

fn names_of<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_string).collect()
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Start => "start",
        Role::Decide => "decide",
        Role::Operate => "operate",
        Role::Admin => "admin",
    }
}

#[test]
fn every_call_is_a_route_with_its_role_and_parameters() {
    for call in calls(&document()) {
        let route = call.route();
        let rules = route.rules();
        let name = call.name();
        match rules.role {
            None => assert_eq!(call.operation["security"], json!([]), "{name}"),
            Some(role) => assert_eq!(call.operation["x-curfew-role"], role_name(role), "{name}"),
        }
        let known = names_of(rules.parameters.unwrap_or_default().iter().copied());
        assert_eq!(call.parameters("query"), known, "{name}");
        let in_path = call
            .path
            .split('{')
            .skip(1)
            .filter_map(|part| part.split('}').next());
        assert_eq!(call.parameters("path"), names_of(in_path), "{name}");
        let has_body = !call.operation["requestBody"].is_null();
        assert_eq!(has_body, rules.body != BodyRule::Ignored, "{name}");
    }
}

#[test]
fn every_route_is_a_call() {
    let calls = calls(&document());
    let seen: BTreeSet<String> = calls
        .iter()
        .map(|call| variant_name(&format!("{:?}", call.route())))
        .collect();
    assert_eq!(seen, variants_of("src/api/routes.rs", "Route"));
    let all: BTreeSet<String> = calls.iter().map(Call::name).collect();
    for kind in ["workflows", "tasks", "actions"] {
        for call in [
            "GET /v1/{kind}",
            "GET /v1/{kind}/{one_id}",
            "PUT /v1/{kind}/{one_id}",
        ] {
            let call = call
                .replace("{kind}", kind)
                .replace("one", kind.trim_end_matches('s'));
            assert!(all.contains(&call), "{call} is missing");
        }
    }
    let controls = variants_of("src/api/control.rs", "Control");
    let names = controls.iter().map(|control| control.to_lowercase());
    for name in names.filter(|name| Control::named(name).is_some()) {
        assert!(
            all.contains(&format!("POST /v1/runs/{{run_id}}/{name}")),
            "{name}"
        );
        let for_many = all.contains(&format!("POST /v1/runs:{name}"));
        assert_eq!(for_many, Control::named_for_many(&name).is_some(), "{name}");
    }
}

/// The schema behind a `$ref`, if it is one.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        None => schema,
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{reference} leads nowhere")),
    }
}

fn properties(document: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = resolved(document, schema);
    // A schema that may also be null.
    let schema = schema["anyOf"].get(0).unwrap_or(schema);
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().cloned().collect()
}

/// The fields that a reader knows, from its refusal of the probe.
fn known<T: std::fmt::Debug>(read: Result<T, Error>) -> BTreeSet<String> {
    let error = read.expect_err("the probe is no field");
    let details = error.details.expect("every problem");
    let messages = details.as_array().expect("a list").iter();
    let messages = messages.filter(|problem| text(&problem["pointer"]).ends_with(PROBE));
    let message = messages.map(|problem| text(&problem["message"])).next();
    let message = message.unwrap_or_else(|| panic!("the probe was not reported, but {details}"));
    let (_, known) = message.split_once("(known: ").expect("the known fields");
    names_of(known.trim_end_matches(')').split(", "))
}

fn bulk(control: &Control, body: &Value) -> Result<(), Error> {
    Operation::read(control, body, Caller::default(), 1_000).map(drop)
}

#[test]
fn every_body_has_the_fields_that_its_reader_knows() {
    let document = document();
    let probe = json!({PROBE: 1});
    let rules = TimeoutRules::default();
    for call in calls(&document) {
        let route = call.route();
        let schema = &call.operation["requestBody"]["content"]["application/json"]["schema"];
        let of_reader = match route.rules().body {
            BodyRule::Ignored | BodyRule::Document { .. } => continue,
            BodyRule::Payload | BodyRule::CallbackResult => continue,
            BodyRule::Control(Control::Signal { .. }) => continue,
            BodyRule::Empty => known(control::read_empty(&probe)),
            BodyRule::Start => known(StartBody::read(&probe, &rules)),
            BodyRule::Analyze { id } => known(AnalyzeBody::read(&probe, id)),
            BodyRule::Batch => known(batch::items(&probe)),
            BodyRule::WhatIf => known(WhatIfBody::read(&probe)),
            BodyRule::Simulate => known(SimulateBody::read(&probe, &rules)),
            BodyRule::Control(control) => known(control.check(&probe)),
            BodyRule::Bulk(control) => {
                let with = match control {
                    Control::Extend => json!({"by_ms": 1}),
                    Control::Retry => json!({"mode": "escalate"}),
                    _ => json!({}),
                };
                let shape = resolved(&document, schema);
                let of_filter = known(bulk(control, &json!({"filter": probe, "with": with})));
                assert_eq!(properties(&document, &shape["properties"]["filter"]), of_filter);
                let mut of_with = known(control.check(&probe));
                // A bulk operation refuses both: they belong to one run.
                for name in ["token_id", "version"] {
                    of_with.remove(name);
                }
                assert_eq!(properties(&document, &shape["properties"]["with"]), of_with);
                known(bulk(control, &json!({PROBE: 1, "with": with})))
            }
        };
        assert_eq!(properties(&document, schema), of_reader, "{}", call.name());
    }
    let item = json!({"$ref": "#/components/schemas/BatchItem"});
    assert_eq!(
        properties(&document, &item),
        known(StartBody::read_item(&probe, &rules))
    );
}

/// Refusals that are part of another answer, or that only runs get from each other.
const INSIDE: &[&str] = &["409 event_limit", "409 not_the_parent", "409 not_the_child"];

#[test]
fn every_code_is_an_answer_with_its_status() {
    let document = document();
    let responses = document["components"]["responses"].as_object().expect("answers");
    let mut told = BTreeSet::new();
    for (name, response) in responses {
        let (status, _) = name.split_once('.').expect("a status and codes");
        let schema = &response["content"]["application/json"]["schema"];
        let codes = schema.pointer("/allOf/1/properties/error/properties/code/enum");
        for code in codes.and_then(Value::as_array).expect("codes") {
            told.insert(format!("{status} {}", text(code)));
        }
    }
    told.extend(names_of(INSIDE.iter().copied()));
    assert_eq!(told, error_codes());
    let codes = document.pointer("/components/schemas/ErrorBody/properties/code/enum");
    let codes = codes.and_then(Value::as_array).expect("codes");
    let all = told.iter().filter_map(|told| told.split(' ').nth(1));
    assert_eq!(codes.iter().map(text).collect::<BTreeSet<_>>(), names_of(all));
}

#[test]
fn names_are_those_of_the_code() {
    let document = document();
    let names = |pointer: &str| -> BTreeSet<String> {
        let names = document.pointer(&format!("/components/schemas/{pointer}/enum"));
        let names = names
            .and_then(Value::as_array)
            .unwrap_or_else(|| panic!("{pointer}"));
        names.iter().map(text).collect()
    };
    assert_eq!(names("RunStatus"), names_of(RunStatus::ALL.map(RunStatus::name)));
    assert_eq!(
        names("TokenStatus"),
        names_of(TokenStatus::ALL.iter().map(|status| status.name()))
    );
    let classes = names_of(FailureClass::NAMES.iter().copied());
    assert_eq!(names("Failure/properties/class"), classes);
    assert_eq!(
        names("Event/properties/kind"),
        names_of(EVENT_KINDS.iter().copied())
    );
}

/// The shape of a golden view, by the beginning of its name.
const SHAPES: &[(&str, &str)] = &[
    ("view_deliverable_", "Deliverable"),
    ("view_event_", "Event"),
    ("view_gate_", "Gate"),
    ("view_resume_", "ResumeOptions"),
    ("view_run_", "Run"),
    ("view_summary_", "RunSummary"),
    ("view_timeout_line", "TimeoutLine"),
    ("view_timeout_", "Timeout"),
    ("view_token_", "Token"),
    ("view_version_does_not_fit", "Error"),
];

#[test]
fn golden_views_have_their_shapes() {
    let document = document();
    let mut validators = BTreeMap::new();
    for (_, shape) in SHAPES {
        let schema =
            json!({"$ref": format!("#/components/schemas/{shape}"), "components": document["components"]});
        let validator = jsonschema::draft202012::new(&schema).expect("a valid schema");
        validators.insert(*shape, validator);
    }
    let entries = fs::read_dir(root().join("tests/golden")).expect("the golden files");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut seen = BTreeSet::new();
    for path in paths {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_string();
        if !name.starts_with("view_") {
            continue;
        }
        let shape = SHAPES.iter().find(|(prefix, _)| name.starts_with(prefix));
        let (prefix, shape) = shape.unwrap_or_else(|| panic!("{name} has no shape in the contract"));
        let view: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a view")).expect("JSON");
        let problems: Vec<String> = validators[shape]
            .iter_errors(&view)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{name} is no {shape}: {problems:#?}");
        seen.insert(*prefix);
    }
    assert_eq!(seen.len(), SHAPES.len(), "{seen:?}");
}

/// Every schema below a value, with its place.
fn visit(value: &Value, place: &str, each: &mut dyn FnMut(&str, &Value)) {
    each(place, value);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                visit(field, &format!("{place}/{name}"), each);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, place, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Generators of clients stumble over `true` and `false` as the schema of a field.
#[test]
fn every_field_has_an_object_as_its_schema() {
    let mut wrong = Vec::new();
    visit(&document(), "", &mut |place, value| {
        let properties = value.get("properties").and_then(Value::as_object);
        let is_boolean = |(_, schema): &(&String, &Value)| schema.is_boolean();
        let boolean = properties.into_iter().flatten().filter(is_boolean);
        wrong.extend(boolean.map(|(name, _)| format!("{place}/{name}")));
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_extension_is_exactly_one_of_its_three_forms() {
    let document = document();
    let schema = &document["components"]["schemas"]["ExtendBody"];
    let validator = jsonschema::draft202012::new(schema).expect("a schema");
    for right in [
        json!({"by": "10m"}),
        json!({"by_ms": 5, "until": null}),
        json!({"until": 5}),
    ] {
        assert!(validator.is_valid(&right), "{right}");
        assert_eq!(Control::Extend.check(&right).err(), None, "{right}");
    }
    for wrong in [
        json!({}),
        json!({"by": "10m", "by_ms": 5}),
        json!({"by": "10m", "until": 5}),
        json!({"by_ms": 5, "until": 5}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn items_of_a_batch_refer_to_their_shape() {
    let items = &document()["components"]["schemas"]["BatchBody"]["properties"]["items"]["items"];
    assert_eq!(items["anyOf"][0]["$ref"], "#/components/schemas/BatchItem");
}

/// A URL cannot contain them, whatever a client encodes.
#[test]
fn no_path_has_a_dot_or_two_as_a_part() {
    let document = document();
    let mut seen = 0;
    for call in calls(&document) {
        for parameter in call.operation["parameters"].as_array().into_iter().flatten() {
            let schema = &parameter["schema"];
            if parameter["in"] != "path" || schema["pattern"].is_null() {
                continue;
            }
            let validator = jsonschema::draft202012::new(schema).expect("a schema");
            let place = format!("{} {}", call.name(), parameter["name"]);
            for dots in [".", ".."] {
                assert!(!validator.is_valid(&json!(dots)), "{place} allows {dots}");
            }
            for name in ["...", ".a", "a.b", "x"] {
                assert!(validator.is_valid(&json!(name)), "{place} refuses {name}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} parameters");
}

#[test]
fn sentences_have_the_right_article() {
    let begins_with_vowel = |word: &str| word.starts_with(['a', 'e', 'i', 'o']);
    for call in calls(&document()) {
        let summary = text(&call.operation["summary"]);
        let words: Vec<&str> = summary.split(' ').collect();
        let is_wrong = |pair: &[&str]| pair[0] == "a" && begins_with_vowel(pair[1]);
        assert!(!words.windows(2).any(is_wrong), "{summary}");
    }
}
