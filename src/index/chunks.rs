//! Splits the rows of a message batch into chunks that fit one D1 statement, about a megabyte. A chunk that fails is bisected,
//! so that a row that D1 refuses does not keep the others out. Pure: chunks out, failures in, and at the end the messages to
//! retry.

use std::collections::BTreeSet;

/// Well below D1's limit, because up to four statements of one transaction get the same text.
const CHUNK_BYTES: usize = 225_000;
/// Stops the bisection when the database is down and every chunk fails.
const FAILURES_MAX: u32 = 20;

/// A row as JSON, and the index of its message in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub text: String,
    pub message: usize,
}

/// The chunks that are still to be written, and the messages that could not be written.
#[derive(Debug, Default)]
pub struct Chunks {
    /// The next chunk is the last.
    remaining: Vec<Vec<Row>>,
    failures: u32,
    failed: BTreeSet<usize>,
}

impl Chunks {
    pub fn of(rows: Vec<Row>) -> Chunks {
        let mut remaining: Vec<Vec<Row>> = Vec::new();
        let mut free_bytes = 0;
        for row in rows {
            let bytes = row.text.len() + 1;
            match remaining.last_mut() {
                Some(chunk) if bytes <= free_bytes => {
                    free_bytes -= bytes;
                    chunk.push(row);
                }
                Some(_) | None => {
                    free_bytes = CHUNK_BYTES.saturating_sub(bytes);
                    remaining.push(vec![row]);
                }
            }
        }
        remaining.reverse();
        Chunks {
            remaining,
            ..Chunks::default()
        }
    }

    pub fn take_next(&mut self) -> Option<Vec<Row>> {
        self.remaining.pop()
    }

    /// The chunk could not be written.
    pub fn mark_failed(&mut self, mut chunk: Vec<Row>) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            let all = self.remaining.drain(..).flatten().chain(chunk);
            self.failed.extend(all.map(|row| row.message));
            return;
        }
        if chunk.len() > 1 {
            let second = chunk.split_off(chunk.len() / 2);
            self.remaining.extend([second, chunk]);
        } else {
            self.failed.extend(chunk.into_iter().map(|row| row.message));
        }
    }

    /// Messages with at least one row that could not be written.
    pub fn into_failed_messages(self) -> BTreeSet<usize> {
        self.failed
    }
}

pub fn json_array(chunk: &[Row]) -> String {
    let texts: Vec<&str> = chunk.iter().map(|row| row.text.as_str()).collect();
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

    /// Writes all chunks except those that `is_refused`. Returns the number of statements, the written and the failed messages.
    fn write(texts: &[String], is_refused: impl Fn(&str) -> bool) -> (u32, BTreeSet<usize>, BTreeSet<usize>) {
        let mut chunks = Chunks::of(rows(texts));
        let (mut statements, mut written) = (0, BTreeSet::new());
        while let Some(chunk) = chunks.take_next() {
            statements += 1;
            assert!(json_array(&chunk).len() <= CHUNK_BYTES + 1 || chunk.len() == 1);
            match is_refused(&json_array(&chunk)) {
                true => chunks.mark_failed(chunk),
                false => written.extend(chunk.into_iter().map(|row| row.message)),
            }
        }
        (statements, written, chunks.into_failed_messages())
    }

    #[test]
    fn no_chunk_exceeds_the_limit_of_a_statement() {
        let texts: Vec<String> = (0..100).map(|_| "x".repeat(100_000)).collect();
        let (statements, written, failed) = write(&texts, |_| false);
        assert_eq!((statements, written.len(), failed.len()), (50, 100, 0));
        let small: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(write(&small, |_| false).0, 1);
        assert_eq!(write(&[], |_| false).0, 0);
    }

    #[test]
    fn a_refused_row_does_not_keep_the_others_out() {
        let mut texts: Vec<String> = (0..100).map(|_| "fine".to_string()).collect();
        texts[37] = "wrong".into();
        let (statements, written, failed) = write(&texts, |text| text.contains("wrong"));
        assert_eq!(failed, BTreeSet::from([37]));
        assert_eq!(written.len(), 99);
        assert!(statements < 20, "{statements}");
    }

    #[test]
    fn a_database_that_is_down_gets_few_statements() {
        let texts: Vec<String> = (0..1_000).map(|_| "x".repeat(10_000)).collect();
        let (statements, written, failed) = write(&texts, |_| true);
        assert_eq!(
            (statements, written.len(), failed.len()),
            (FAILURES_MAX, 0, 1_000)
        );
    }
}
