//! Bulk operations: what is read from a body, the pages of an operation, and what answers of runs count as.

use curfew::api::bulk::{Counts, ERRORS_MAX, Operation, PAGE_RUNS, Page, Selection};
use curfew::api::control::Control;
use curfew::api::error::Error;
use curfew::api::run_filter::Order;
use curfew::protocol::caller::{Caller, WorkflowScope};
use serde_json::{Value, json};

const NOW: u64 = 1_700_000_000_000;

fn read(body: Value) -> Result<Operation, Error> {
    Operation::read(&Control::Cancel, &body, Caller::ANONYMOUS, NOW)
}

fn filter(filter: Value) -> Vec<String> {
    let operation = read(json!({ "filter": filter })).unwrap_or_else(|error| panic!("{filter}: {error:?}"));
    match operation.runs {
        Selection::Filter(pairs) => pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
        Selection::Ids(ids) => panic!("{ids:?}"),
    }
}

#[test]
fn a_filter_selects_runs_of_the_past() {
    let now = format!("until={NOW}");
    assert_eq!(filter(json!({"all": true})), [now.as_str()]);
    assert_eq!(
        filter(json!({"status": ["failed", "timed_out"], "workflow": "order", "since": 5})),
        [
            "status=failed",
            "status=timed_out",
            "workflow=order",
            "since=5",
            &now
        ]
    );
    assert_eq!(
        filter(json!({"status": "failed,paused"})),
        ["status=failed,paused", &now]
    );
    assert_eq!(filter(json!({"until": 5})), ["until=5"]);
    assert_eq!(filter(json!({"until": NOW + 5})), [now]);
}

/// Each of these would select more runs than its sender thinks.
#[test]
fn a_filter_without_a_value_is_refused() {
    for (filter, status, pointer) in [
        (json!({}), 400, None),
        (json!({"all": false}), 400, None),
        (json!({"all": true, "tag": "a"}), 400, None),
        (json!({"all": null}), 400, None),
        (json!({"tag": null, "status": "failed"}), 422, Some("/filter/tag")),
        (json!({"tag": "", "status": "failed"}), 422, Some("/filter/tag")),
        (json!({"status": ",", "tag": "a"}), 422, Some("/filter/status")),
        (json!({"status": [], "tag": "a"}), 422, Some("/filter/status")),
        (json!({"tag": ["a"]}), 422, Some("/filter/tag")),
        (json!({"tag": true}), 422, Some("/filter/tag")),
        (json!({"tag": 5}), 422, Some("/filter/tag")),
        (json!({"workflow": 5}), 422, Some("/filter/workflow")),
        (json!({"parent": 1, "tag": "a"}), 422, Some("/filter/parent")),
        (json!({"id_prefix": 7}), 422, Some("/filter/id_prefix")),
        (
            json!({"status": ["running,waiting"]}),
            422,
            Some("/filter/status"),
        ),
        (json!({"status": "nope"}), 400, Some("/filter")),
        (json!({"since": "soon"}), 400, Some("/filter")),
        (json!({"limit": 5, "tag": "a"}), 400, Some("/filter/limit")),
        (json!([]), 422, Some("/filter")),
    ] {
        let error = read(json!({ "filter": filter })).expect_err("refused");
        assert_eq!(error.status, status, "{filter}: {error:?}");
        assert_eq!(error.pointer.as_deref(), pointer, "{filter}: {error:?}");
    }
}

#[test]
fn errors_lead_to_their_place_in_the_body() {
    let error = read(json!({"ids": ["a"], "with": {"zz": 1}})).expect_err("an unknown field");
    assert_eq!(error.pointer.as_deref(), Some("/with/zz"));
    assert!(
        error.message.starts_with("/with/zz: unknown field"),
        "{}",
        error.message
    );
    assert_eq!(error.details.expect("the problems")[0]["pointer"], "/with/zz");
    let error = Operation::read(&Control::Extend, &json!({"x": 1}), Caller::ANONYMOUS, NOW)
        .expect_err("an unknown field and nothing else");
    assert_eq!((error.status, error.pointer.as_deref()), (400, Some("/x")));
}

#[test]
fn ids_are_bounded_and_counted_once() {
    let ids = |count: usize| (0..count).map(|n| format!("r{n}")).collect::<Vec<_>>();
    let operation = read(json!({"ids": ["a", "b~t1", "a"]})).expect("valid");
    assert_eq!(operation.runs, Selection::Ids(vec!["a".into(), "b~t1".into()]));
    assert_eq!(operation.total(), Some(2));
    assert_eq!(
        read(json!({"ids": ids(1_000)})).expect("valid").total(),
        Some(1_000)
    );
    for (body, pointer) in [
        (json!({"ids": []}), "/ids"),
        (json!({"ids": ids(1_001)}), "/ids"),
        (json!({"ids": "a"}), "/ids"),
        (json!({"filter": {"status": "failed"}, "ids": null}), "/ids"),
        (json!({"filter": null, "ids": ["a"]}), "/filter"),
        (json!({"ids": ["a", 5]}), "/ids/1"),
        (json!({"ids": ["a", ".."]}), "/ids/1"),
        (json!({"ids": ["a"], "filter": {}}), "/filter"),
        (json!({"ids": ["a"], "with": 5}), "/with"),
        (json!({"ids": ["a"], "with": {"reason": 5}}), "/with/reason"),
    ] {
        let error = read(body.clone()).expect_err("refused");
        assert_eq!(
            (error.status, error.pointer.as_deref()),
            (422, Some(pointer)),
            "{body}"
        );
    }
}

#[test]
fn pages_of_ids() {
    let ids: Vec<String> = (0..PAGE_RUNS + 1).map(|n| format!("r{n}")).collect();
    let operation = read(json!({ "ids": ids })).expect("valid");
    let Ok(Page::Ids { ids: first, next }) = operation.page("") else {
        panic!("a page of ids");
    };
    assert_eq!((first.len(), next.as_deref()), (PAGE_RUNS, Some("25")));
    let last = Page::Ids {
        ids: vec!["r25".into()],
        next: None,
    };
    assert_eq!(operation.page("25"), Ok(last));
}

#[test]
fn pages_of_a_list_are_within_the_reach_of_the_caller() {
    let caller = Caller {
        name: Some("ada".into()),
        workflows: WorkflowScope::new(vec!["order-*".into()]).expect("valid"),
    };
    let read =
        |filter: Value| Operation::read(&Control::Pause, &json!({ "filter": filter }), caller.clone(), NOW);
    assert_eq!(
        read(json!({"workflow": "refund"})).expect_err("outside").status,
        403
    );
    let operation = read(json!({"id_prefix": "a"})).expect("valid");
    let Ok(Page::List(list)) = operation.page("id:ab") else {
        panic!("a page of a list");
    };
    assert_eq!((list.order, list.limit), (Order::ById, PAGE_RUNS as u64));
    assert_eq!(list.reached, caller.workflows);
    assert_eq!(list.filter.until, Some(NOW));
    assert_eq!(list.after.map(|after| after.id).as_deref(), Some("ab"));
}

#[test]
fn answers_are_counted() {
    let mut counts = Counts::default();
    let refusal = |code: &str| json!({"error": {"code": code, "message": "m".repeat(400)}}).to_string();
    counts.add("a", 200, "{}");
    for code in ["run_finished", "run_ending", "run_not_ended", "not_paused"] {
        counts.add("b", 409, &refusal(code));
    }
    counts.add("c", 409, &refusal("decision_needed"));
    counts.add("d", 500, "no JSON");
    assert_eq!((counts.done, counts.skipped, counts.failed), (1, 4, 2));
    assert_eq!(counts.errors[0]["code"], "decision_needed");
    assert_eq!(
        counts.errors[1],
        json!({"run_id": "d", "code": "internal", "message": ""})
    );
    for _ in 0..200 {
        counts.add("e", 404, &refusal("not_found"));
    }
    assert_eq!((counts.failed, counts.errors.len()), (202, ERRORS_MAX));
    assert!(json!(counts.errors).to_string().len() < 50_000);
}

/// What belongs to one run would be ignored, or would fit only some of the runs.
#[test]
fn a_token_or_a_version_is_refused_in_a_retry_of_many_runs() {
    let retry = |with: Value| {
        let body = json!({"ids": ["a"], "with": with});
        Operation::read(&Control::Retry, &body, Caller::ANONYMOUS, NOW)
    };
    assert!(retry(json!({"mode": "retry_step"})).is_ok());
    for (field, value) in [("token_id", json!("t1")), ("version", json!(2))] {
        let mut with = json!({"mode": "retry_step"});
        with[field] = value;
        let error = retry(with).expect_err("refused");
        assert_eq!(error.pointer, Some(format!("/with/{field}")), "{error:?}");
    }
}
