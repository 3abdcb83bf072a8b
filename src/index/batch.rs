//! What is told to the index. News is put together into letters: a message of a queue costs the same whatever is in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::time::Millis;
use crate::index::run_summary::RunSummary;
use crate::run::Run;

/// How a run stands, how one of its gates does, that it is kept no longer, how long a node took, how a breaker stands.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Announcement {
    Run(RunSummary),
    Gate { gate: Value },
    Removed { removed: Removed },
    Latency { latency: Value },
    Breaker { breaker: Value, revision: u64 },
}

/// An ended run whose object has deleted it. Whatever of this id began later is another run's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    pub run_id: String,
    pub ended_at: Millis,
}

impl Removed {
    pub fn of(run: &Run) -> Removed {
        let header = &run.header;
        Removed {
            run_id: header.id.clone(),
            // Only runs that have ended are deleted; of another one nothing later than its start would go.
            ended_at: header.ended_at.unwrap_or(header.started_at),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IndexMessage {
    Several(Vec<Value>),
    One(Value),
}

/// What is in a letter, and how many of its pieces cannot be read: a newer version may have written them.
#[derive(Debug, PartialEq)]
pub struct Contents {
    pub announcements: Vec<Announcement>,
    pub unreadable: usize,
}

pub fn read(letter: &str) -> serde_json::Result<Contents> {
    let pieces = match serde_json::from_str(letter)? {
        IndexMessage::Several(pieces) => pieces,
        IndexMessage::One(piece) => vec![piece],
    };
    let count = pieces.len();
    let announcements: Vec<Announcement> = pieces
        .into_iter()
        .filter_map(|piece| serde_json::from_value(piece).ok())
        .collect();
    Ok(Contents {
        unreadable: count - announcements.len(),
        announcements,
    })
}

/// The platform takes 128 KB in one. No piece is as long: see `index_view`.
pub const LETTER_BYTES: usize = 100_000;

/// A message, and what each of its pieces is about.
#[derive(Debug, PartialEq)]
pub struct Message<About> {
    pub text: String,
    pub about: Vec<About>,
}

/// One piece of news is a letter as it is, several are an array.
pub fn letters<About>(news: Vec<(About, String)>) -> Vec<Message<About>> {
    let mut letters: Vec<(Vec<About>, Vec<String>)> = Vec::new();
    let mut room = 0;
    for (about, piece) in news {
        match letters.last_mut() {
            Some((abouts, pieces)) if piece.len() < room => {
                room -= piece.len() + 1;
                abouts.push(about);
                pieces.push(piece);
            }
            Some(_) | None => {
                room = LETTER_BYTES.saturating_sub(piece.len());
                letters.push((vec![about], vec![piece]));
            }
        }
    }
    let sealed = letters.into_iter().map(|(about, pieces)| Message {
        about,
        text: match pieces.as_slice() {
            [alone] => alone.clone(),
            several => format!("[{}]", several.join(",")),
        },
    });
    sealed.collect()
}
