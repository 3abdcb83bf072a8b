//! Texts that were cut, or arrived in parts: no part of a secret is left in them.

use curfew::definition::action::ActionKind;
use curfew::definition::llm::{Provider, ResponseFormat};
use curfew::task::llm::response_decoder::ResponseDecoder;
use curfew::task::llm::result;
use curfew::task::mcp::{MessageReader, Notes};
use curfew::task::redact::Redactor;
use curfew::task::shell::{CommandEnd, outcome};
use serde_json::{Value, json};

use super::action_call::calling;

const VALUE: &str = "key-0123456789abcdef";

fn redactor() -> Redactor {
    Redactor::new([VALUE.to_string()])
}

fn ended(answer: Value, left_ms: Option<u64>) -> Result<CommandEnd, String> {
    let shell = json!({"url": "https://runner.example", "command": "make"});
    calling("shell", shell, json!({}), None, |call| {
        let ActionKind::Shell(shell) = &call.action.kind else {
            panic!("it is a command");
        };
        let ended = outcome(shell, &answer.to_string(), &redactor(), left_ms);
        ended.map_err(|failure| failure.message)
    })
}

#[test]
fn the_output_of_a_command_may_be_cut_inside_a_secret() {
    let cut = "it is key-012345";
    let answer =
        |more: &str| json!({"exit_code": 0, "stdout": cut, "stderr": format!("{VALUE} {cut}"), more: true});
    assert_eq!(
        ended(answer("truncated"), None),
        Ok(CommandEnd::Result(
            json!({"exit_code": 0, "stdout": "it is [redacted]", "stderr": "[redacted] it is [redacted]", "truncated": true})
        ))
    );
    // The text of a command that was stopped is both outputs in one.
    assert_eq!(
        ended(answer("timed_out"), Some(100)),
        Ok(CommandEnd::OutOfTime(
            "it is [redacted][redacted] it is [redacted]".into()
        ))
    );
    let message = ended(answer("timed_out"), None).expect_err("it was stopped");
    assert!(
        message.ends_with("; stderr: [redacted] it is [redacted]; stdout: it is [redacted]"),
        "{message}"
    );
    // A whole output that ends like the beginning of a secret holds none.
    let Ok(CommandEnd::Result(whole)) = ended(json!({"exit_code": 0, "stdout": cut, "stderr": ""}), None)
    else {
        panic!("it ended well");
    };
    assert_eq!(whole["stdout"], cut);
}

#[test]
fn old_progress_of_a_tool_is_dropped_without_cutting_a_secret() {
    let mut notes = Notes::default();
    let redactor = redactor();
    let mut reader = MessageReader {
        awaited: 2,
        notes: &mut notes,
        redactor: &redactor,
    };
    // One line that is longer than the notes: its beginning is dropped, wherever that is.
    let line = format!("{}{}", VALUE.repeat(30), "x".repeat((16 << 10) - 100));
    let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": line}});
    assert_eq!(reader.read(&message.to_string()), Ok(vec![]));
    let text = notes.into_text().expect("there are notes");
    assert!(!text.contains("abcdef"), "{}", &text[..200]);
}

/// Each event carries one character of the answer.
fn stream(text: &str, finish_reason: &str) -> String {
    let mut chunks: Vec<Value> = text
        .chars()
        .map(|one| json!({"choices": [{"delta": {"content": one.to_string()}}]}))
        .collect();
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": finish_reason}]}));
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    events.chain(["data: [DONE]\n\n".to_string()]).collect()
}

#[test]
fn a_secret_that_a_model_streams_in_parts_is_found() {
    let redactor = redactor();
    for (text, finish_reason, clean) in [
        (format!("it is {VALUE}!"), "stop", "it is [redacted]!"),
        (format!("it is {VALUE}!"), "length", "it is [redacted]!"),
        // It has used up its tokens in the middle.
        ("it is key-01234".to_string(), "length", "it is [redacted]"),
        ("it is key-01234".to_string(), "stop", "it is key-01234"),
    ] {
        let mut decoder = ResponseDecoder::new(Provider::OpenAi, &redactor);
        for chunk in stream(&text, finish_reason).as_bytes().chunks(7) {
            decoder.take(chunk).expect("it is a stream");
        }
        let result = result::of(decoder, &ResponseFormat::Text, "m").expect("it is whole");
        assert_eq!(redactor.value(result)["text"], clean, "{finish_reason}");
    }
    let mut decoder = ResponseDecoder::new(Provider::OpenAi, &redactor);
    let whole = stream(&format!("it is {VALUE}"), "stop");
    let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
    decoder
        .take(events[..20].concat().as_bytes())
        .expect("it is a stream");
    assert_eq!(
        redactor.cut_text(decoder.text_so_far()),
        "it is [redacted]",
        "14 characters had arrived"
    );
}
