//! What a batch of messages brings is written in pieces: D1 takes about a megabyte in one statement, and one row that it refuses
//! must not keep the others out. Pure: pieces out, failures in, and at the end which messages are to come again.

use std::collections::BTreeSet;

/// One statement's worth. A statement may come with two others that read the same text.
const PIECE_BYTES: usize = 300_000;
/// A piece that failed is halved until what is wrong is alone. A database that is down fails them all, and is not asked so often.
const FAILURES_MAX: u32 = 20;

/// A row as JSON, and the message of the batch that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub text: String,
    pub message: usize,
}

#[derive(Debug, Default)]
pub struct Pieces {
    waiting: Vec<Vec<Row>>,
    failures: u32,
    failed: BTreeSet<usize>,
}

impl Pieces {
    pub fn of(rows: Vec<Row>) -> Pieces {
        let mut waiting: Vec<Vec<Row>> = Vec::new();
        let mut room = 0;
        for row in rows {
            let taken = row.text.len() + 1;
            match waiting.last_mut() {
                Some(piece) if taken <= room => {
                    room -= taken;
                    piece.push(row);
                }
                Some(_) | None => {
                    room = PIECE_BYTES.saturating_sub(taken);
                    waiting.push(vec![row]);
                }
            }
        }
        // Taken from the end.
        waiting.reverse();
        Pieces {
            waiting,
            ..Pieces::default()
        }
    }

    pub fn take(&mut self) -> Option<Vec<Row>> {
        self.waiting.pop()
    }

    /// The piece could not be written.
    pub fn failed(&mut self, mut piece: Vec<Row>) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            let all = self.waiting.drain(..).flatten().chain(piece);
            self.failed.extend(all.map(|row| row.message));
            return;
        }
        if piece.len() > 1 {
            let second = piece.split_off(piece.len() / 2);
            self.waiting.extend([second, piece]);
        } else {
            self.failed.extend(piece.into_iter().map(|row| row.message));
        }
    }

    /// Messages of which something could not be written.
    pub fn into_failed(self) -> BTreeSet<usize> {
        self.failed
    }
}

/// A piece as one text: a JSON array.
pub fn array(piece: &[Row]) -> String {
    let texts: Vec<&str> = piece.iter().map(|row| row.text.as_str()).collect();
    format!("[{}]", texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[String]) -> Vec<Row> {
        let rows = texts.iter().enumerate();
        rows.map(|(message, text)| Row {
            text: text.clone(),
            message,
        })
        .collect()
    }

    /// Writes what does not hold `wrong`; returns how many statements that took, what was written and what failed.
    fn write(texts: &[String], wrong: impl Fn(&str) -> bool) -> (u32, BTreeSet<usize>, BTreeSet<usize>) {
        let mut pieces = Pieces::of(rows(texts));
        let (mut statements, mut written) = (0, BTreeSet::new());
        while let Some(piece) = pieces.take() {
            statements += 1;
            assert!(array(&piece).len() <= PIECE_BYTES + 1 || piece.len() == 1);
            match wrong(&array(&piece)) {
                true => pieces.failed(piece),
                false => written.extend(piece.into_iter().map(|row| row.message)),
            }
        }
        (statements, written, pieces.into_failed())
    }

    #[test]
    fn no_piece_is_larger_than_a_statement_takes() {
        let texts: Vec<String> = (0..100).map(|_| "x".repeat(100_000)).collect();
        let (statements, written, failed) = write(&texts, |_| false);
        assert_eq!((statements, written.len(), failed.len()), (50, 100, 0));
        let small: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(write(&small, |_| false).0, 1);
        assert_eq!(write(&[], |_| false).0, 0);
    }

    #[test]
    fn what_cannot_be_written_keeps_nothing_else_out() {
        let mut texts: Vec<String> = (0..100).map(|_| "fine".to_string()).collect();
        texts[37] = "wrong".into();
        let (statements, written, failed) = write(&texts, |text| text.contains("wrong"));
        assert_eq!(failed, BTreeSet::from([37]));
        assert_eq!(written.len(), 99);
        assert!(statements < 20, "{statements}");
    }

    #[test]
    fn a_database_that_is_down_is_not_asked_again_and_again() {
        let texts: Vec<String> = (0..1_000).map(|_| "x".repeat(10_000)).collect();
        let (statements, written, failed) = write(&texts, |_| true);
        assert_eq!(
            (statements, written.len(), failed.len()),
            (FAILURES_MAX, 0, 1_000)
        );
    }
}
