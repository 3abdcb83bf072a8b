//! Why a deadline passed: reads the rows that the answer is derived from, a page of them at a time.

use serde_json::Value;

use crate::host::history::entry;
use crate::host::object::Host;
use crate::host::platform::{Error, Platform, Result, Storage};
use crate::run::RunEvent;
use crate::why::{self, FactsReader, Rows};

/// More rows than there can be.
const ALL: u64 = u32::MAX as u64;

impl<P: Platform> Host<P> {
    /// The field `why` of a record's view.
    pub(super) fn why(&self, event: &RunEvent) -> Result<Value> {
        let Some(record) = &event.record else {
            return Ok(Value::Null);
        };
        let mut reader = FactsReader::default();
        let storage = self.platform.storage();
        self.each_row(&storage.list_events(0, ALL)?, |listed, row| {
            reader.event(&entry(listed, row)?);
            Ok(())
        })?;
        let rows = self.with_run(|run| why::rows_of(run, record))?;
        let (tokens, instances, asked) = match rows {
            Rows::None => (Vec::new(), Vec::new(), None),
            Rows::Token(id) => {
                let mut found = storage.list_tokens(id.0.saturating_sub(1), 1)?;
                found.retain(|listed| listed.number == id.0);
                (found, Vec::new(), Some(id.0))
            }
            Rows::All => (storage.list_tokens(0, ALL)?, storage.list_instances()?, None),
        };
        self.each_row(&tokens, |listed, row| {
            let is_asked = asked == Some(listed.number);
            reader.token(listed.number, row, is_asked).map_err(Error)
        })?;
        self.each_row(&instances, |_, row| reader.instance(row).map_err(Error))?;
        let facts = reader.finish();
        let why = self.with_run(|run| why::of(run, event, &facts))?;
        Ok(why.unwrap_or_default())
    }
}
