//! The object's SQLite. Nothing here awaits: all statements of one commit land together or not at all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use wasm_bindgen::prelude::*;
use worker::{Error, Result, SqlStorage, SqlStorageValue, Storage};

use crate::base::time::Millis;
use crate::run::{Patch, WrittenAt};
use crate::storage::commit::{Commit, EVENT, INSTANCE, TOKEN, event_key, token_key, undo_key};
use crate::storage::pages::Listed;
use crate::storage::restore::Rows;
use crate::storage::row_ids::RowIds;
use crate::storage::rows::KEEPING;
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

/// More rows than there can be.
pub const ALL: u64 = u32::MAX as u64;

pub struct Sqlite {
    sql: SqlStorage,
    saver: Saver,
    places: RefCell<RowIds>,
    /// What Cloudflare would bill for all but the commits, since the object came into memory.
    rows_written: Cell<usize>,
    rows_read: Cell<usize>,
}

impl Sqlite {
    pub fn new(storage: &Storage) -> Sqlite {
        let sql = storage.sql();
        Sqlite {
            saver: Saver::new(storage.as_raw().as_ref(), schema::SAVE, schema::DELETE),
            sql,
            places: RefCell::default(),
            rows_written: Cell::new(0),
            rows_read: Cell::new(0),
        }
    }

    /// A run lives here, and its rows are as this build reads them: those of an older one are brought up to date. Asking
    /// about an unknown run writes nothing, so that it leaves no trace.
    pub fn holds_run(&self) -> Result<bool> {
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

    /// Makes the table of a run. `false`: it was there.
    pub fn create(&self) -> Result<bool> {
        let is_new = self.write(schema::CREATE)? > 0;
        if is_new {
            self.places.take();
        }
        Ok(is_new)
    }

    /// Takes back `create`, where nothing could be put into the table.
    pub fn remove(&self) -> Result<()> {
        self.write(schema::REMOVE).map(|_| ())
    }

    /// What woke the run could not be saved. Counted in a row of its own: the count must outlive the object.
    pub fn count_failed_wake(&self) -> Result<()> {
        match self.write(schema::COUNT_FAILED_WAKE)? {
            0 => self.write(schema::FIRST_FAILED_WAKE).map(|_| ()),
            _counted => Ok(()),
        }
    }

    /// How many rows it wrote.
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
            let [status, count, last_row, last_event] = &row[..] else {
                continue;
            };
            last = last.max(integer(last_row));
            rows.noted = rows.noted.max(event_of(&text(last_event)).unwrap_or(0));
            rows.counts.push((text(status), integer(count)));
        }
        // What has no status is no token.
        rows.counts.retain(|(status, _)| !status.is_empty());
        let mut places = RowIds::up_to(last);
        for row in self.read(schema::LOAD, Vec::new())? {
            let [place, key, status, value] = &row[..] else {
                continue;
            };
            let (key, status, value) = (text(key), text(status), text(value));
            if status != KEEPING {
                places.note(&key, integer(place));
            }
            match token_of(&key) {
                Some(id) => rows.tokens.push((id, status, value)),
                None => rows.run.push((key, value)),
            }
        }
        rows.run.sort_unstable();
        rows.tokens.sort_unstable();
        *self.places.borrow_mut() = places;
        if rows.noted > 0 {
            let late = self.read(schema::LOAD_LATE, Vec::new())?.into_iter();
            let late = late.filter_map(|row| Some((text(row.first()?), integer(row.get(1)?))));
            rows.late = late.collect();
        }
        Ok(rows)
    }

    /// Events after number `after`, oldest first.
    pub fn list_events(&self, after: u64, most: u64) -> Result<Vec<Listed>> {
        self.list(schema::LIST_EVENTS, event_key(after), most)
    }

    /// Those of them that left a record behind.
    pub fn list_timeouts(&self, after: u64, most: u64) -> Result<Vec<Listed>> {
        self.list(schema::LIST_TIMEOUTS, event_key(after), most)
    }

    /// Tokens by id, terminal ones too.
    pub fn list_tokens(&self, after: u64, most: u64) -> Result<Vec<Listed>> {
        self.list(schema::LIST_TOKENS, token_key(after), most)
    }

    pub fn list_instances(&self) -> Result<Vec<Listed>> {
        self.list(schema::LIST_INSTANCES, INSTANCE.to_string(), ALL)
    }

    /// The way back from one of a token's writes that is a row of its own.
    pub fn undo(&self, token: u64, at: WrittenAt) -> Result<Vec<Patch>> {
        let rows = self.read(schema::LOAD_UNDO, vec![undo_key(token, at).into()])?;
        let row = rows.first().and_then(|row| row.first()).map(text);
        Ok(serde_json::from_str(&row.unwrap_or_default())?)
    }

    fn list(&self, statement: &str, after: String, most: u64) -> Result<Vec<Listed>> {
        let bindings = vec![after.into(), SqlStorageValue::Float(most as f64)];
        let rows = self.read(statement, bindings)?.into_iter();
        Ok(rows
            .filter_map(|row| {
                let [place, key, status, bytes] = &row[..] else {
                    return None;
                };
                let key = text(key);
                let (_, number) = key.split_once('/')?;
                Some(Listed {
                    place: integer(place),
                    number: number.parse().ok()?,
                    status: text(status),
                    bytes: integer(bytes),
                })
            })
            .collect())
    }

    /// The texts of one page, in its order. A row may be asked for twice.
    pub fn values(&self, page: &[Listed]) -> Result<Vec<String>> {
        if page.is_empty() {
            return Ok(Vec::new());
        }
        let marks = vec!["?"; page.len()].join(", ");
        let places = page.iter().map(|row| SqlStorageValue::Float(row.place as f64));
        let rows = self.read(&schema::LOAD_VALUES.replace('?', &marks), places.collect())?;
        let found: BTreeMap<u64, String> = rows
            .into_iter()
            .filter_map(|row| Some((integer(row.first()?), text(row.get(1)?))))
            .collect();
        page.iter()
            .map(|row| {
                let gone = || Error::RustError(format!("row {} is gone", row.place));
                found.get(&row.place).cloned().ok_or_else(gone)
            })
            .collect()
    }

    /// How late deadlines were enforced: scope, count, milliseconds in all, at most.
    pub fn lateness(&self) -> Result<Vec<(String, u64, u64, u64)>> {
        let rows = self.read(schema::LOAD_LATENESS, Vec::new())?.into_iter();
        Ok(rows
            .filter_map(|row| {
                let number = |index: usize| row.get(index).map(integer);
                Some((text(row.first()?), number(1)?, number(2)?, number(3)?))
            })
            .collect())
    }

    pub fn commit(&self, commit: &Commit) -> Result<()> {
        let parcel = commit.parcel(&mut self.places.borrow_mut());
        if parcel.ends.is_empty() {
            return Ok(());
        }
        Ok(self.saver.save(&parcel.text, &parcel.ends, parcel.rows)?)
    }

    pub fn rows_written(&self) -> usize {
        self.rows_written.get() + self.saver.rows_written() as usize
    }

    pub fn rows_read(&self) -> usize {
        self.rows_read.get() + self.saver.rows_read() as usize
    }

    /// An alarm is a row, too.
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

fn event_of(key: &str) -> Option<u64> {
    key.strip_prefix(EVENT)?.parse().ok()
}

fn token_of(key: &str) -> Option<u64> {
    key.strip_prefix(TOKEN)?.parse().ok()
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
