//! The object's SQLite. Nothing here awaits: all statements of one commit land together or not at all.

use std::cell::Cell;

use wasm_bindgen::prelude::*;
use worker::{Result, SqlStorage, SqlStorageValue, Storage};

use super::commit::{Commit, EVENT, event_key};
use super::memory::Rows;
use super::schema;
use crate::model::time::Millis;

#[wasm_bindgen(module = "/src/store/save.mjs")]
extern "C" {
    type Saver;

    #[wasm_bindgen(constructor)]
    fn new(sql: &JsValue, save_run: &str, save_token: &str, delete_run: &str) -> Saver;

    #[wasm_bindgen(method, catch)]
    fn save(
        this: &Saver,
        run: Vec<String>,
        tokens: Vec<String>,
        deleted: Vec<String>,
    ) -> std::result::Result<(), JsValue>;

    #[wasm_bindgen(method, getter = rowsWritten)]
    fn rows_written(this: &Saver) -> f64;

    #[wasm_bindgen(method, getter = rowsRead)]
    fn rows_read(this: &Saver) -> f64;
}

pub struct Sqlite {
    sql: SqlStorage,
    saver: Saver,
    /// What Cloudflare would bill for all but the commits, since the object came into memory.
    rows_written: Cell<usize>,
    rows_read: Cell<usize>,
}

impl Sqlite {
    pub fn new(storage: &Storage) -> Sqlite {
        let sql = storage.sql();
        Sqlite {
            saver: Saver::new(
                sql.as_ref(),
                schema::SAVE_RUN,
                schema::SAVE_TOKENS,
                schema::DELETE_RUN,
            ),
            sql,
            rows_written: Cell::new(0),
            rows_read: Cell::new(0),
        }
    }

    /// A run lives here. Asking writes nothing, so that a question about an unknown run leaves no trace.
    pub fn holds_run(&self) -> Result<bool> {
        let rows = self.read(schema::EXISTS, Vec::new())?;
        Ok(rows
            .first()
            .and_then(|row| row.first())
            .is_some_and(|count| integer(count) > 0))
    }

    /// Makes the tables of a run. `false`: they were there.
    pub fn create(&self) -> Result<bool> {
        for statement in schema::migrate_from(0) {
            let cursor = self.sql.exec(statement, Vec::new())?;
            if cursor.rows_written() == 0 {
                return Ok(false);
            }
            self.rows_written
                .set(self.rows_written.get() + cursor.rows_written());
            self.rows_read.set(self.rows_read.get() + cursor.rows_read());
        }
        Ok(true)
    }

    pub fn load(&self, alarm_at: Option<Millis>) -> Result<Rows> {
        let noted = self.last_event()?;
        let late = match noted {
            0 => Vec::new(),
            _some => self.read(schema::LOAD_LATE, Vec::new())?,
        };
        Ok(Rows {
            run: self
                .read(schema::LOAD_RUN, Vec::new())?
                .into_iter()
                .filter_map(|row| Some((text(row.first()?), text(row.get(1)?))))
                .collect(),
            tokens: self.read_tokens(schema::LOAD_LIVE_TOKENS, Vec::new())?,
            counts: self
                .read(schema::LOAD_COUNTS, Vec::new())?
                .into_iter()
                .filter_map(|row| Some((text(row.first()?), integer(row.get(1)?))))
                .collect(),
            alarm_at,
            noted,
            late: late
                .into_iter()
                .filter_map(|row| Some((text(row.first()?), integer(row.get(1)?))))
                .collect(),
        })
    }

    fn last_event(&self) -> Result<u64> {
        let rows = self.read(schema::LOAD_LAST_EVENT, Vec::new())?;
        let key = rows.first().and_then(|row| row.first()).map(text);
        let number = key.and_then(|key| key.strip_prefix(EVENT)?.parse().ok());
        Ok(number.unwrap_or(0))
    }

    /// Events after number `after`, oldest first: number, row.
    pub fn events(&self, after: u64, most: u64) -> Result<Vec<(u64, String)>> {
        self.read_events(schema::LOAD_EVENTS, after, most)
    }

    /// Those of them that left a record behind.
    pub fn timeouts(&self, after: u64, most: u64) -> Result<Vec<(u64, String)>> {
        self.read_events(schema::LOAD_TIMEOUTS, after, most)
    }

    fn read_events(&self, statement: &str, after: u64, most: u64) -> Result<Vec<(u64, String)>> {
        let bindings = vec![event_key(after).into(), SqlStorageValue::Float(most as f64)];
        let rows = self.read(statement, bindings)?.into_iter().filter_map(|row| {
            let key = text(row.first()?);
            Some((key.strip_prefix(EVENT)?.parse().ok()?, text(row.get(1)?)))
        });
        Ok(rows.collect())
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

    pub fn instances(&self) -> Result<Vec<(String, String)>> {
        let rows = self.read(schema::LOAD_INSTANCES, Vec::new())?.into_iter();
        Ok(rows
            .filter_map(|row| Some((text(row.first()?), text(row.get(1)?))))
            .collect())
    }

    /// Tokens by id, terminal ones too: id, status, row.
    pub fn tokens(&self, after: u64, most: u64) -> Result<Vec<(u64, String, String)>> {
        let bindings = vec![
            SqlStorageValue::Float(after as f64),
            SqlStorageValue::Float(most as f64),
        ];
        self.read_tokens(schema::LOAD_TOKENS, bindings)
    }

    pub fn commit(&self, commit: Commit) -> Result<()> {
        let run = commit.run.into_iter().flat_map(|(key, value)| [key, value]);
        let tokens = commit.tokens.into_iter();
        let tokens = tokens.flat_map(|(id, status, row)| [id.to_string(), status.to_string(), row]);
        Ok(self.saver.save(run.collect(), tokens.collect(), commit.deleted)?)
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

    fn read_tokens(
        &self,
        statement: &str,
        bindings: Vec<SqlStorageValue>,
    ) -> Result<Vec<(u64, String, String)>> {
        Ok(self
            .read(statement, bindings)?
            .into_iter()
            .filter_map(|row| Some((integer(row.first()?), text(row.get(1)?), text(row.get(2)?))))
            .collect())
    }
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
