//! The fuzz targets: each parses one kind of untrusted input.

use curfew::api::analyze::AnalyzeBody;
use curfew::api::auth::{Credential, RequestHead, Role, SettingTexts, Settings};
use curfew::api::bulk::Operation;
use curfew::api::error::Error;
use curfew::api::live::Watch;
use curfew::api::query::Query;
use curfew::api::routes::Route;
use curfew::api::start::StartBody;
use curfew::api::{batch, body, callback, event};
use curfew::base::time::{parse_duration, parse_moment};
use curfew::cel::{Expression, Scope, Template};
use curfew::definition::snapshot::{DocumentKind, Library, check};
use curfew::definition::timeouts::{Preset, TimeoutRules};
use curfew::engine;
use curfew::protocol::caller::Caller;
use curfew::protocol::task::{TaskOrder, TaskReport};
use curfew::replay::{WhatIfBody, json_patch};
use curfew::run::{Capability, Event};
use curfew::simulate::{Deployment, simulate_alone};
use curfew::task::sse::SseParser;
use serde_json::{Value, json};
use url::Url;

use super::fuzz;
use crate::run::driver::Driver;

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
                let rules = TimeoutRules {
                    preset,
                    ..TimeoutRules::default()
                };
                check(kind, &document, &Library::new(), &rules).ok();
            }
        }
    });
}

/// Each line is a request to the engine; a session is open.
#[test]
fn steps() {
    let open =
        json!({"op": "open", "workflow": {"id": "w", "nodes": [{"id": "ask", "gate": {}}], "timeout": "1h"}})
            .to_string();
    let answer = |request: &str| -> Value {
        let answer: Value = serde_json::from_str(&engine::call(request)).expect("an answer is JSON");
        let status = answer["error"]["status"].as_u64().unwrap_or(200);
        assert!(status < 500, "{request}: {answer}");
        answer
    };
    fuzz("steps", |bytes| {
        let session = answer(&open)["ok"]["session"].to_string();
        let text = String::from_utf8_lossy(bytes);
        for request in text.lines() {
            answer(&request.replace("SESSION", &session));
        }
        answer(&json!({"op": "close", "session": session.parse::<u64>().ok()}).to_string());
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
        scope
            .bind("input", &input)
            .bind("state", &state)
            .bind_owned("now", json!(1_794_813_773_776_u64));
        let expression = Expression::new(text.clone());
        if expression.check().is_ok() {
            let _ = expression.evaluate(&scope);
        }
        if let Ok(template) = Template::parse(&Value::String(text)) {
            let _ = template.render(&scope);
        }
    });
}

/// An executor's report for a run whose first token is executing.
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

/// The events must not depend on how the network splits the stream.
#[test]
fn server_sent_events() {
    fuzz("sse", |bytes| {
        let mut whole = Vec::new();
        let mut parser = SseParser::default();
        let fits = parser.push(bytes, &mut whole).is_ok();
        whole.extend(parser.finish());
        let (mut parts, mut parser) = (Vec::new(), SseParser::default());
        let fits_in_parts = bytes
            .chunks(3)
            .all(|chunk| parser.push(chunk, &mut parts).is_ok());
        parts.extend(parser.finish());
        assert_eq!((fits, &whole), (fits_in_parts, &parts));
    });
}

const NOW: u64 = 1_800_000_000_000;

/// A request to the API: a line with method and URL, headers, an empty line, the body.
struct Request<'a> {
    method: String,
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
    body: &'a [u8],
}

impl Request<'_> {
    fn parse(bytes: &[u8]) -> Request<'_> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n");
        let (head, body) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 2..]),
            None => (bytes, &[][..]),
        };
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let (method, address) = first.split_once(' ').unwrap_or((first, "/"));
        let (path, query) = match address.split_once('?') {
            Some((path, query)) => (path, Some(query.to_string())),
            None => (address, None),
        };
        let headers = lines.filter_map(|line| line.split_once(": "));
        Request {
            method: method.to_string(),
            path: path.to_string(),
            query,
            headers: headers
                .map(|(name, value)| (name.to_lowercase(), value.to_string()))
                .collect(),
            body,
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    fn authorize(&self, role: Role) -> Result<(), Error> {
        let settings = Settings::parse(&SettingTexts {
            tokens: self.header("tokens").map(str::to_string),
            development: Some("on".into()),
            ..SettingTexts::default()
        })?;
        let head = RequestHead {
            method: &self.method,
            url: &Url::parse("http://localhost/").expect("a URL"),
            header: &|name| {
                let host = (name == "host").then_some("localhost");
                self.header(name).or(host).map(str::to_string)
            },
        };
        match settings.credential(&head)? {
            None => Ok(()),
            Some(Credential::Token(token)) => settings.identify(&token, NOW)?.require(role),
            Some(Credential::Assertion(_)) => unreachable!("Access is not configured"),
        }
    }

    /// The Worker's processing of a request, up to the point where it needs the catalogue, the index or an object.
    fn handle(&self, rules: &TimeoutRules) -> Result<(), Error> {
        let route = Route::parse(&self.method, &self.path)?;
        if let Some(role) = route.rules().role {
            self.authorize(role)?;
        }
        let query = Query::read(&route, self.query.as_deref())?;
        query.limit()?;
        query.wait_ms()?;
        query.version()?;
        let body = body::read(&route, self.body)?;
        match &route {
            Route::StartRun { .. } => StartBody::read(&body, rules).map(drop),
            Route::AnalyzeWorkflow { workflow } => AnalyzeBody::read(&body, workflow).map(drop),
            Route::StartBatch => {
                let items = batch::items(&body)?;
                batch::groups(items);
                for item in items {
                    StartBody::read_item(item, rules)?;
                }
                Ok(())
            }
            Route::StartOperation { control } => {
                let operation = Operation::read(control, &body, Caller::ANONYMOUS, NOW)?;
                operation
                    .page("")
                    .map(drop)
                    .expect("an accepted operation has a first page");
                Ok(())
            }
            Route::Simulate => simulate_alone(&body, rules, &Deployment::default()).map(drop),
            Route::ExportRun { .. } => query.redacts_values().map(drop),
            Route::WhatIf { .. } => {
                let mut document = json!({"id": "flow", "nodes": [{"id": "a"}]});
                let body = WhatIfBody::read(&body)?;
                json_patch::apply(&mut document, &body.changes)
            }
            Route::ListRuns => query.run_list().map(drop),
            Route::ListTokens { .. }
            | Route::ListEvents { .. }
            | Route::ListTimeouts { .. }
            | Route::ListNotifications { .. } => query.after().map(drop),
            Route::WatchRun { .. } => Watch::read(&query, self.header("last-event-id")).map(drop),
            Route::PublishEvent { .. } => self.header("idempotency-key").map_or(Ok(()), event::check_key),
            Route::Callback { capability } => match Capability::parse(capability) {
                Some(known) => {
                    assert_eq!(
                        known.text(),
                        *capability,
                        "a capability is read as it was written"
                    );
                    Ok(())
                }
                None => Err(callback::unknown()),
            },
            Route::Health
            | Route::ReadContract
            | Route::ReadSchema { .. }
            | Route::Metrics
            | Route::ReadIdentity
            | Route::PutDocument { .. }
            | Route::ReadDocument { .. }
            | Route::ListDocuments { .. }
            | Route::ReadRun { .. }
            | Route::ReadOperation { .. }
            | Route::ReadTimeout { .. }
            | Route::ReadDeliverable { .. }
            | Route::ReadResumeOptions { .. }
            | Route::ListGates
            | Route::ListBreakers
            | Route::ResetBreaker { .. }
            | Route::Control { .. } => Ok(()),
        }
    }
}

/// Every error is a well-formed client error.
fn check_error(error: &Error, request_bytes: usize) {
    // 503 without configured tokens.
    assert!(
        (400..500).contains(&error.status) || error.code == "auth_not_configured",
        "{error:?}"
    );
    let shown = error.body();
    let fields = shown["error"].as_object().expect("an error is an object");
    let code = fields["code"].as_str().expect("a code");
    assert!(
        code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
        "{code}"
    );
    assert!(!fields["message"].as_str().expect("a message").is_empty());
    assert!(
        fields
            .keys()
            .all(|key| ["code", "message", "pointer", "details"].contains(&key.as_str()))
    );
    if let Some(pointer) = fields.get("pointer") {
        let pointer = pointer.as_str().expect("a pointer is text");
        assert!(pointer.is_empty() || pointer.starts_with('/'), "{pointer}");
    }
    let response_bytes = shown.to_string().len();
    assert!(
        response_bytes < 50_000 + 20 * request_bytes,
        "{response_bytes} bytes for {request_bytes}"
    );
}

#[test]
fn requests() {
    let rules = TimeoutRules::default();
    fuzz("requests", |bytes| {
        let request = Request::parse(bytes);
        if let Err(error) = request.handle(&rules) {
            check_error(&error, bytes.len());
        }
    });
}

/// The target would find little if no request passed the checks before its body.
#[test]
fn requests_of_the_corpus_are_accepted() {
    for (name, bytes) in super::files("requests") {
        let request = Request::parse(&bytes);
        let answer = request.handle(&TimeoutRules::default());
        let refused = name.starts_with("refused_");
        assert_eq!(answer.is_err(), refused, "{name}: {answer:?}");
    }
}
