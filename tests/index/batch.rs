use curfew::index::batch::{Announcement, LETTER_BYTES, Message, letters, read};
use serde_json::json;

fn gate(id: &str) -> String {
    json!({"gate": {"id": id}}).to_string()
}

fn read_whole(letter: &str) -> Vec<Announcement> {
    let contents = read(letter).unwrap();
    assert_eq!(contents.unreadable, 0);
    contents.announcements
}

/// Each piece is about its number.
fn sealed(news: &[String]) -> Vec<Message<usize>> {
    letters(news.iter().cloned().enumerate().collect())
}

fn texts(letters: Vec<Message<usize>>) -> Vec<String> {
    letters.into_iter().map(|letter| letter.text).collect()
}

#[test]
fn news_that_is_alone_is_a_letter_as_it_is() {
    let alone = gate("g1");
    let expected = Message {
        text: alone.clone(),
        about: vec![0],
    };
    assert_eq!(sealed(&[alone]), [expected]);
    assert!(sealed(&[]).is_empty());
}

#[test]
fn several_share_a_letter_and_are_read_in_their_order() {
    let summary = include_str!("../golden/standing.json").to_string();
    let breaker = json!({"breaker": {"key": "k"}, "revision": 3}).to_string();
    let removed = json!({"removed": {"run_id": "r", "ended_at": 5}}).to_string();
    let news = [gate("g1"), summary, breaker, removed, gate("g2")];
    let written = sealed(&news);
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].about, [0, 1, 2, 3, 4]);
    let each: Vec<Announcement> = news.iter().flat_map(|piece| read_whole(piece)).collect();
    assert_eq!(each.len(), 5);
    assert_eq!(read_whole(&written[0].text), each);
}

#[test]
fn no_letter_is_larger_than_a_queue_takes_unless_one_piece_is() {
    let long = |bytes: usize| json!({"gate": {"id": "x".repeat(bytes)}}).to_string();
    let news: Vec<String> = (0..300).map(|number| long(number * 7)).collect();
    let written = sealed(&news);
    assert!(written.len() > 1);
    let about: Vec<usize> = written.iter().flat_map(|letter| letter.about.clone()).collect();
    assert_eq!(about, (0..300).collect::<Vec<_>>());
    let written = texts(written);
    let lengths: Vec<usize> = written.iter().map(String::len).collect();
    assert!(
        lengths.iter().all(|length| *length <= LETTER_BYTES + 2),
        "{lengths:?}"
    );
    let all = |letters: &[String]| {
        letters
            .iter()
            .flat_map(|letter| read_whole(letter))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&written), all(&news));
    let huge = long(120_000);
    assert_eq!(
        texts(sealed(&[gate("a"), huge.clone(), gate("b")])),
        [gate("a"), huge, gate("b")]
    );
}

#[test]
fn what_is_no_news_does_not_take_the_rest_with_it() {
    assert!(read("").is_err());
    assert!(read("{").is_err());
    for (letter, announcements, unreadable) in [
        ("[1]".to_string(), 0, 1),
        ("{}".to_string(), 0, 1),
        (format!("[{},{{}},{}]", gate("g1"), gate("g2")), 2, 1),
    ] {
        let contents = read(&letter).unwrap();
        assert_eq!(
            (contents.announcements.len(), contents.unreadable),
            (announcements, unreadable),
            "{letter}"
        );
    }
}
