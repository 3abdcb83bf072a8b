//! Routing: a method and a path in, a `Route` or a 404 or 405 out; and the rules of each route. Pure.

use crate::api::auth::Role;
use crate::api::control::Control;
use crate::api::error::Error;
use crate::api::run_filter;
use crate::base::ids;
use crate::definition::snapshot::DocumentKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Health,
    /// The OpenAPI document.
    ReadContract,
    /// The JSON Schema of documents.
    ReadSchema {
        kind: DocumentKind,
    },
    /// For Prometheus.
    Metrics,
    /// What the credential of the request may do.
    ReadIdentity,
    PutDocument {
        kind: DocumentKind,
        id: String,
    },
    ReadDocument {
        kind: DocumentKind,
        id: String,
    },
    ListDocuments {
        kind: DocumentKind,
    },
    StartRun {
        workflow: String,
    },
    /// What will go wrong, and what a run can take at most.
    AnalyzeWorkflow {
        workflow: String,
    },
    /// Starts several runs.
    StartBatch,
    /// Runs a workflow in virtual time. Nothing is stored.
    Simulate,
    ListRuns,
    /// Changes several runs in the background.
    StartOperation {
        control: Control,
    },
    ReadOperation {
        id: String,
    },
    ReadRun {
        run: String,
    },
    ListTokens {
        run: String,
    },
    ListEvents {
        run: String,
    },
    /// Events as they are committed.
    WatchRun {
        run: String,
    },
    ListTimeouts {
        run: String,
    },
    ListNotifications {
        run: String,
    },
    ReadTimeout {
        run: String,
        id: u64,
    },
    ReadDeliverable {
        run: String,
    },
    /// The ways in which an ended run can go on.
    ReadResumeOptions {
        run: String,
    },
    /// The run with its history, for tests, what-if and reports.
    ExportRun {
        run: String,
    },
    /// The recorded run once more, with changes. Nothing is stored.
    WhatIf {
        run: String,
    },
    ListGates,
    /// Starts every workflow that the event triggers.
    PublishEvent {
        name: String,
    },
    /// The result of an async action. The capability is the credential.
    Callback {
        capability: String,
    },
    ListBreakers,
    ResetBreaker {
        key: String,
    },
    /// Changes a run.
    Control {
        run: String,
        control: Control,
    },
}

/// What a route requires of a request.
#[derive(Clone, Copy, Debug)]
pub struct RouteRules<'a> {
    /// `None`: no credential is required.
    pub role: Option<Role>,
    pub body: BodyRule<'a>,
    /// The query parameters; `None`: any are accepted and ignored.
    pub parameters: Option<&'static [&'static str]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule<'a> {
    /// The body is not read.
    Ignored,
    /// `{}`, or with the name of the sender.
    Empty,
    Document {
        id: &'a str,
    },
    Start,
    /// See `analyze`.
    Analyze {
        id: &'a str,
    },
    Batch,
    Simulate,
    WhatIf,
    /// See `bulk`.
    Bulk(&'a Control),
    /// Any JSON.
    Payload,
    /// Any JSON: the capability was checked before.
    CallbackResult,
    /// See `control::check`.
    Control(&'a Control),
}

impl BodyRule<'_> {
    pub fn is_read(self) -> bool {
        self != BodyRule::Ignored
    }
}

impl Route {
    /// The one table of what each route requires and accepts.
    pub fn rules(&self) -> RouteRules<'_> {
        let rules = |role, body, parameters| RouteRules {
            role,
            body,
            parameters: Some(parameters),
        };
        const NONE: &[&str] = &[];
        const PAGE: &[&str] = &["limit", "cursor"];
        const WAIT: &[&str] = &["wait_ms"];
        const HISTORY: &[&str] = &["after", "limit", "cursor"];
        let (read, start, admin) = (Some(Role::Read), Some(Role::Start), Some(Role::Admin));
        match self {
            Route::Health | Route::ReadContract | Route::ReadSchema { .. } => {
                rules(None, BodyRule::Ignored, NONE)
            }
            Route::Metrics | Route::ReadIdentity => rules(read, BodyRule::Ignored, NONE),
            Route::PutDocument { id, .. } => rules(admin, BodyRule::Document { id }, NONE),
            Route::ReadDocument { .. } => rules(read, BodyRule::Ignored, &["version"]),
            Route::ListDocuments { .. } => rules(read, BodyRule::Ignored, PAGE),
            Route::StartRun { .. } => rules(start, BodyRule::Start, WAIT),
            Route::AnalyzeWorkflow { workflow } => {
                rules(read, BodyRule::Analyze { id: workflow }, &["version"])
            }
            Route::StartBatch => rules(start, BodyRule::Batch, NONE),
            Route::Simulate => rules(read, BodyRule::Simulate, NONE),
            Route::StartOperation { control } => rules(Some(control.role()), BodyRule::Bulk(control), NONE),
            Route::ReadOperation { .. } => rules(read, BodyRule::Ignored, NONE),
            Route::ListRuns => rules(read, BodyRule::Ignored, run_filter::PARAMETERS),
            Route::ReadRun { .. } => rules(read, BodyRule::Ignored, WAIT),
            Route::ListTokens { .. } | Route::ListNotifications { .. } => {
                rules(read, BodyRule::Ignored, PAGE)
            }
            Route::ListEvents { .. } | Route::ListTimeouts { .. } => rules(read, BodyRule::Ignored, HISTORY),
            Route::WatchRun { .. } => rules(read, BodyRule::Ignored, &["after", "kinds"]),
            Route::ReadTimeout { .. } => rules(read, BodyRule::Ignored, NONE),
            Route::ReadDeliverable { .. } | Route::ReadResumeOptions { .. } => {
                rules(read, BodyRule::Ignored, NONE)
            }
            Route::ExportRun { .. } => rules(read, BodyRule::Ignored, &["redact"]),
            Route::WhatIf { .. } => rules(read, BodyRule::WhatIf, NONE),
            Route::ListGates => rules(read, BodyRule::Ignored, &["run", "limit", "cursor"]),
            Route::PublishEvent { .. } => rules(start, BodyRule::Payload, NONE),
            Route::Callback { .. } => RouteRules {
                role: None,
                body: BodyRule::CallbackResult,
                parameters: None,
            },
            Route::ListBreakers => rules(read, BodyRule::Ignored, PAGE),
            Route::ResetBreaker { .. } => rules(admin, BodyRule::Empty, NONE),
            Route::Control { control, .. } => rules(Some(control.role()), BodyRule::Control(control), NONE),
        }
    }

    /// The path of a request for this route, as it may be logged.
    pub fn path_without_secrets<'a>(&self, path: &'a str) -> &'a str {
        match matches!(self, Route::Callback { .. }) {
            true => "/v1/callbacks/{capability}",
            false => path,
        }
    }

    /// HEAD is GET; the platform sends no body for it.
    pub fn parse(requested: &str, path: &str) -> Result<Route, Error> {
        let method = if requested == "HEAD" { "GET" } else { requested };
        // A URL drops a segment `.` or `%2e`, so that one with a slash at its end may name a run of that id. No path ends with one.
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let allowed: &[&str] = match segments.as_slice() {
            ["healthz"] => match method {
                "GET" => return Ok(Route::Health),
                _ => &["GET"],
            },
            ["openapi.json"] => match method {
                "GET" => return Ok(Route::ReadContract),
                _ => &["GET"],
            },
            ["schema", file] if schema_of(file).is_some() => match (method, schema_of(file)) {
                ("GET", Some(kind)) => return Ok(Route::ReadSchema { kind }),
                _ => &["GET"],
            },
            ["metrics"] => match method {
                "GET" => return Ok(Route::Metrics),
                _ => &["GET"],
            },
            ["v1", "me"] => match method {
                "GET" => return Ok(Route::ReadIdentity),
                _ => &["GET"],
            },
            ["v1", "runs"] => match method {
                "GET" => return Ok(Route::ListRuns),
                _ => &["GET"],
            },
            ["v1", "runs", run] => match method {
                "GET" => return Ok(Route::ReadRun { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "tokens"] => match method {
                "GET" => return Ok(Route::ListTokens { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "events"] => match method {
                "GET" => return Ok(Route::ListEvents { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "live"] => match method {
                "GET" => return Ok(Route::WatchRun { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "timeouts"] => match method {
                "GET" => return Ok(Route::ListTimeouts { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "notifications"] => match method {
                "GET" => return Ok(Route::ListNotifications { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "timeouts", id] => match (method, id.parse()) {
                ("GET", Ok(id)) => {
                    return Ok(Route::ReadTimeout {
                        run: run_id(run)?,
                        id,
                    });
                }
                ("GET", Err(_)) => return Err(Error::not_found("the timeout")),
                _ => &["GET"],
            },
            ["v1", "runs", run, "deliverable"] => match method {
                "GET" => return Ok(Route::ReadDeliverable { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "export"] => match method {
                "GET" => return Ok(Route::ExportRun { run: run_id(run)? }),
                _ => &["GET"],
            },
            ["v1", "runs", run, "what-if"] => match method {
                "POST" => return Ok(Route::WhatIf { run: run_id(run)? }),
                _ => &["POST"],
            },
            ["v1", "runs", run, "resume"] if method == "GET" => {
                return Ok(Route::ReadResumeOptions { run: run_id(run)? });
            }
            ["v1", runs] if route_of_many(runs).is_some() => match (method, route_of_many(runs)) {
                ("POST", Some(route)) => return Ok(route),
                _ => &["POST"],
            },
            ["v1", "operations", id] => match method {
                "GET" => return Ok(Route::ReadOperation { id: run_id(id)? }),
                _ => &["GET"],
            },
            ["v1", "callbacks", capability] => match method {
                "POST" => {
                    return Ok(Route::Callback {
                        capability: with_tildes(capability),
                    });
                }
                _ => &["POST"],
            },
            ["v1", "events", name] => match method {
                "POST" => {
                    return Ok(Route::PublishEvent {
                        name: event_name(name)?,
                    });
                }
                _ => &["POST"],
            },
            ["v1", "simulate"] => match method {
                "POST" => return Ok(Route::Simulate),
                _ => &["POST"],
            },
            ["v1", "gates"] => match method {
                "GET" => return Ok(Route::ListGates),
                _ => &["GET"],
            },
            ["v1", "breakers"] => match method {
                "GET" => return Ok(Route::ListBreakers),
                _ => &["GET"],
            },
            ["v1", "breakers", key, "reset"] => match method {
                "POST" => {
                    return Ok(Route::ResetBreaker {
                        key: breaker_key(key)?,
                    });
                }
                _ => &["POST"],
            },
            ["v1", "runs", run, name] if Control::named(name).is_some() => {
                match (method, Control::named(name)) {
                    ("POST", Some(control)) => {
                        return Ok(Route::Control {
                            run: run_id(run)?,
                            control,
                        });
                    }
                    _ if *name == "resume" => &["GET", "POST"],
                    _ => &["POST"],
                }
            }
            ["v1", "runs", run, kind @ ("signals" | "gates"), name] => match method {
                "POST" => {
                    let name = signal_or_gate(name)?;
                    let control = match *kind {
                        "signals" => Control::Signal { name },
                        _gates => Control::Gate { id: name },
                    };
                    return Ok(Route::Control {
                        run: run_id(run)?,
                        control,
                    });
                }
                _ => &["POST"],
            },
            ["v1", "workflows", id, "runs"] => match method {
                "POST" => {
                    return Ok(Route::StartRun {
                        workflow: document_id(id)?,
                    });
                }
                _ => &["POST"],
            },
            ["v1", "workflows", id, "analyze"] => match method {
                "POST" => {
                    return Ok(Route::AnalyzeWorkflow {
                        workflow: document_id(id)?,
                    });
                }
                _ => &["POST"],
            },
            ["v1", kind] if DocumentKind::parse(kind).is_some() => {
                match (method, DocumentKind::parse(kind)) {
                    ("GET", Some(kind)) => return Ok(Route::ListDocuments { kind }),
                    _ => &["GET"],
                }
            }
            ["v1", kind, id] if DocumentKind::parse(kind).is_some() => {
                match (method, DocumentKind::parse(kind)) {
                    ("GET", Some(kind)) => {
                        return Ok(Route::ReadDocument {
                            kind,
                            id: document_id(id)?,
                        });
                    }
                    ("PUT", Some(kind)) => {
                        return Ok(Route::PutDocument {
                            kind,
                            id: document_id(id)?,
                        });
                    }
                    _ => &["GET", "PUT"],
                }
            }
            _ => {
                return Err(Error::new(
                    404,
                    "not_found",
                    format!("nothing is at {requested} {path}"),
                ));
            }
        };
        Err(Error::new(
            405,
            "method_not_allowed",
            format!("{path} takes {}, not {requested}", allowed.join(" and ")),
        )
        .with_header("allow", allowed.join(", ")))
    }
}

/// The kind whose schema has this file name.
fn schema_of(file: &str) -> Option<DocumentKind> {
    let name = file.strip_suffix(".json")?;
    DocumentKind::parse(&format!("{name}s"))
}

/// The last part of `runs:cancel`. Some clients percent-encode the `:`.
fn route_of_many(segment: &str) -> Option<Route> {
    let verb = segment.strip_prefix("runs")?;
    let verb = [":", "%3A", "%3a"]
        .iter()
        .find_map(|colon| verb.strip_prefix(colon))?;
    match verb {
        "batch" => Some(Route::StartBatch),
        control => Control::named_for_many(control).map(|control| Route::StartOperation { control }),
    }
}

fn run_id(text: &str) -> Result<String, Error> {
    let id = with_tildes(text);
    match ids::is_any_run_id(&id) {
        true => Ok(id),
        false => Err(Error::bad_request(ids::RUN_ID_RULE)),
    }
}

/// Ids of child runs contain a `~`, which some clients percent-encode in a path.
fn with_tildes(text: &str) -> String {
    text.replace("%7E", "~").replace("%7e", "~")
}

/// The name of a signal, or the id of a gate.
fn signal_or_gate(text: &str) -> Result<String, Error> {
    match ids::is_name(text) {
        true => Ok(text.to_string()),
        false => Err(Error::bad_request(ids::NAME_RULE)),
    }
}

/// Some clients percent-encode the `:` of a key.
fn breaker_key(text: &str) -> Result<String, Error> {
    let key = text.replace("%3A", ":").replace("%3a", ":");
    match ids::is_breaker_key(&key) {
        true => Ok(key),
        false => Err(Error::bad_request(ids::BREAKER_KEY_RULE)),
    }
}

fn event_name(text: &str) -> Result<String, Error> {
    if ids::is_name(text) {
        return Ok(text.to_string());
    }
    Err(Error::bad_request(ids::EVENT_NAME_RULE))
}

fn document_id(text: &str) -> Result<String, Error> {
    if ids::is_id(text) {
        return Ok(text.to_string());
    }
    Err(Error::bad_request(ids::ID_RULE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for method in ["GET", "HEAD"] {
            assert_eq!(Route::parse(method, "/healthz"), Ok(Route::Health));
        }
        assert_eq!(
            Route::parse("PUT", "/v1/workflows/order"),
            Ok(Route::PutDocument {
                kind: DocumentKind::Workflows,
                id: "order".into()
            })
        );
        let name = "order.paid".to_string();
        assert_eq!(
            Route::parse("POST", "/v1/events/order.paid"),
            Ok(Route::PublishEvent { name })
        );
        for path in ["/v1/breakers/pay:eu/reset", "/v1/breakers/pay%3Aeu/reset"] {
            let key = "pay:eu".to_string();
            assert_eq!(Route::parse("POST", path), Ok(Route::ResetBreaker { key }));
        }
        for path in ["/v1/runs:cancel", "/v1/runs%3Acancel"] {
            let control = Control::Cancel;
            assert_eq!(Route::parse("POST", path), Ok(Route::StartOperation { control }));
        }
        assert_eq!(Route::parse("POST", "/v1/runs:batch"), Ok(Route::StartBatch));
        assert_eq!(Route::parse("POST", "/v1/simulate"), Ok(Route::Simulate));
        for path in ["/v1/runs/a.b~t1~2", "/v1/runs/a.b%7Et1%7e2"] {
            let run = "a.b~t1~2".to_string();
            assert_eq!(Route::parse("GET", path), Ok(Route::ReadRun { run }));
        }
        for path in ["/v1/callbacks/a~t1~t2~1~f", "/v1/callbacks/a%7Et1%7et2~1~f"] {
            let capability = "a~t1~t2~1~f".to_string();
            assert_eq!(Route::parse("POST", path), Ok(Route::Callback { capability }));
        }
        for (method, path, status) in [
            ("GET", "/v1/runs/.", 400),
            ("GET", "/v1/runs/..", 400),
            ("GET", "/v1/runs/~", 400),
            ("GET", "/v1/runs/a~", 400),
            ("GET", "/v1/runs/a~..", 400),
            ("POST", "/v1/runs/../cancel", 400),
            ("POST", "/v1/runs/a/signals/b~c", 400),
            ("GET", "/v1/runs/", 400),
            ("GET", "/v1/runs//", 404),
            ("GET", "/v1/runs/x/", 404),
            ("POST", "/v1/workflows/order/runs/", 404),
            ("PUT", "/v1/workflows/order/", 404),
            ("GET", "/healthz/", 404),
            ("GET", "//healthz", 404),
            ("GET", "/", 404),
            ("GET", "/v1/nothing", 404),
            ("POST", "/v1/runs/x/explode", 404),
            ("POST", "/v1/runs:explode", 404),
            ("POST", "/v1/runs:restart", 404),
            ("POST", "/v1/runs:", 404),
            ("POST", "/v1/runscancel", 404),
            ("GET", "/v1/runs:cancel", 405),
            ("GET", "/v1/runs:batch", 405),
            ("POST", "/v1/operations/x", 405),
            ("GET", "/v1/simulate", 405),
            ("GET", "/v1/operations", 404),
            ("DELETE", "/v1/runs/x", 405),
            ("HEAD", "/v1/events/order.paid", 405),
            ("GET", "/v1/breakers/pay/reset", 405),
            ("POST", "/v1/breakers", 405),
            ("GET", "/v1/events/order.paid", 405),
            ("POST", "/v1/events/order%20paid", 400),
            ("POST", "/v1/events", 404),
            ("POST", "/v1/breakers/a%20b/reset", 400),
            ("GET", "/v1/runs/x%20y", 400),
            ("PUT", "/v1/workflows/Upper", 400),
        ] {
            let error = Route::parse(method, path).expect_err(path);
            assert_eq!(error.status, status, "{method} {path}");
        }
    }

    #[test]
    fn a_405_lists_the_methods() {
        for (method, path, allow) in [
            ("DELETE", "/v1/runs/x", "GET"),
            ("OPTIONS", "/v1/runs/x/resume", "GET, POST"),
            ("POST", "/v1/workflows/order", "GET, PUT"),
        ] {
            let error = Route::parse(method, path).expect_err(path);
            assert_eq!(error.headers, [("allow", allow.to_string())], "{method} {path}");
        }
    }
}
