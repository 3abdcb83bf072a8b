//! Parsed tasks, so that an order costs no parsing.

use std::rc::Rc;

use serde_json::Value;

use crate::model::problem::Problems;
use crate::model::task::Task;

/// Tasks seen before, by their text: an executor gets the same few tasks again and again.
#[derive(Default)]
pub struct TaskCache(Vec<(Box<str>, Rc<Task>)>);

impl TaskCache {
    const MOST: usize = 64;

    pub fn task(&mut self, text: &str) -> Result<Rc<Task>, String> {
        if let Some(index) = self.0.iter().position(|(known, _)| **known == *text) {
            return Ok(Rc::clone(&self.0[index].1));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let problems = Problems::trusting();
        let task = Task::read(&value, "", &problems).filter(|_| !problems.has_errors());
        let task = task.ok_or_else(|| {
            let first = problems.into_sorted().first().map(ToString::to_string);
            format!("the task cannot be read: {}", first.unwrap_or_default())
        })?;
        let task = Rc::new(task);
        if self.0.len() >= Self::MOST {
            self.0.remove(0);
        }
        self.0.push((text.into(), Rc::clone(&task)));
        Ok(task)
    }
}
