//! Where the rows of a run stand in its table: numbered in the order in which they came. Pure.

use std::collections::BTreeMap;

/// The numbers of the rows that may still change.
#[derive(Debug, Default)]
pub struct RowIds {
    known: BTreeMap<String, u64>,
    last: u64,
}

impl RowIds {
    /// Of a table whose last row has this number.
    pub fn up_to(last: u64) -> RowIds {
        RowIds {
            known: BTreeMap::new(),
            last,
        }
    }

    /// The row of this key is there already.
    pub fn note(&mut self, key: &str, place: u64) {
        self.known.insert(key.to_string(), place);
    }

    /// Where a row goes that is written again: where it is, or behind all others.
    pub fn of(&mut self, key: &str) -> u64 {
        if let Some(place) = self.known.get(key) {
            return *place;
        }
        let place = self.next();
        self.note(key, place);
        place
    }

    /// Where a row goes that is written for the last time.
    pub fn last_of(&mut self, key: &str) -> u64 {
        self.leave(key).unwrap_or_else(|| self.next())
    }

    /// Where a row is that is to go, or will not change any more.
    pub fn leave(&mut self, key: &str) -> Option<u64> {
        self.known.remove(key)
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
