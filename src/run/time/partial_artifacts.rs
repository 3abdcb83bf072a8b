//! The output so far of tokens whose work a timeout found unfinished, as its record keeps it. A record is one row: many tokens share
//! its room, and the record says if something was left out.

use serde::{Deserialize, Serialize};

use crate::base::text::json_bytes;
use crate::protocol::task::Artifact;
use crate::run::time::timeout_record::SHOWN;
use crate::run::token::Token;

/// The room of all artifacts in one record, as JSON.
const RECORD_BYTES: usize = 256 << 10;

/// An artifact in a record. In the record of a run or a join it names where it comes from; the record of a token does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedArtifact {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    pub name: String,
    pub complete: bool,
    pub bytes: u64,
    pub text: String,
}

impl From<Artifact> for RecordedArtifact {
    fn from(artifact: Artifact) -> RecordedArtifact {
        RecordedArtifact {
            node_id: None,
            token_id: None,
            name: artifact.name,
            complete: artifact.complete,
            bytes: artifact.bytes,
            text: artifact.text,
        }
    }
}

/// The artifacts of several tokens, and whether something was cut or left out.
pub(super) fn shared<'a>(
    tokens: impl Iterator<Item = (&'a str, &'a Token)>,
) -> (Vec<RecordedArtifact>, bool) {
    let with_output = |(_, token): &(&str, &Token)| {
        let progress = token.progress.as_ref();
        progress.is_some_and(|progress| !progress.partial.is_empty())
    };
    let mut tokens: Vec<(&str, &Token)> = tokens.filter(with_output).collect();
    let mut is_cut = tokens.len() > SHOWN;
    tokens.truncate(SHOWN);
    let wholes: Vec<Vec<RecordedArtifact>> = tokens
        .iter()
        .map(|(node, token)| artifacts(node, token))
        .collect();
    let sizes: Vec<usize> = wholes.iter().map(json_bytes).collect();
    let share = fair_share(&sizes, RECORD_BYTES);
    let mut recorded = Vec::new();
    for (artifacts, bytes) in wholes.into_iter().zip(sizes) {
        match bytes <= share {
            true => recorded.extend(artifacts),
            false => {
                is_cut = true;
                recorded.extend(cut(artifacts, share));
            }
        }
    }
    (recorded, is_cut)
}

fn artifacts(node_id: &str, token: &Token) -> Vec<RecordedArtifact> {
    let partial = token.progress.iter().flat_map(|progress| &progress.partial);
    let named = partial.map(|artifact| RecordedArtifact {
        node_id: Some(node_id.to_string()),
        token_id: Some(token.id.to_string()),
        ..RecordedArtifact::from(artifact.clone())
    });
    named.collect()
}

/// How much each may take at most so that all fit: who needs less than its share leaves the rest to the others.
fn fair_share(sizes: &[usize], room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = room;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    room
}

/// The latest artifacts are kept longest, because they show where the work was.
fn cut(artifacts: Vec<RecordedArtifact>, bytes_max: usize) -> Vec<RecordedArtifact> {
    let mut left = bytes_max;
    let mut kept = Vec::new();
    for mut recorded in artifacts.into_iter().rev() {
        let text = json_bytes(&recorded.text);
        // Two for the quotes, one for the comma after it, one because `false` is longer than `true`.
        let around = json_bytes(&recorded) - text + 4;
        let Some(room) = left.checked_sub(around) else {
            break;
        };
        let end = fitting(&recorded.text, room);
        if end < recorded.text.len() {
            recorded.text.truncate(end);
            recorded.complete = false;
        }
        left = room - (json_bytes(&recorded.text) - 2);
        kept.push(recorded);
    }
    kept.reverse();
    kept
}

/// How many bytes of a text fit in so many bytes of JSON.
fn fitting(text: &str, room: usize) -> usize {
    let mut left = room;
    let over = text.char_indices().find(|(_, character)| {
        let bytes = match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\u{0}'..='\u{1f}' => 6,
            _ => character.len_utf8(),
        };
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return true,
        }
        false
    });
    over.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::token::progress::Progress;
    use crate::run::token::{TokenId, TokenStatus};

    fn token(number: u64, texts: &[String]) -> Token {
        let partial = texts.iter().enumerate().map(|(index, text)| Artifact {
            name: format!("s{index}"),
            complete: index + 1 < texts.len(),
            bytes: text.len() as u64,
            text: text.clone(),
        });
        Token {
            status: TokenStatus::Executing,
            progress: Some(Box::new(Progress {
                at: 1_000,
                step_ref: "s0".into(),
                step_index: 0,
                steps_total: 1,
                attempt: 1,
                partial: partial.collect(),
                saved_at: None,
                is_unsaved: true,
            })),
            ..Token::new(TokenId(number), 0, 1_000)
        }
    }

    fn recorded(tokens: &[Token]) -> (Vec<RecordedArtifact>, bool) {
        shared(tokens.iter().map(|token| ("work", token)))
    }

    #[test]
    fn what_fits_is_whole() {
        let texts = ["one".to_string(), "tw".to_string()];
        let tokens = [token(2, &texts), token(3, &[]), token(4, &["three".to_string()])];
        let (artifacts, is_cut) = recorded(&tokens);
        let shown: Vec<_> = artifacts
            .iter()
            .map(|it| (it.token_id.as_deref(), &*it.name, &*it.text))
            .collect();
        assert_eq!(
            shown,
            [
                (Some("t2"), "s0", "one"),
                (Some("t2"), "s1", "tw"),
                (Some("t4"), "s0", "three")
            ]
        );
        assert!(!is_cut);
    }

    #[test]
    fn the_room_is_shared_and_who_needs_less_leaves_more() {
        let long = "€\u{1}\"".repeat(16 << 10);
        let mut tokens: Vec<Token> = (1..=9)
            .map(|number| token(number, std::slice::from_ref(&long)))
            .collect();
        tokens.push(token(10, &["short".to_string()]));
        let (artifacts, is_cut) = recorded(&tokens);
        assert!(is_cut);
        assert!(
            json_bytes(&artifacts) <= RECORD_BYTES + 2,
            "{}",
            json_bytes(&artifacts)
        );
        assert!(
            json_bytes(&artifacts) > RECORD_BYTES - 9 * 20,
            "{}",
            json_bytes(&artifacts)
        );
        let lengths: Vec<usize> = artifacts.iter().map(|it| it.text.len()).collect();
        assert!(
            lengths[..8].windows(2).all(|pair| pair[0] == pair[1]),
            "{lengths:?}"
        );
        assert_eq!(artifacts[9].text, "short");
        assert_eq!(artifacts[0].bytes, 5 * (16 << 10));
    }

    #[test]
    fn the_latest_of_a_token_are_kept_longest() {
        let long = "x".repeat(200 << 10);
        let (artifacts, is_cut) = recorded(&[token(1, &[long.clone(), long, "end".to_string()])]);
        assert!(is_cut);
        let lengths: Vec<usize> = artifacts.iter().map(|it| it.text.len()).collect();
        assert_eq!((lengths.len(), lengths[1], lengths[2]), (3, 200 << 10, 3));
        assert_eq!(
            [false, true, false],
            [0, 1, 2].map(|index| artifacts[index].complete)
        );
    }

    #[test]
    fn no_more_tokens_than_a_record_lists() {
        let tokens: Vec<Token> = (1..=1_000)
            .map(|number| token(number, &["text".to_string()]))
            .collect();
        let (artifacts, is_cut) = recorded(&tokens);
        assert_eq!((artifacts.len(), is_cut), (SHOWN, true));
        let many: Vec<String> = (0..100).map(|_| "y".repeat(600)).collect();
        let tokens: Vec<Token> = (1..=100).map(|number| token(number, &many)).collect();
        assert!(json_bytes(&recorded(&tokens).0) <= RECORD_BYTES + 2);
    }
}
