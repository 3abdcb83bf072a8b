//! Lists of runs: from a query to its statements, and from their rows to a page.

use curfew::api::run_filter::{Order, PARAMETERS, Position, RunList};
use curfew::index::run_query::{Binding, Row, Statement};
use curfew::protocol::caller::WorkflowScope;
use curfew::run::RunStatus;

fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn list(query: &str) -> RunList {
    RunList::read(&pairs(query)).expect(query)
}

/// For queries with a single statement.
fn statement(query: &str) -> Statement {
    let mut statements = list(query).query().statements;
    assert_eq!(statements.len(), 1, "{query}");
    statements.remove(0)
}

fn sql(query: &str) -> String {
    statement(query).sql
}

fn refusal(query: &str) -> String {
    let error = RunList::read(&pairs(query)).expect_err(query);
    assert_eq!((error.status, error.code), (400, "invalid_request"), "{query}");
    error.message
}

/// The exhaustive match fails to compile when a status is added.
fn next(status: RunStatus) -> Option<RunStatus> {
    match status {
        RunStatus::Running => Some(RunStatus::Waiting),
        RunStatus::Waiting => Some(RunStatus::Paused),
        RunStatus::Paused => Some(RunStatus::Compensating),
        RunStatus::Compensating => Some(RunStatus::Completed),
        RunStatus::Completed => Some(RunStatus::Failed),
        RunStatus::Failed => Some(RunStatus::TimedOut),
        RunStatus::TimedOut => Some(RunStatus::Cancelled),
        RunStatus::Cancelled => None,
    }
}

/// The list of a workflow is merged from all statuses, so that none may be missing.
#[test]
fn all_statuses_are_listed() {
    let all: Vec<RunStatus> =
        std::iter::successors(Some(RunStatus::Running), |status| next(*status)).collect();
    assert_eq!(all, RunStatus::ALL);
    for status in all {
        assert_eq!(serde_json::json!(status), status.name());
    }
}

#[test]
fn a_query_is_parsed() {
    let read = list(
        "status=failed,running&status=failed&workflow=order&tag=a%20b&since=5&until=9&parent=p~t1&id_prefix=x.&limit=7\
         &sort=started&cursor=started:8:x.1",
    );
    let statuses: Vec<RunStatus> = read.filter.statuses.iter().copied().collect();
    assert_eq!(statuses, [RunStatus::Running, RunStatus::Failed]);
    assert_eq!(read.filter.workflow.as_deref(), Some("order"));
    assert_eq!(read.filter.tag.as_deref(), Some("a b"));
    assert_eq!((read.filter.since, read.filter.until), (Some(5), Some(9)));
    assert_eq!(read.filter.parent.as_deref(), Some("p~t1"));
    assert_eq!(read.filter.id_prefix.as_deref(), Some("x."));
    assert_eq!((read.order, read.limit), (Order::NewestFirst, 7));
    let after = Position {
        at: 8,
        id: "x.1".into(),
    };
    assert_eq!(read.after, Some(after));
    let nothing = list("status=&workflow=&tag=&limit=&cursor=&sort=&since=");
    assert_eq!(nothing, list(""));
    assert_eq!((nothing.order, nothing.limit), (Order::NewestFirst, 100));
    assert_eq!(list("id_prefix=x").order, Order::ById);
    assert_eq!(list("workflow=a&workflow=a"), list("workflow=a"));
}

#[test]
fn a_bad_value_is_refused_by_name() {
    for (name, values) in [
        ("status", &["sleepy", "running,sleepy", "Running"][..]),
        ("workflow", &["Upper", "a b", "a&workflow=b"]),
        (
            "tag",
            &["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        ),
        (
            "since",
            &[
                "yesterday",
                "-1",
                "1.5",
                "9007199254740992",
                "99999999999999999999999",
            ],
        ),
        ("until", &["tomorrow", "1&until=2"]),
        ("parent", &["a/b", "a%00"]),
        ("id_prefix", &["a%25", "a b", "%C3%9F"]),
        ("sort", &["ended", "started&sort=remaining"]),
        ("limit", &["0", "1001", "many", "-1"]),
        (
            "cursor",
            &[
                "nonsense",
                "started:1",
                "started:x:a",
                "started:1:",
                "remaining:1:a",
                "id:a",
                "gates:1:a:g1",
                "started:1:a/b",
            ],
        ),
    ] {
        assert!(PARAMETERS.contains(&name));
        for value in values {
            let message = refusal(&format!("{name}={value}"));
            assert!(message.contains(name), "{name}={value}: {message}");
        }
    }
    for other in [
        "sort=remaining&cursor=started:1:a",
        "id_prefix=a&cursor=started:1:a",
        "cursor=id:a",
    ] {
        assert!(refusal(other).contains("cursor"), "{other}");
    }
}

#[test]
fn each_filter_is_driven_by_its_index() {
    for (query, index) in [
        ("", "runs_by_started"),
        ("since=1", "runs_by_started"),
        ("until=1", "runs_by_started"),
        ("status=failed", "runs_by_status"),
        ("workflow=a", "runs_by_workflow"),
        ("workflow=a&status=failed", "runs_by_workflow"),
        ("parent=p", "runs_by_parent"),
        ("sort=remaining", "runs_by_deadline"),
        ("tag=t", "run_tags.tag = ?1"),
        ("id_prefix=x", "runs.id >= ?1 AND runs.id < ?2"),
    ] {
        let query_of = list(query).query();
        for Statement { sql, .. } in query_of.statements {
            assert!(sql.contains(index), "{query}: {sql}");
            assert!(!sql.contains("CASE"), "{query}: {sql}");
        }
        assert_eq!(query_of.rows, 101, "{query}");
    }
}

#[test]
fn statuses_are_merged() {
    let merged = statement("status=failed,running");
    assert_eq!(
        merged.sql,
        "SELECT runs.id AS id, runs.started_at AS at, runs.summary AS summary FROM runs INDEXED BY runs_by_status \
         WHERE runs.status = ?1 AND true UNION ALL \
         SELECT runs.id AS id, runs.started_at AS at, runs.summary AS summary FROM runs INDEXED BY runs_by_status \
         WHERE runs.status = ?2 AND true ORDER BY at DESC, id DESC LIMIT ?3"
    );
    let bound = [
        Binding::Text("running".into()),
        Binding::Text("failed".into()),
        Binding::Number(101),
    ];
    assert_eq!(merged.bindings, bound);
    // D1 merges at most five selects.
    let all = list("workflow=a").query().statements;
    let selects: Vec<usize> = all.iter().map(|it| it.sql.matches("SELECT").count()).collect();
    assert_eq!(selects, [5, 3]);
    let five = statement("status=failed,running,waiting,paused,completed");
    assert_eq!(five.sql.matches("UNION ALL").count(), 4);
}

#[test]
fn a_combination_of_filters_examines_a_limited_number_of_rows() {
    for query in [
        "workflow=a&tag=t",
        "tag=t&status=failed",
        "parent=p&status=failed",
        "id_prefix=x&status=failed",
        "id_prefix=x&sort=started",
        "sort=remaining&workflow=a",
        "sort=remaining&tag=t",
        "sort=remaining&since=1",
        "workflow=a&status=failed&tag=t",
    ] {
        for limit in [1, 1_000] {
            let query_of = list(&format!("{query}&limit={limit}")).query();
            assert_eq!(query_of.rows, 450, "{query}");
            assert!(
                query_of.statements.iter().all(|it| it.sql.contains("CASE WHEN")),
                "{query}"
            );
        }
    }
    // A range of starts is part of the index.
    for query in [
        "since=1&until=2",
        "workflow=a&since=1",
        "status=failed&until=5",
        "parent=p&since=1",
        "tag=t&until=4",
    ] {
        let query_of = |limit: u64| list(&format!("{query}&limit={limit}")).query();
        assert!(
            !query_of(1).statements.iter().any(|it| it.sql.contains("CASE")),
            "{query}"
        );
        assert_eq!((query_of(10).rows, query_of(1_000).rows), (11, 450), "{query}");
    }
}

#[test]
fn an_index_is_entered_with_one_bound() {
    let entered = sql("until=5&cursor=started:4:a");
    assert!(
        entered.contains("(runs.started_at, runs.id) < (?1, ?2)") && !entered.contains("<="),
        "{entered}"
    );
    let entered = sql("until=5&cursor=started:6:a");
    assert!(
        entered.contains("runs.started_at <= ?1") && !entered.contains("("),
        "{entered}"
    );
    let entered = sql("id_prefix=x&cursor=id:x5");
    assert!(entered.contains("runs.id > ?1 AND runs.id < ?2"), "{entered}");
    // A cursor before the prefix has no effect.
    assert!(sql("id_prefix=x&cursor=id:a").contains("runs.id >= ?1"));
}

fn row(at: u64, id: &str, is_shown: bool) -> Row {
    Row {
        id: id.into(),
        at,
        summary: is_shown.then(|| id.to_string()),
        workflow_id: None,
    }
}

#[test]
fn the_cursor_points_to_the_last_row_of_the_page() {
    let of_two = list("limit=2");
    let rows = |count: usize| {
        ["a", "b", "c"][..count]
            .iter()
            .map(|id| row(9, id, true))
            .collect::<Vec<_>>()
    };
    assert_eq!(of_two.page(rows(0), 3), (vec![], None));
    assert_eq!(of_two.page(rows(2), 3), (vec!["b".into(), "a".into()], None));
    let cursor = Some("started:9:b".to_string());
    assert_eq!(of_two.page(rows(3), 3), (vec!["c".into(), "b".into()], cursor));
}

#[test]
fn rows_of_several_statements_are_merged_into_one_page() {
    let merged = list("limit=2&workflow=a");
    let rows = vec![
        row(9, "a", true),
        row(5, "d", true),
        row(4, "e", true),
        row(9, "b", true),
        row(7, "c", true),
    ];
    let cursor = Some("started:9:a".to_string());
    assert_eq!(merged.page(rows, 3), (vec!["b".into(), "a".into()], cursor));
    let soonest = list("limit=2&sort=remaining");
    let rows = vec![row(4, "b", true), row(4, "c", true), row(6, "a", true)];
    assert_eq!(
        soonest.page(rows, 3),
        (vec!["b".into(), "c".into()], Some("remaining:4:c".into()))
    );
}

#[test]
fn a_short_page_continues_after_the_last_examined_row() {
    let combined = list("limit=2&workflow=a&tag=t");
    let examined = |shown: [bool; 4]| {
        let ids = ["d", "c", "b", "a"];
        ids.into_iter()
            .zip(shown)
            .map(|(id, shown)| row(9, id, shown))
            .collect::<Vec<_>>()
    };
    let next = |at: &str| Some(format!("started:9:{at}"));
    // The limit of examined rows is reached: there may be more.
    assert_eq!(combined.page(examined([false; 4]), 4), (vec![], next("a")));
    let one = combined.page(examined([false, true, false, false]), 4);
    assert_eq!(one, (vec!["c".into()], next("a")));
    // The page is full before the last examined row: the rest is examined again for the next page.
    let full = combined.page(examined([true, false, true, true]), 4);
    assert_eq!(full, (vec!["d".into(), "b".into()], next("b")));
    let full = combined.page(examined([true, true, false, false]), 5);
    assert_eq!(full, (vec!["d".into(), "c".into()], next("c")));
    // Fewer rows than the limit: the list ends.
    let all = combined.page(examined([false, true, false, true]), 5);
    assert_eq!(all, (vec!["c".into(), "a".into()], None));
}

fn reaching(patterns: &[&str]) -> WorkflowScope {
    WorkflowScope::new(patterns.iter().map(|it| it.to_string()).collect()).expect("valid")
}

#[test]
fn a_filter_by_a_workflow_that_is_not_reached_is_refused() {
    let error = list("workflow=refund").within(&reaching(&["order-*"]));
    let error = error.expect_err("refused");
    assert_eq!((error.status, error.code), (403, "forbidden"));
    // One that is reached is the same list as for all others.
    for query in ["workflow=order-eu", "workflow=order-eu&status=failed&tag=t"] {
        let bound = list(query).within(&reaching(&["order-*"])).expect(query);
        assert_eq!(bound.query(), list(query).query());
    }
    for query in ["", "workflow=refund", "tag=t"] {
        let all = list(query).within(&WorkflowScope::UNLIMITED).expect(query);
        assert_eq!(all.query(), list(query).query());
    }
}

#[test]
fn who_reaches_one_workflow_lists_its_runs_by_their_index() {
    let bound = list("status=failed").within(&reaching(&["refund"]));
    assert_eq!(
        bound.expect("a list").query(),
        list("workflow=refund&status=failed").query()
    );
}

#[test]
fn who_reaches_some_workflows_examines_a_bounded_number_of_runs() {
    for query in [
        "",
        "limit=1000",
        "tag=t",
        "status=failed,paused",
        "parent=p",
        "since=5",
        "id_prefix=x",
        "sort=remaining",
        "tag=t&status=failed",
    ] {
        let bound = list(query)
            .within(&reaching(&["order-*", "refund"]))
            .expect(query);
        let found = bound.query();
        assert_eq!(found.rows, 450, "{query}");
        for statement in &found.statements {
            let selects = statement.sql.matches("SELECT runs.id AS id").count()
                + statement.sql.matches("SELECT run_tags.run_id AS id").count();
            let shown = statement
                .sql
                .matches(" AS summary, runs.workflow_id AS workflow_id FROM")
                .count();
            assert_eq!((shown, selects > 0), (selects, true), "{}", statement.sql);
        }
    }
}

#[test]
fn the_statements_of_a_page_share_the_rows_that_they_examine() {
    let every = RunStatus::ALL.map(RunStatus::name).join(",");
    let bound = list(&format!("status={every}")).within(&reaching(&["order-*"]));
    let found = bound.expect("a list").query();
    assert_eq!((found.statements.len(), found.rows), (2, 225));
    let combined = list(&format!("status={every}&id_prefix=x&sort=started")).query();
    assert_eq!((combined.statements.len(), combined.rows), (2, 225));
}

#[test]
fn runs_of_other_workflows_are_left_out_of_a_page() {
    let bound = list("limit=2").within(&reaching(&["order-*"])).expect("a list");
    let of = |id: &str, workflow: Option<&str>| Row {
        workflow_id: workflow.map(str::to_string),
        ..row(9, id, true)
    };
    let rows = vec![
        of("e", Some("refund")),
        of("d", Some("order-eu")),
        of("c", None),
        of("b", Some("order-us")),
        of("a", Some("order-us")),
    ];
    let (shown, next) = bound.page(rows.clone(), 450);
    assert_eq!(shown, ["d", "b"]);
    assert_eq!(next.as_deref(), Some("started:9:b"));
    // The limit of examined rows: the page is short, and the list goes on.
    let (shown, next) = bound.page(rows[..3].to_vec(), 3);
    assert_eq!(
        (shown, next.as_deref()),
        (vec!["d".to_string()], Some("started:9:c"))
    );
}
