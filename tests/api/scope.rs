//! What a credential reaches that is bound to workflows, and which name a request is given.

use curfew::api::body::{self, name_in};
use curfew::api::routes::Route;
use curfew::api::scope;
use curfew::api::start::StartBody;
use curfew::definition::snapshot::{DocumentKind, Reference};
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::caller::{Caller, WorkflowScope};
use serde_json::json;

fn orders() -> WorkflowScope {
    WorkflowScope::new(vec!["order-*".into()]).expect("valid")
}

#[test]
fn routes_of_other_workflows_and_of_all_workflows_are_refused() {
    for (method, path, is_reached) in [
        ("PUT", "/v1/workflows/order-eu", true),
        ("PUT", "/v1/workflows/refund", false),
        ("GET", "/v1/workflows/order-eu", true),
        ("GET", "/v1/workflows/refund", false),
        ("GET", "/v1/workflows", true),
        ("POST", "/v1/workflows/order-eu/runs", true),
        ("POST", "/v1/workflows/refund/runs", false),
        // An id that fits a pattern is not a workflow.
        ("GET", "/v1/tasks/order-eu", false),
        ("PUT", "/v1/tasks/order-eu", false),
        ("GET", "/v1/tasks", false),
        ("GET", "/v1/actions/order-eu", false),
        ("PUT", "/v1/actions/order-eu", false),
        ("GET", "/v1/actions", false),
        ("GET", "/v1/breakers", false),
        ("POST", "/v1/breakers/order-eu/reset", false),
        ("GET", "/healthz", true),
        ("POST", "/v1/callbacks/a~t1~1~f", true),
        // Decided later: by the run's object, by the list, by the workflows that the event starts.
        ("GET", "/v1/runs/refund", true),
        ("POST", "/v1/runs/refund/cancel", true),
        ("GET", "/v1/runs", true),
        ("GET", "/v1/gates", true),
        ("POST", "/v1/events/refund", true),
    ] {
        let route = Route::parse(method, path).expect(path);
        assert_eq!(
            scope::check_route(&route, &WorkflowScope::UNLIMITED),
            Ok(()),
            "{path}"
        );
        let checked = scope::check_route(&route, &orders());
        assert_eq!(checked.is_ok(), is_reached, "{method} {path}");
        if let Err(error) = checked {
            assert_eq!((error.status, error.code), (403, "forbidden"), "{path}");
        }
    }
}

#[test]
fn a_run_is_reached_by_its_workflow() {
    let bound = Caller {
        name: Some("ada".into()),
        workflows: orders(),
    };
    assert_eq!(scope::check_run(Some(&bound), "order-eu"), Ok(()));
    assert_eq!(scope::check_run(Some(&Caller::ANONYMOUS), "refund"), Ok(()));
    assert_eq!(scope::check_run(None, "refund"), Ok(()), "from inside");
    let error = scope::check_run(Some(&bound), "refund").expect_err("refused");
    assert_eq!((error.status, error.code), (403, "forbidden"));
    assert!(!error.message.contains("refund"), "{}", error.message);
}

#[test]
fn an_event_is_published_if_all_its_workflows_are_reached() {
    let workflows = |ids: &[&str]| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    for (ids, is_reached) in [
        (&[][..], true),
        (&["order-eu", "order-us"], true),
        (&["order-eu", "refund"], false),
        (&["refund"], false),
    ] {
        let checked = scope::check_event("paid", &workflows(ids), &orders());
        assert_eq!(checked.is_ok(), is_reached, "{ids:?}");
        assert_eq!(
            scope::check_event("paid", &workflows(ids), &WorkflowScope::UNLIMITED),
            Ok(())
        );
    }
}

#[test]
fn a_document_may_call_workflows_that_are_reached_and_use_any_task() {
    let reference = |kind, id: &str| Reference {
        kind,
        id: id.into(),
        version: None,
    };
    let uses = [
        reference(DocumentKind::Tasks, "refund"),
        reference(DocumentKind::Actions, "refund"),
        reference(DocumentKind::Workflows, "order-eu"),
    ];
    assert_eq!(scope::check_references(&uses, &orders()), Ok(()));
    let calls = [reference(DocumentKind::Workflows, "refund")];
    let error = scope::check_references(&calls, &orders()).expect_err("refused");
    assert_eq!((error.status, error.code), (403, "forbidden"));
    assert_eq!(scope::check_references(&calls, &WorkflowScope::UNLIMITED), Ok(()));
}

#[test]
fn bodies_that_name_their_sender() {
    let name = Some("ada".to_string());
    for (path, body, expected) in [
        ("/v1/runs/r/cancel", json!({"by": "ada", "reason": "x"}), &name),
        ("/v1/runs/r/pause", json!({"by": "ada"}), &name),
        ("/v1/runs/r/resume", json!({"by": "ada"}), &name),
        (
            "/v1/runs/r/retry",
            json!({"by": "ada", "mode": "escalate"}),
            &name,
        ),
        ("/v1/runs/r/restart", json!({"by": "ada"}), &name),
        (
            "/v1/runs/r/gates/g1",
            json!({"by": "ada", "choice": "yes"}),
            &name,
        ),
        ("/v1/workflows/w/runs", json!({"by": "ada"}), &name),
        ("/v1/breakers/b/reset", json!({"by": "ada"}), &name),
        ("/v1/runs/r/cancel", json!({}), &None),
        // A duration, and free bodies.
        ("/v1/runs/r/extend", json!({"by": "1m"}), &None),
        ("/v1/runs/r/signals/s", json!({"by": "ada"}), &None),
        ("/v1/events/e", json!({"by": "ada"}), &None),
        ("/v1/callbacks/c", json!({"by": "ada"}), &None),
    ] {
        let route = Route::parse("POST", path).expect(path);
        let read = body::read(&route, body.to_string().as_bytes()).expect(path);
        assert_eq!(name_in(&route, &read), *expected, "{path}");
    }
    let route = Route::parse("PUT", "/v1/workflows/w").expect("a route");
    assert_eq!(name_in(&route, &json!({"by": "ada"})), None);
}

#[test]
fn an_invalid_name_is_refused_even_where_it_would_not_count() {
    for name in [
        json!(5),
        json!(""),
        json!("  "),
        json!("a\nb"),
        json!("a".repeat(257)),
    ] {
        for (path, mut body) in [
            ("/v1/runs/r/cancel", json!({})),
            ("/v1/runs/r/pause", json!({})),
            ("/v1/runs/r/retry", json!({"mode": "escalate"})),
            ("/v1/runs/r/restart", json!({})),
            ("/v1/runs/r/gates/g1", json!({"choice": "yes"})),
            ("/v1/breakers/b/reset", json!({})),
        ] {
            body["by"] = name.clone();
            let route = Route::parse("POST", path).expect(path);
            let error = body::read(&route, body.to_string().as_bytes()).expect_err(path);
            assert_eq!(error.pointer.as_deref(), Some("/by"), "{path} {name}");
        }
        let start = StartBody::read(&json!({"by": name}), &TimeoutRules::default());
        assert_eq!(start.expect_err("refused").pointer.as_deref(), Some("/by"));
    }
}
