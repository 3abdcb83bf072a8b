//! A cache of parsed tasks.

use std::rc::Rc;

use serde_json::Value;

use crate::base::lru_cache::LruCache;
use crate::definition::problem::Problems;
use crate::definition::task::Task;

/// Parsed tasks by their text: an executor gets the same few tasks again and again.
#[derive(Default)]
pub struct TaskCache(LruCache<Task>);

impl TaskCache {
    pub fn task(&mut self, text: &str) -> Result<Rc<Task>, String> {
        self.0.get_or_try_insert(text, read)
    }
}

fn read(text: &str) -> Result<Task, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let problems = Problems::prechecked();
    let task = Task::read(&value, "", &problems).filter(|_| !problems.has_errors());
    task.ok_or_else(|| {
        let first = problems.into_sorted().first().map(ToString::to_string);
        format!("the task cannot be read: {}", first.unwrap_or_default())
    })
}
