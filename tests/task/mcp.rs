//! The messages of MCP: those to a server, and how those of a server are read.

use curfew::base::failure::{Failure, FailureClass};
use curfew::definition::action::ActionKind;
use curfew::task::mcp::{
    McpCall, MessageReader, Notes, ServerMessage, Session, cancelled, fold_result, initialized, protocol_of,
};
use curfew::task::redact::Redactor;
use curfew::task::request::Outgoing;
use serde_json::{Value, json};

use super::action_call::calling;
use super::fake_runtime::with;

fn tool_call(more: Value, input: Value) -> Result<McpCall, Failure> {
    let implementation = with(
        json!({"server_url": "https://a.example/mcp", "tool": "add"}),
        more,
    );
    calling("mcp_tool", implementation, input, None, |call| {
        let ActionKind::McpTool(tool) = &call.action.kind else {
            panic!("it is a tool");
        };
        McpCall::of(tool, call, "key")
    })
}

fn line(sent: &Outgoing) -> String {
    let headers: Vec<_> = sent
        .headers
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{} {} [{}]", sent.method, sent.url, headers.join("; "))
}

fn sent(sent: &Outgoing) -> Value {
    serde_json::from_str(sent.body.as_deref().expect("it has a body")).expect("it is JSON")
}

fn session() -> Session {
    Session {
        id: Some("s-1".into()),
        protocol: Some("2025-03-26".into()),
    }
}

const PLAIN: &str = "content-type=application/json; accept=application/json, text/event-stream";

#[test]
fn a_session_has_no_id_before_the_server_responds() {
    let order = tool_call(json!({}), json!({"a": 1, "b": 2})).expect("it is fine");
    let first = order
        .post(&Session::default(), &order.initialize(1))
        .expect("it is fine");
    assert_eq!(line(&first), format!("POST https://a.example/mcp [{PLAIN}]"));
    let message = sent(&first);
    assert_eq!(
        (&message["jsonrpc"], &message["id"], &message["method"]),
        (&json!("2.0"), &json!(1), &json!("initialize"))
    );
    assert_eq!(message["params"]["protocolVersion"], "2025-06-18");
    assert_eq!(message["params"]["clientInfo"]["name"], "curfew");
    assert_eq!(message["params"]["capabilities"], json!({}));

    let in_session =
        format!("POST https://a.example/mcp [{PLAIN}; mcp-protocol-version=2025-03-26; mcp-session-id=s-1]");
    for message in [initialized(), cancelled(2)] {
        let notice = order.post(&session(), &message).expect("it is fine");
        assert_eq!(line(&notice), in_session);
        assert!(sent(&notice).get("id").is_none(), "nobody answers a notification");
    }
    assert_eq!(cancelled(2)["params"]["requestId"], 2);
    let bye = order.delete(&session()).expect("there is a session");
    assert_eq!(
        line(&bye),
        "DELETE https://a.example/mcp [accept=application/json, text/event-stream; \
         mcp-protocol-version=2025-03-26; mcp-session-id=s-1]"
    );
    assert_eq!(bye.body, None);
    assert_eq!(order.delete(&Session::default()), None);
}

#[test]
fn only_the_tool_call_has_an_idempotency_key() {
    let order = tool_call(json!({}), json!({"a": 1})).expect("it is fine");
    let call = order.post(&session(), &order.call(2)).expect("it is fine");
    assert!(line(&call).contains("idempotency-key=key"), "{}", line(&call));
    assert_eq!(
        sent(&call),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 2}}})
    );
}

#[test]
fn arguments_are_an_object_and_headers_cannot_break_the_transport() {
    let arguments = |more: Value, input: Value| {
        tool_call(more, input).map(|order| order.call(1)["params"]["arguments"].clone())
    };
    let input = json!({"n": 5});
    assert_eq!(
        arguments(json!({"arguments": {"x": "${input.n}"}}), input.clone()),
        Ok(json!({"x": 5}))
    );
    assert_eq!(arguments(json!({}), json!(null)), Ok(json!({})));
    for (more, input) in [
        (json!({}), json!([1])),
        (json!({"arguments": "${input.n}"}), input.clone()),
    ] {
        let failure = arguments(more, input).expect_err("these are no arguments");
        assert_eq!(
            (&*failure.code, failure.class),
            ("wrong_type", FailureClass::Validation)
        );
    }
    let headers = json!({"headers": {"Authorization": "Bearer ${input.n}", "Accept": "text/html", "Content-Type": "x/y"}});
    let order = tool_call(headers, input).expect("it is fine");
    let first = order
        .post(&Session::default(), &order.initialize(1))
        .expect("it is fine");
    assert_eq!(
        line(&first),
        format!("POST https://a.example/mcp [authorization=Bearer 5; {PLAIN}]")
    );
    let broken = Session {
        id: Some("a\r\nb".into()),
        protocol: None,
    };
    assert_eq!(
        order.post(&broken, &initialized()).map_err(|it| it.code),
        Err("invalid_header".to_string())
    );
}

#[test]
fn only_known_versions_are_accepted() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = json!({"protocolVersion": version});
        assert_eq!(protocol_of(&answer), Ok(version.to_string()));
    }
    for (answer, code, class) in [
        (
            json!({"protocolVersion": "1999-01-01"}),
            "unsupported_protocol",
            FailureClass::Permanent,
        ),
        (json!({}), "invalid_response", FailureClass::Validation),
        (json!([]), "invalid_response", FailureClass::Validation),
    ] {
        let failure = protocol_of(&answer).expect_err("nobody speaks that");
        assert_eq!((&*failure.code, failure.class), (code, class));
    }
}

/// Reads one message while the response to request 2 is awaited.
fn read(message: Value) -> Vec<ServerMessage> {
    let mut reader = MessageReader {
        awaited: 2,
        notes: &mut Notes::default(),
        redactor: &Redactor::default(),
    };
    reader.read(&message.to_string()).expect("it is JSON")
}

#[test]
fn the_awaited_response_is_found() {
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": 2, "result": result});
    assert_eq!(
        read(answer(json!({"a": 1}))),
        [ServerMessage::Response(Ok(json!({"a": 1})))]
    );
    for other in [
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "2", "result": {}}),
        json!({"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
        json!({"jsonrpc": "2.0", "result": {}}),
        json!({}),
        json!(null),
        json!("words"),
        json!([]),
    ] {
        assert_eq!(read(other.clone()), [], "{other}");
    }
    let batch = json!([{"jsonrpc": "2.0", "id": 9, "method": "ping"}, answer(json!(true))]);
    assert_eq!(
        read(batch),
        [
            ServerMessage::Request {
                reply: json!({"jsonrpc": "2.0", "id": 9, "result": {}})
            },
            ServerMessage::Response(Ok(json!(true)))
        ]
    );
    let [ServerMessage::Response(Err(failure))] = &read(answer(json!(null)))[..] else {
        panic!("it is an answer without anything in it");
    };
    assert_eq!(failure.code, "invalid_response");
    let mut reader = MessageReader {
        awaited: 2,
        notes: &mut Notes::default(),
        redactor: &Redactor::default(),
    };
    for text in ["", "{", "<html>"] {
        let failure = reader.read(text).expect_err("it is no JSON");
        assert_eq!(
            (&*failure.code, failure.class),
            ("invalid_response", FailureClass::Validation)
        );
    }
}

#[test]
fn requests_of_the_server_get_a_reply() {
    let ping = json!({"jsonrpc": "2.0", "id": "p-1", "method": "ping"});
    assert_eq!(
        read(ping),
        [ServerMessage::Request {
            reply: json!({"jsonrpc": "2.0", "id": "p-1", "result": {}})
        }]
    );
    let sampling = json!({"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {}});
    let [ServerMessage::Request { reply: refusal }] = &read(sampling)[..] else {
        panic!("it is a request, whatever its id");
    };
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(2), &json!(-32601))
    );
}

#[test]
fn errors_have_classes() {
    for (code, class) in [
        (json!(-32602), FailureClass::Validation),
        (json!(-32601), FailureClass::BadRequest),
        (json!(-32600), FailureClass::BadRequest),
        (json!(-32700), FailureClass::BadRequest),
        (json!(-32603), FailureClass::Unknown),
        (json!(-32000), FailureClass::Unknown),
        (json!("x"), FailureClass::Unknown),
    ] {
        for id in [json!(2), json!(null)] {
            let message =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no such thing"}});
            let [ServerMessage::Response(Err(failure))] = &read(message)[..] else {
                panic!("{code} is an error");
            };
            assert_eq!((&*failure.code, failure.class), ("rpc_error", class), "{code}");
            assert!(failure.message.contains("no such thing"), "{}", failure.message);
        }
    }
}

fn notes_of(messages: &[(&str, Value)]) -> Option<String> {
    let mut notes = Notes::default();
    let mut reader = MessageReader {
        awaited: 2,
        notes: &mut notes,
        redactor: &Redactor::default(),
    };
    for (method, params) in messages {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(reader.read(&message.to_string()), Ok(vec![]));
    }
    notes.into_text()
}

#[test]
fn progress_is_kept() {
    let progress = "notifications/progress";
    let log = "notifications/message";
    assert_eq!(notes_of(&[]), None);
    assert_eq!(
        notes_of(&[
            ("notifications/other", json!({"message": "x"})),
            (progress, json!({}))
        ]),
        None
    );
    let text = notes_of(&[
        (progress, json!({"progress": 1, "total": 3, "message": "reading"})),
        (log, json!({"level": "info", "data": "half of it"})),
        (log, json!({"level": "info", "data": {"n": 1}})),
        (progress, json!({"progress": 2, "total": 3})),
        (progress, json!({"progress": 2.5})),
    ]);
    let expected = "reading\nhalf of it\n{\"n\":1}\nprogress 2 of 3\nprogress 2.5";
    assert_eq!(text.as_deref(), Some(expected));
}

#[test]
fn the_newest_notes_are_kept() {
    let many: Vec<_> = (0..2_000)
        .map(|n| ("notifications/message", json!({"data": format!("line {n:04} ü")})))
        .collect();
    let text = notes_of(&many).expect("much was run");
    assert!(text.len() <= 16 << 10, "{} bytes", text.len());
    assert!(
        text.starts_with("line ") && text.ends_with("line 1999 ü"),
        "{}",
        &text[..40]
    );
    let huge = notes_of(&[("notifications/message", json!({"data": "ü".repeat(20_000)}))]);
    assert!(huge.is_some_and(|text| !text.is_empty() && text.len() <= 16 << 10));
}

#[test]
fn a_tools_result_is_its_content_and_its_text() {
    let redactor = Redactor::default();
    let content = json!([{"type": "text", "text": "a"}, {"type": "image", "data": "eA=="}, {"type": "text", "text": "b"}]);
    let result = json!({"content": content, "structuredContent": {"sum": 3}});
    assert_eq!(
        fold_result("add", &result, &redactor),
        Ok(json!({"content": content, "structured": {"sum": 3}, "text": "a\nb", "is_error": false}))
    );
    assert_eq!(
        fold_result("add", &json!({"content": [], "isError": false}), &redactor),
        Ok(json!({"content": [], "structured": null, "text": "", "is_error": false}))
    );
    for nonsense in [json!({}), json!("x"), json!({"content": "text"})] {
        let failure = fold_result("add", &nonsense, &redactor).expect_err("it is no result");
        assert_eq!(failure.code, "invalid_response");
    }
}

#[test]
fn the_error_of_a_tool_is_redacted() {
    let secret = "s".repeat(20);
    let redactor = Redactor::new([secret.clone()]);
    let text = format!("{}{secret}", "x".repeat(990));
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    let failure = fold_result("add", &result, &redactor).expect_err("it failed");
    assert_eq!(
        (&*failure.code, failure.class),
        ("tool_error", FailureClass::Permanent)
    );
    assert!(
        failure.message.starts_with("the tool \"add\" failed: xxx"),
        "{}",
        failure.message
    );
    assert!(failure.message.ends_with("x[redacted]"), "{}", failure.message);
    let silent = fold_result("add", &json!({"content": [], "isError": true}), &redactor);
    assert_eq!(
        silent.map_err(|it| it.message),
        Err("the tool \"add\" failed: it does not say why".to_string())
    );
}
