//! What reads what others wrote, each as a target.

use curfew::engine::Event;
use curfew::executor::sse::Parser;
use curfew::model::expression::{Expression, Scope, Template};
use curfew::model::snapshot::{DocumentKind, Library, check};
use curfew::model::time::{parse_duration, parse_moment};
use curfew::model::timeouts::{Preset, TimeRules};
use curfew::wire::{TaskOrder, TaskReport};
use serde_json::{Value, json};

use super::fuzz;
use crate::engine::driver::Driver;

#[test]
fn documents() {
    fuzz("documents", |bytes| {
        let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        for kind in [
            DocumentKind::Workflows,
            DocumentKind::Tasks,
            DocumentKind::Actions,
        ] {
            for preset in [Preset::Standard, Preset::Flow] {
                let rules = TimeRules {
                    preset,
                    ..TimeRules::default()
                };
                check(kind, &document, &Library::new(), &rules).ok();
            }
        }
    });
}

#[test]
fn expressions() {
    let (input, state) = (
        json!({"x": 4, "name": "Ada", "list": [1, 2, 3]}),
        json!({"a": {"b": null}}),
    );
    fuzz("expressions", |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut scope = Scope::new();
        scope.bind("input", &input).bind("state", &state);
        let expression = Expression::new(text.clone());
        if expression.check().is_ok() {
            let _ = expression.evaluate(&scope);
        }
        if let Ok(template) = Template::parse(&Value::String(text)) {
            let _ = template.render(&scope);
        }
    });
}

/// A report of an executor, for a run whose first token executes.
#[test]
fn results() {
    let document = json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work", "input_mapping": {"got": "${state.a}"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    });
    fuzz("results", |bytes| {
        if let Ok(report) = serde_json::from_slice::<TaskReport>(bytes) {
            let mut driver = Driver::start(document.clone());
            driver.feed(Event::TaskReported(Box::new(report)));
            driver.reload();
        }
        let text = String::from_utf8_lossy(bytes);
        if let Ok(order) = serde_json::from_str::<TaskOrder>(&text) {
            let _ = order.checkpoint();
        }
    });
}

#[test]
fn durations() {
    fuzz("durations", |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let _ = parse_duration(&text);
        let _ = parse_moment(&Value::String(text));
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = parse_moment(&value);
        }
    });
}

/// Whatever is said, it must not matter where the network cuts it.
#[test]
fn server_sent_events() {
    fuzz("sse", |bytes| {
        let mut whole = Vec::new();
        let mut parser = Parser::default();
        let fits = parser.push(bytes, &mut whole).is_ok();
        whole.extend(parser.finish());
        let (mut parts, mut parser) = (Vec::new(), Parser::default());
        let fits_in_parts = bytes
            .chunks(3)
            .all(|chunk| parser.push(chunk, &mut parts).is_ok());
        parts.extend(parser.finish());
        assert_eq!((fits, &whole), (fits_in_parts, &parts));
    });
}
