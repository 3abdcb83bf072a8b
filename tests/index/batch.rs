//! Messages of the index queue.

use curfew::index::batch::{IndexUpdate, MESSAGE_BYTES, Message, decode, pack};
use serde_json::json;

fn gate(id: &str) -> String {
    json!({"gate": {"id": id}}).to_string()
}

fn decode_all(message: &str) -> Vec<IndexUpdate> {
    let decoded = decode(message).unwrap();
    assert_eq!(decoded.unreadable, 0);
    decoded.updates
}

/// The subject of each update is its position.
fn packed(updates: &[String]) -> Vec<Message<usize>> {
    pack(updates.iter().cloned().enumerate().collect())
}

fn texts(messages: Vec<Message<usize>>) -> Vec<String> {
    messages.into_iter().map(|message| message.text).collect()
}

#[test]
fn a_single_update_is_sent_as_it_is() {
    let single = gate("g1");
    let expected = Message {
        text: single.clone(),
        subjects: vec![0],
    };
    assert_eq!(packed(&[single]), [expected]);
    assert!(packed(&[]).is_empty());
}

#[test]
fn several_updates_share_a_message_and_keep_their_order() {
    let summary = include_str!("../golden/run_summary.json").to_string();
    let breaker = json!({"breaker": {"key": "k"}, "revision": 3}).to_string();
    let removed = json!({"removed": {"run_id": "r", "ended_at": 5}}).to_string();
    let updates = [gate("g1"), summary, breaker, removed, gate("g2")];
    let messages = packed(&updates);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].subjects, [0, 1, 2, 3, 4]);
    let each: Vec<IndexUpdate> = updates.iter().flat_map(|update| decode_all(update)).collect();
    assert_eq!(each.len(), 5);
    assert_eq!(decode_all(&messages[0].text), each);
}

#[test]
fn only_a_single_update_may_exceed_the_message_limit() {
    let long = |bytes: usize| json!({"gate": {"id": "x".repeat(bytes)}}).to_string();
    let updates: Vec<String> = (0..300).map(|number| long(number * 7)).collect();
    let messages = packed(&updates);
    assert!(messages.len() > 1);
    let subjects: Vec<usize> = messages
        .iter()
        .flat_map(|message| message.subjects.clone())
        .collect();
    assert_eq!(subjects, (0..300).collect::<Vec<_>>());
    let messages = texts(messages);
    let lengths: Vec<usize> = messages.iter().map(String::len).collect();
    assert!(
        lengths.iter().all(|length| *length <= MESSAGE_BYTES + 2),
        "{lengths:?}"
    );
    let all = |messages: &[String]| {
        messages
            .iter()
            .flat_map(|message| decode_all(message))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&messages), all(&updates));
    let huge = long(120_000);
    assert_eq!(
        texts(packed(&[gate("a"), huge.clone(), gate("b")])),
        [gate("a"), huge, gate("b")]
    );
}

#[test]
fn an_unreadable_update_does_not_affect_the_others() {
    assert!(decode("").is_err());
    assert!(decode("{").is_err());
    for (message, updates, unreadable) in [
        ("[1]".to_string(), 0, 1),
        ("{}".to_string(), 0, 1),
        (format!("[{},{{}},{}]", gate("g1"), gate("g2")), 2, 1),
    ] {
        let decoded = decode(&message).unwrap();
        assert_eq!(
            (decoded.updates.len(), decoded.unreadable),
            (updates, unreadable),
            "{message}"
        );
    }
}
