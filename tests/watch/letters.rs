use curfew::watch::letters::{Announcement, letters, read};
use serde_json::json;

fn gate(id: &str) -> String {
    json!({"gate": {"id": id}}).to_string()
}

fn read_all(letters: &[String]) -> Vec<Announcement> {
    letters.iter().flat_map(|letter| read(letter).unwrap()).collect()
}

#[test]
fn news_that_is_alone_is_a_letter_as_it_is() {
    let alone = gate("g1");
    assert_eq!(letters(vec![alone.clone()]), [alone]);
    assert!(letters(Vec::new()).is_empty());
}

#[test]
fn several_share_a_letter_and_are_read_in_their_order() {
    let standing = include_str!("../golden/standing.json").to_string();
    let breaker = json!({"breaker": {"key": "k"}, "revision": 3}).to_string();
    let written = letters(vec![gate("g1"), standing.clone(), breaker.clone(), gate("g2")]);
    assert_eq!(written.len(), 1);
    let each: Vec<Announcement> = [gate("g1"), standing, breaker, gate("g2")]
        .iter()
        .flat_map(|piece| read(piece).unwrap())
        .collect();
    assert_eq!(each.len(), 4);
    assert_eq!(read(&written[0]).unwrap(), each);
}

#[test]
fn no_letter_is_larger_than_a_queue_takes_unless_one_piece_is() {
    let long = |bytes: usize| json!({"gate": {"id": "x".repeat(bytes)}}).to_string();
    let news: Vec<String> = (0..300).map(|number| long(number * 7)).collect();
    let written = letters(news.clone());
    assert!(written.len() > 1);
    assert!(
        written.iter().all(|letter| letter.len() <= 100_002),
        "{:?}",
        written.iter().map(String::len)
    );
    assert_eq!(read_all(&written), read_all(&news));
    let huge = long(120_000);
    assert_eq!(
        letters(vec![gate("a"), huge.clone(), gate("b")]),
        [gate("a"), huge, gate("b")]
    );
}

#[test]
fn what_is_no_news_is_refused_whole() {
    assert!(read("[1]").is_err());
    assert!(read("").is_err());
    assert!(read(&format!("[{},{{}}]", gate("g1"))).is_err());
}
