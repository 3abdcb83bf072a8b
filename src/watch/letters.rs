//! What is told to the index. News is put together into letters: a message of a queue costs the same whatever is in it.

use serde::Deserialize;
use serde_json::Value;

use super::standing::Standing;

/// How a run stands, how one of its gates does, how long a node took, how a breaker stands.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Announcement {
    Run(Standing),
    Gate { gate: Value },
    Latency { latency: Value },
    Breaker { breaker: Value, revision: u64 },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Letter {
    Several(Vec<Announcement>),
    One(Announcement),
}

/// What is in a letter.
pub fn read(letter: &str) -> serde_json::Result<Vec<Announcement>> {
    Ok(match serde_json::from_str(letter)? {
        Letter::Several(announcements) => announcements,
        Letter::One(announcement) => vec![announcement],
    })
}

/// The platform takes 128 KB in one.
const LETTER_BYTES: usize = 100_000;

/// One piece of news is a letter as it is, several are an array.
pub fn letters(news: Vec<String>) -> Vec<String> {
    let mut letters: Vec<Vec<String>> = Vec::new();
    let mut room = 0;
    for piece in news {
        match letters.last_mut() {
            Some(letter) if piece.len() < room => {
                room -= piece.len() + 1;
                letter.push(piece);
            }
            Some(_) | None => {
                room = LETTER_BYTES.saturating_sub(piece.len());
                letters.push(vec![piece]);
            }
        }
    }
    let sealed = letters.into_iter().map(|letter| match letter.as_slice() {
        [alone] => alone.clone(),
        several => format!("[{}]", several.join(",")),
    });
    sealed.collect()
}
