//! Row ids of a run's table. Rows are numbered in the order in which they were first written: rows of one commit are adjacent,
//! so that a commit touches few pages of the file. Pure.

use std::collections::BTreeMap;

/// Ids of the rows that may still change, by key.
#[derive(Debug, Default)]
pub struct RowIds {
    by_key: BTreeMap<String, u64>,
    last: u64,
}

impl RowIds {
    /// For a table whose last row has the id `last`.
    pub fn after(last: u64) -> RowIds {
        RowIds {
            by_key: BTreeMap::new(),
            last,
        }
    }

    pub fn insert(&mut self, key: &str, row_id: u64) {
        self.by_key.insert(key.to_string(), row_id);
    }

    /// The id of a row that may be written again. A new row gets the next id.
    pub fn id_of(&mut self, key: &str) -> u64 {
        if let Some(row_id) = self.by_key.get(key) {
            return *row_id;
        }
        let row_id = self.next();
        self.insert(key, row_id);
        row_id
    }

    /// The id of a row that is written for the last time.
    pub fn final_id_of(&mut self, key: &str) -> u64 {
        self.release(key).unwrap_or_else(|| self.next())
    }

    /// The id of a row that is deleted or will not change any more; `None` if the row was never written.
    pub fn release(&mut self, key: &str) -> Option<u64> {
        self.by_key.remove(key)
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
