//! The SQLite storage of a run's object. Nothing here awaits, so that all statements of a commit are written together or not at
//! all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use wasm_bindgen::prelude::*;
use worker::{Error, Result, SqlStorage, SqlStorageValue, Storage};

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::run::{MeasuredRows, Patch, WrittenAt};
use crate::storage::commit::{Commit, EVENT, INSTANCE, TOKEN, event_key, token_key, undo_key};
use crate::storage::measured;
use crate::storage::pages::ListedRow;
use crate::storage::restore::Rows;
use crate::storage::row_ids::RowIds;
use crate::storage::rows::COMPLETED_WITH_CONTEXT;
use crate::storage::rows::ListedRowEvent;
use crate::storage::schema;

#[wasm_bindgen(module = "/src/worker/platform/save.mjs")]
extern "C" {
    type Saver;

    #[wasm_bindgen(constructor)]
    fn new(storage: &JsValue, save: &str, delete: &str) -> Saver;

    #[wasm_bindgen(method, catch)]
    fn save(this: &Saver, text: &str, ends: &[u32], rows: u32) -> std::result::Result<(), JsValue>;

    #[wasm_bindgen(method, getter = rowsWritten)]
    fn rows_written(this: &Saver) -> f64;

    #[wasm_bindgen(method, getter = rowsRead)]
    fn rows_read(this: &Saver) -> f64;
}

/// Above every possible number of rows.
pub const ALL: u64 = u32::MAX as u64;

pub struct Sqlite {
    sql: SqlStorage,
    saver: Saver,
    row_ids: RefCell<RowIds>,
    /// What Cloudflare bills since the object was loaded, without commits: `saver` counts those.
    rows_written: Cell<usize>,
    rows_read: Cell<usize>,
}

impl Sqlite {
    pub fn new(storage: &Storage) -> Sqlite {
        let sql = storage.sql();
        Sqlite {
            saver: Saver::new(storage.as_raw().as_ref(), schema::SAVE, schema::DELETE),
            sql,
            row_ids: RefCell::default(),
            rows_written: Cell::new(0),
            rows_read: Cell::new(0),
        }
    }

    /// Whether the object has a run. Migrates the rows of older builds. Writes nothing if there is no run, so that a request for an
    /// unknown run leaves no trace.
    pub fn has_run(&self) -> Result<bool> {
        let tables = self.read(schema::TABLES, Vec::new())?;
        let tables = tables.first().and_then(|row| row.first()).map_or(0, integer);
        let Some(version) = schema::version_of(tables) else {
            return Ok(false);
        };
        for older in version..schema::VERSION {
            for statement in schema::migrate_from(older) {
                self.write(statement)?;
            }
        }
        Ok(true)
    }

    /// Creates the table. Returns `false` if it exists.
    pub fn create(&self) -> Result<bool> {
        let is_new = self.write(schema::CREATE)? > 0;
        if is_new {
            self.row_ids.take();
        }
        Ok(is_new)
    }

    /// Undoes `create` when the first commit has failed.
    pub fn remove(&self) -> Result<()> {
        self.write(schema::REMOVE).map(|_| ())
    }

    /// Counts a wake that could not be saved. In a row, because the count must survive a restart of the object.
    pub fn count_failed_wake(&self) -> Result<()> {
        match self.write(schema::COUNT_FAILED_WAKE)? {
            0 => self.write(schema::FIRST_FAILED_WAKE).map(|_| ()),
            _counted => Ok(()),
        }
    }

    /// Returns the number of rows written.
    fn write(&self, statement: &str) -> Result<usize> {
        let cursor = self.sql.exec(statement, Vec::new())?;
        let written = cursor.rows_written();
        self.rows_written.set(self.rows_written.get() + written);
        self.rows_read.set(self.rows_read.get() + cursor.rows_read());
        Ok(written)
    }

    pub fn load(&self, alarm_at: Option<Millis>) -> Result<Rows> {
        let mut rows = Rows {
            alarm_at,
            ..Rows::default()
        };
        let mut last = 0;
        for row in self.read(schema::LOAD_SUMMARY, Vec::new())? {
            let [status, count, last_row, last_event, last_token_event] = columns(&row);
            rows.last_token_event = rows.last_token_event.max(integer(last_token_event));
            last = last.max(integer(last_row));
            rows.last_event = rows.last_event.max(event_number(&text(last_event)).unwrap_or(0));
            rows.counts.push((text(status), integer(count)));
        }
        // Rows without a status are no tokens.
        rows.counts.retain(|(status, _)| !status.is_empty());
        let mut row_ids = RowIds::after(last);
        for row in self.read(schema::LOAD, Vec::new())? {
            let [row_id, key, status, value] = columns(&row);
            let (key, status, value) = (text(key), text(status), text(value));
            // The row of a completed token is final: it needs no id.
            if status != COMPLETED_WITH_CONTEXT {
                row_ids.insert(&key, integer(row_id));
            }
            match token_number(&key) {
                Some(id) => rows.tokens.push((id, status, value)),
                None => rows.run.push((key, value)),
            }
        }
        rows.run.sort_unstable();
        rows.tokens.sort_unstable();
        *self.row_ids.borrow_mut() = row_ids;
        if rows.last_event > 0 {
            let late = self.read(schema::LOAD_LATE, Vec::new())?.into_iter();
            let late = late.map(|row| {
                let [token, epoch] = columns(&row);
                (text(token), integer(epoch))
            });
            rows.late = late.collect();
        }
        Ok(rows)
    }

    /// Events after number `after`, oldest first.
    pub fn list_events(&self, after: u64, most: u64) -> Result<Vec<ListedRow>> {
        self.list(schema::LIST_EVENTS, event_key(after), most)
    }

    /// Events on other rows, after number `after`, oldest first.
    pub fn list_row_events(&self, after: u64, most: u64) -> Result<Vec<ListedRowEvent>> {
        let bindings = vec![after as f64, most as f64];
        let bindings = bindings.into_iter().map(SqlStorageValue::Float).collect();
        let rows = self.read(schema::LIST_ROW_EVENTS, bindings)?.into_iter();
        rows.map(|row| {
            let [key, node_id, token_id, event] = columns(&row);
            Ok(ListedRowEvent {
                key: text(key),
                node_id: Some(text(node_id)).filter(|id| !id.is_empty()),
                token_id: Some(text(token_id)).filter(|id| !id.is_empty()),
                event: from_json(&text(event))?,
            })
        })
        .collect()
    }

    /// Events with a timeout record, after number `after`, oldest first.
    pub fn list_timeouts(&self, after: u64, most: u64) -> Result<Vec<ListedRow>> {
        self.list(schema::LIST_TIMEOUTS, event_key(after), most)
    }

    /// Tokens by id, ended ones included.
    pub fn list_tokens(&self, after: u64, most: u64) -> Result<Vec<ListedRow>> {
        self.list(schema::LIST_TOKENS, token_key(after), most)
    }

    pub fn list_instances(&self) -> Result<Vec<ListedRow>> {
        self.list(schema::LIST_INSTANCES, INSTANCE.to_string(), ALL)
    }

    /// Undo patches that are a row of their own.
    pub fn undo(&self, token: u64, at: WrittenAt) -> Result<Vec<Patch>> {
        let rows = self.read(schema::LOAD_UNDO, vec![undo_key(token, at).into()])?;
        let row = rows.first().and_then(|row| row.first()).map(text);
        Ok(from_json(&row.unwrap_or_default())?)
    }

    fn list(&self, statement: &str, after: String, most: u64) -> Result<Vec<ListedRow>> {
        let bindings = vec![after.into(), SqlStorageValue::Float(most as f64)];
        let rows = self.read(statement, bindings)?.into_iter();
        Ok(rows
            .map(|row| {
                let [row_id, key, status, bytes] = columns(&row);
                ListedRow {
                    row_id: integer(row_id),
                    number: number_in(&text(key)).expect("keys of listed rows end in a number"),
                    status: text(status),
                    bytes: integer(bytes),
                }
            })
            .collect())
    }

    /// The values of a page, in its order. A row may occur twice on the page.
    pub fn values(&self, page: &[ListedRow]) -> Result<Vec<String>> {
        if page.is_empty() {
            return Ok(Vec::new());
        }
        let marks = vec!["?"; page.len()].join(", ");
        let row_ids = page.iter().map(|row| SqlStorageValue::Float(row.row_id as f64));
        let rows = self.read(&schema::LOAD_VALUES.replace('?', &marks), row_ids.collect())?;
        let found: BTreeMap<u64, String> = rows
            .into_iter()
            .map(|row| {
                let [row_id, value] = columns(&row);
                (integer(row_id), text(value))
            })
            .collect();
        page.iter()
            .map(|row| {
                let gone = || Error::RustError(format!("row {} is gone", row.row_id));
                found.get(&row.row_id).cloned().ok_or_else(gone)
            })
            .collect()
    }

    /// How late deadlines were enforced: scope, count, sum and maximum in milliseconds.
    pub fn lateness(&self) -> Result<Vec<(String, u64, u64, u64)>> {
        let rows = self.read(schema::LOAD_LATENESS, Vec::new())?.into_iter();
        Ok(rows
            .map(|row| {
                let [scope, count, sum, most] = columns(&row);
                (text(scope), integer(count), integer(sum), integer(most))
            })
            .collect())
    }

    /// What the metrics of the run are counted from.
    pub fn measured(&self) -> Result<MeasuredRows> {
        let mut rows = MeasuredRows::default();
        for row in self.read(schema::LOAD_MEASURED_EVENTS, Vec::new())? {
            let [key, event] = columns(&row);
            let seq = event_number(&text(key)).unwrap_or(0);
            measured::add_event(&mut rows, seq, &text(event))?;
        }
        for row in self.read(schema::LOAD_MEASURED_TOKENS, Vec::new())? {
            let [status, token] = columns(&row);
            measured::add_token(&mut rows, &text(status), &text(token))?;
        }
        Ok(rows)
    }

    pub fn commit(&self, commit: &Commit) -> Result<()> {
        let batch = commit.encode(&mut self.row_ids.borrow_mut());
        if batch.ends.is_empty() {
            return Ok(());
        }
        Ok(self.saver.save(&batch.text, &batch.ends, batch.rows)?)
    }

    pub fn rows_written(&self) -> usize {
        self.rows_written.get() + self.saver.rows_written() as usize
    }

    pub fn rows_read(&self) -> usize {
        self.rows_read.get() + self.saver.rows_read() as usize
    }

    /// Cloudflare bills an alarm as a row.
    pub fn count_alarm(&self) {
        self.rows_written.set(self.rows_written.get() + 1);
    }

    fn read(&self, statement: &str, bindings: Vec<SqlStorageValue>) -> Result<Vec<Vec<SqlStorageValue>>> {
        let cursor = self.sql.exec(statement, bindings)?;
        let rows = cursor.raw().collect();
        self.rows_read.set(self.rows_read.get() + cursor.rows_read());
        rows
    }
}

fn number_in(key: &str) -> Option<u64> {
    key.split_once('/')?.1.parse().ok()
}

fn event_number(key: &str) -> Option<u64> {
    key.strip_prefix(EVENT)?.parse().ok()
}

fn token_number(key: &str) -> Option<u64> {
    key.strip_prefix(TOKEN)?.parse().ok()
}

fn columns<const N: usize>(row: &[SqlStorageValue]) -> &[SqlStorageValue; N] {
    row.try_into().expect("the statement selects N columns")
}

fn text(value: &SqlStorageValue) -> String {
    match value {
        SqlStorageValue::String(text) => text.clone(),
        _ => String::new(),
    }
}

fn integer(value: &SqlStorageValue) -> u64 {
    match value {
        SqlStorageValue::Integer(number) => *number as u64,
        SqlStorageValue::Float(number) => *number as u64,
        _ => 0,
    }
}
