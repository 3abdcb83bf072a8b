//! The storage of the object: rows in its SQLite, and its alarm.

use wasm_bindgen_futures::JsFuture;
use worker::State;

use crate::base::time::Millis;
use crate::host;
use crate::run::{MeasuredRows, Patch, WrittenAt};
use crate::storage::commit::Commit;
use crate::storage::pages::ListedRow;
use crate::storage::restore::Rows;
use crate::storage::rows::ListedRowEvent;
use crate::worker::platform::{self, log_error};
use crate::worker::sqlite::Sqlite;

pub struct ObjectStorage {
    state: State,
    storage: worker::Storage,
    pub sqlite: Sqlite,
}

impl ObjectStorage {
    pub fn new(state: State) -> ObjectStorage {
        let storage = state.storage();
        ObjectStorage {
            sqlite: Sqlite::new(&storage),
            storage,
            state,
        }
    }

    /// Not awaited: an await would split the commit.
    fn set_alarm(&self, at: Millis) {
        self.sqlite.count_alarm();
        // The engine sets moment 0 for "at once". The platform refuses it, and no alarm would be set.
        let date = js_sys::Date::new(&(at.max(1) as f64).into());
        match self
            .storage
            .as_raw()
            .set_alarm(date, wasm_bindgen::JsValue::NULL.into())
        {
            Ok(promise) => wasm_bindgen_futures::spawn_local(async move {
                if let Err(error) = JsFuture::from(promise).await {
                    log_error("set_alarm_failed", &platform::message_of(&error));
                }
            }),
            Err(error) => log_error("set_alarm_failed", &platform::message_of(&error)),
        }
    }
}

fn failed(error: worker::Error) -> host::Error {
    host::Error(error.to_string())
}

impl host::Storage for ObjectStorage {
    fn has_table(&self) -> host::Result<bool> {
        self.sqlite.has_run().map_err(failed)
    }

    fn create_table(&self) -> host::Result<bool> {
        self.sqlite.create().map_err(failed)
    }

    fn remove_table(&self) -> host::Result<()> {
        self.sqlite.remove().map_err(failed)
    }

    async fn alarm_at(&self) -> host::Result<Option<Millis>> {
        let alarm_at = self.storage.get_alarm().await.map_err(failed)?;
        Ok(alarm_at.map(|at| at as Millis))
    }

    fn load(&self, alarm_at: Option<Millis>) -> host::Result<Rows> {
        self.sqlite.load(alarm_at).map_err(failed)
    }

    /// No await in between, so the platform writes both as one.
    fn commit(&self, commit: &Commit, alarm: Option<Millis>) -> host::Result<()> {
        self.sqlite.commit(commit).map_err(failed)?;
        if let Some(at) = alarm {
            self.set_alarm(at);
        }
        Ok(())
    }

    fn count_failed_wake(&self) -> host::Result<()> {
        self.sqlite.count_failed_wake().map_err(failed)
    }

    fn delete_all(&self) {
        let storage = self.state.storage();
        wasm_bindgen_futures::spawn_local(async move {
            if let Err(error) = storage.delete_all().await {
                log_error("delete_failed", &error.to_string());
            }
        });
    }

    fn list_tokens(&self, after: u64, limit: u64) -> host::Result<Vec<ListedRow>> {
        self.sqlite.list_tokens(after, limit).map_err(failed)
    }

    fn list_events(&self, after: u64, limit: u64) -> host::Result<Vec<ListedRow>> {
        self.sqlite.list_events(after, limit).map_err(failed)
    }

    fn list_row_events(&self, after: u64, limit: u64) -> host::Result<Vec<ListedRowEvent>> {
        self.sqlite.list_row_events(after, limit).map_err(failed)
    }

    fn list_timeouts(&self, after: u64, limit: u64) -> host::Result<Vec<ListedRow>> {
        self.sqlite.list_timeouts(after, limit).map_err(failed)
    }

    fn list_instances(&self) -> host::Result<Vec<ListedRow>> {
        self.sqlite.list_instances().map_err(failed)
    }

    fn values(&self, page: &[ListedRow]) -> host::Result<Vec<String>> {
        self.sqlite.values(page).map_err(failed)
    }

    fn undo(&self, token: u64, at: WrittenAt) -> host::Result<Vec<Patch>> {
        self.sqlite.undo(token, at).map_err(failed)
    }

    fn measured(&self) -> host::Result<MeasuredRows> {
        self.sqlite.measured().map_err(failed)
    }

    fn rows_written(&self) -> u64 {
        self.sqlite.rows_written() as u64
    }

    fn lateness(&self) -> host::Result<Vec<(String, u64, u64, u64)>> {
        self.sqlite.lateness().map_err(failed)
    }
}
