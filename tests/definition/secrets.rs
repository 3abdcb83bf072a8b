//! Secrets in documents: they stand as they are, and only where they are sent.

use curfew::definition::snapshot::{
    CatalogueDocument, DocumentKind, Library, Reference, Snapshot, StoredSnapshot, check,
};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use super::documents::{expect, expect_under};

fn request(implementation: Value) -> Value {
    json!({"id": "a", "kind": "http_request", "implementation": implementation})
}

/// A request with this body.
fn sending(body: Value) -> Value {
    request(json!({"url": "https://x.example", "method": "POST", "body": body}))
}

#[test]
fn a_secret_stands_alone_or_with_text_around_it() {
    expect(
        DocumentKind::Actions,
        request(
            json!({"url": "https://x.example/${secret.PATH}", "method": "POST", "headers": {"authorization": "Bearer ${secret.TOKEN}"},
            "query": {"key": "${ secret.KEY }"}, "body": ["${secret.A}:${secret.B}", "${input.secret.A + 'x'}", "secret.A + 'x'", "$${secret}"]}),
        ),
        &[],
    );
}

#[test]
fn nothing_computes_with_a_secret() {
    for expression in [
        "secret",
        "secret[input.name]",
        "secret['A']",
        "secret.A + 'x'",
        "'x' + secret.A",
        "size(secret.A)",
        "secret.A.size()",
        "secret.A.B",
        "secret.A[0]",
        "secret.A == input.x",
        "input.x in [secret.A]",
        "[secret.A]",
        "{'k': secret.A}",
        "{secret.A: 1}",
        "secret.A.split('')",
        "secret.A.startsWith('s')",
        "has(secret.A)",
        "secret.?A.orValue('x')",
        "input.b ? secret.A : secret.B",
        "secret.A != '' && true",
        "!(secret.A == 'x')",
        "input.list.map(x, secret.A)",
        "input.list.exists(x, x == secret.A)",
        "secret.map(x, x)",
        "input[secret.A]",
        "string(secret.A)",
    ] {
        let pointer = "/implementation/body/nested/1 invalid_secret: a secret stands as it is";
        expect(
            DocumentKind::Actions,
            sending(json!({"nested": ["${secret.OK}", format!("text ${{{expression}}}")]})),
            &[pointer],
        );
    }
}

#[test]
fn it_is_refused_wherever_an_action_stands() {
    let action = sending(json!("${secret.A + 'x'}"));
    let task = json!({"id": "t", "steps": [{"ref": "s", "action": action}]});
    expect(
        DocumentKind::Tasks,
        task.clone(),
        &["/steps/0/action/implementation/body invalid_secret"],
    );
    expect(
        DocumentKind::Workflows,
        json!({"id": "w", "nodes": [{"id": "n", "task_id": "t"}, {"id": "m", "action_id": "a"}],
            "transitions": [{"from_node_id": "n", "to_node_id": "m"}], "tasks": [task], "actions": [action]}),
        &[
            "/actions/0/implementation/body invalid_secret",
            "/tasks/0/steps/0/action/implementation/body invalid_secret",
        ],
    );
}

/// In the context of the task every expression could compute with it.
#[test]
fn an_action_that_sends_nothing_has_no_secrets() {
    for (kind, implementation, problems) in [
        (
            "update_context",
            json!({"set": {"state.a": "Bearer ${secret.A}"}}),
            &["/implementation/set/state.a invalid_secret: this action sends nothing"][..],
        ),
        (
            "assert",
            json!({"condition": "secret.A == 'x'", "message": "${secret.A}"}),
            &[
                "/implementation/condition unknown_name: \"secret\" is not a name here; the names are input, state, output",
                "/implementation/message invalid_secret",
            ],
        ),
    ] {
        let action = json!({"id": "a", "kind": kind, "implementation": implementation});
        expect(DocumentKind::Actions, action, problems);
    }
}

#[test]
fn outside_an_implementation_there_are_no_secrets() {
    let step = |more: (&str, Value)| {
        let mut step = json!({"ref": "s", "action": sending(json!("${secret.A}"))});
        step[more.0] = more.1;
        json!({"id": "t", "steps": [step]})
    };
    expect(DocumentKind::Tasks, step(("ordinal", json!(1))), &[]);
    for (field, value, pointer) in [
        (
            "condition",
            json!("secret.A == 'x'"),
            "/steps/0/condition unknown_name",
        ),
        (
            "input_mapping",
            json!({"a": "${secret.A}"}),
            "/steps/0/input_mapping unknown_name",
        ),
        (
            "output_mapping",
            json!({"output.a": "${secret.A}"}),
            "/steps/0/output_mapping/output.a unknown_name",
        ),
    ] {
        expect(DocumentKind::Tasks, step((field, value)), &[pointer]);
    }
}

/// Earlier builds accepted such expressions, and runs of them are under way.
#[test]
fn a_snapshot_of_an_earlier_build_is_still_read() {
    let setting = json!({"ref": "b", "action": {"kind": "update_context", "implementation": {"set": {"x": "${secret.B}"}}}});
    let calling = json!({"ref": "a", "action": sending(json!(["${secret.A + 'x'}", "${secret['C']}"]))});
    let stored: StoredSnapshot = serde_json::from_value(json!({
        "version": 1, "workflow": {"id": "w", "nodes": [{"id": "n", "task_id": "t"}], "on_timeout": "fail"},
        "tasks": [{"id": "t", "steps": [calling.clone()]}, {"id": "u", "steps": [setting]}], "node_tasks": [0],
    }))
    .expect("a snapshot");
    let snapshot = Snapshot::read(stored).expect("it was valid when it was stored");
    assert!(!snapshot.tasks[1].is_pure, "the coordinator has no secrets");
    let document = json!({"id": "w", "nodes": [{"id": "n", "task_id": "t"}],
        "tasks": [{"id": "t", "steps": [calling]}]});
    let found = check(
        DocumentKind::Workflows,
        &document,
        &Library::new(),
        &TimeoutRules::default(),
    );
    assert!(found.is_err(), "a new document may not");
}

#[track_caller]
fn expect_warnings(kind: DocumentKind, document: Value, expected: &[&str]) {
    let found = check(kind, &document, &Library::new(), &TimeoutRules::default());
    let warnings = found.unwrap_or_else(|error| panic!("{document}: {error:?}"));
    let lines: Vec<String> = warnings
        .iter()
        .map(|it| format!("{} {}", it.pointer, it.code))
        .collect();
    assert_eq!(lines, expected, "{document}");
}

#[test]
fn a_secret_that_goes_where_data_says_is_a_warning() {
    for (url, is_warned) in [
        ("https://api.example.com/", false),
        ("https://api.example.com/${input.path}", false),
        ("https://api.example.com?q=${input.q}", false),
        ("https://api.example.com#${input.q}", false),
        ("https://api.example.com:8443/${input.path}", false),
        ("HTTPS:\\\\api.example.com\\${input.path}", false),
        ("${secret.WEBHOOK}", false),
        ("${secret.WEBHOOK}/x", false),
        ("https://${secret.HOST}/${input.path}", false),
        ("${input.base_url}", true),
        ("${input.base_url}/x", true),
        ("${'https://api.example.com'}/x", true),
        ("https://${input.host}/", true),
        ("https://${input.region}.example.com/", true),
        ("https://api.example.com${input.path}", true),
        ("https://api.example.com:${input.port}/", true),
        ("https://api.${input.rest}", true),
        ("https:${input.rest}", true),
        ("${input.scheme}://api.example.com/", true),
        ("https://${secret.HOST}${input.rest}", true),
    ] {
        let request = |headers: Value| request(json!({"url": url, "headers": headers}));
        let pointer = "/implementation/url secret_to_any_host";
        let expected: &[&str] = if is_warned { &[pointer] } else { &[] };
        let with_secret = request(json!({"authorization": "Bearer ${secret.KEY}"}));
        expect_warnings(DocumentKind::Actions, with_secret, expected);
        if !url.contains("secret") {
            let without = request(json!({"authorization": "Bearer ${input.key}"}));
            expect_warnings(DocumentKind::Actions, without, &[]);
        }
    }
}

#[test]
fn every_kind_that_has_a_url_is_warned_of() {
    let key = json!({"authorization": "${secret.KEY}"});
    for (kind, field, implementation) in [
        ("http_request", "url", json!({"headers": key})),
        ("mcp_tool", "server_url", json!({"tool": "t", "headers": key})),
        ("shell", "url", json!({"command": "make", "headers": key})),
        (
            "llm_call",
            "base_url",
            json!({"provider": "openai", "model": "m", "prompt": "p", "api_key": "${secret.KEY}"}),
        ),
    ] {
        let mut implementation = implementation;
        implementation[field] = json!("${input.there}/x");
        let action = json!({"id": "a", "kind": kind, "implementation": implementation});
        let pointer = format!("/implementation/{field} secret_to_any_host");
        expect_warnings(DocumentKind::Actions, action.clone(), &[&pointer]);

        let task = json!({"id": "t", "steps": [{"ref": "s", "action": action}]});
        let in_task = format!("/steps/0/action{pointer}");
        expect_warnings(DocumentKind::Tasks, task.clone(), &[&in_task]);
        let workflow =
            json!({"id": "w", "nodes": [{"id": "n", "task_id": "t"}], "tasks": [task], "actions": [action]});
        let (of_action, of_task) = (format!("/actions/0{pointer}"), format!("/tasks/0{in_task}"));
        expect_warnings(DocumentKind::Workflows, workflow, &[&of_action, &of_task]);
    }
    let bound = json!({"id": "a", "kind": "shell", "implementation": {"binding": "RUNNER", "command": "${input.c}", "headers": key}});
    expect_warnings(DocumentKind::Actions, bound, &[]);
}

#[test]
fn the_warning_says_what_to_do() {
    let action =
        request(json!({"url": "${input.there}", "headers": {"a": "${secret.A}", "b": "${secret.B}"}}));
    let found = check(
        DocumentKind::Actions,
        &action,
        &Library::new(),
        &TimeoutRules::default(),
    );
    let warnings = found.expect("it is only a warning");
    assert_eq!(
        warnings[0].message,
        "data decides which host gets the secret (A, B); write the host out, or bind the secret to its hosts in the executor's \
         variable CURFEW_SECRETS, like {\"A\": [\"api.example.com\"]}"
    );
}

/// The catalogue has returned the warning when the child was stored.
#[test]
fn a_warning_of_a_called_workflow_does_not_refuse_its_caller() {
    let child = json!({"id": "child", "nodes": [{"id": "n", "task_id": "t"}],
        "tasks": [{"id": "t", "timeout": null, "dispatch": "queue", "steps": [{"ref": "s", "action": sending(json!(1))}]}]});
    expect_warnings(
        DocumentKind::Workflows,
        child.clone(),
        &["/tasks/0/dispatch queue_too_long"],
    );
    let reference = Reference {
        kind: DocumentKind::Workflows,
        id: "child".into(),
        version: None,
    };
    let stored = CatalogueDocument {
        version: 1,
        content: child,
    };
    let parent = json!({"id": "parent", "nodes": [{"id": "n", "workflow_id": "child"}]});
    let library: Library = [(reference, Some(stored))].into();
    expect_under(
        &TimeoutRules::default(),
        DocumentKind::Workflows,
        parent,
        &library,
        &[],
    );
}
