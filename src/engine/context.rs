//! The run's data: `input` never changes, `state` and `output` are written by mappings, one row per top-level name.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::model::failure::Failure;
use crate::model::limits::CONTEXT_BYTES;
use crate::model::path::{Path, Root};
use crate::model::text::json;

#[derive(Clone, Debug)]
pub struct Context {
    pub input: Rc<Value>,
    state: Value,
    output: Value,
    /// Bytes of each row, so that the limit costs no second look at what did not change.
    sizes: BTreeMap<String, usize>,
    total_bytes: usize,
    /// Rows as they are to be saved; `None`: to be deleted.
    changed: BTreeMap<String, Option<String>>,
}

impl Context {
    pub fn new(input: Rc<Value>) -> Context {
        Context {
            input,
            state: Value::Object(Map::new()),
            output: Value::Object(Map::new()),
            sizes: BTreeMap::new(),
            total_bytes: 0,
            changed: BTreeMap::new(),
        }
    }

    /// Puts back a row that was saved before.
    pub fn restore(&mut self, key: &str, text: &str) -> Result<(), String> {
        let (root, name) = split_key(key).ok_or_else(|| format!("{key} is no name in the context"))?;
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        self.account(key, text.len());
        self.root_mut(root).insert(name.to_string(), value);
        Ok(())
    }

    pub fn state(&self) -> &Value {
        &self.state
    }

    pub fn output(&self) -> &Value {
        &self.output
    }

    /// Writes all values or none: over the limit, the context is as it was. Returns what stood there before.
    pub fn write(&mut self, values: Vec<(&Path, Value)>) -> Result<Vec<(String, Option<Value>)>, Failure> {
        let mut touched: Vec<(Root, String, Option<Value>)> = Vec::new();
        for (path, value) in values {
            let name = path.top().to_string();
            if !touched
                .iter()
                .any(|(root, other, _)| *root == path.root && *other == name)
            {
                let before = self.root(path.root).get(&name).cloned();
                touched.push((path.root, name, before));
            }
            path.write(self.root_mut(path.root), value);
        }
        let mut rows = Vec::with_capacity(touched.len());
        for (root, name, _) in &touched {
            let key = format!("{}.{name}", root.name());
            let text = self.root(*root).get(name).map(json);
            let bytes_before = self.account(&key, text.as_ref().map_or(0, String::len));
            rows.push((key, text, bytes_before));
        }
        if self.total_bytes > CONTEXT_BYTES {
            let bytes = self.total_bytes;
            for (root, name, before) in touched {
                match before {
                    Some(value) => self.root_mut(root).insert(name, value),
                    None => self.root_mut(root).remove(&name),
                };
            }
            for (key, _, bytes_before) in rows {
                self.account(&key, bytes_before);
            }
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the context would hold {bytes} bytes; the limit is {CONTEXT_BYTES}"),
            ));
        }
        self.changed
            .extend(rows.into_iter().map(|(key, text, _)| (key, text)));
        let before = touched.into_iter();
        Ok(before
            .map(|(root, name, before)| (format!("{}.{name}", root.name()), before))
            .collect())
    }

    /// Puts back what stood at `key`.
    pub fn undo(&mut self, key: &str, before: Option<Value>) {
        let Some((root, name)) = split_key(key) else {
            return;
        };
        let text = before.as_ref().map(json);
        self.account(key, text.as_ref().map_or(0, String::len));
        match before {
            Some(value) => self.root_mut(root).insert(name.to_string(), value),
            None => self.root_mut(root).remove(name),
        };
        self.changed.insert(key.to_string(), text);
    }

    /// Forgets everything but the input.
    pub fn clear(&mut self) {
        let keys: Vec<String> = self.sizes.keys().cloned().collect();
        for key in keys {
            self.undo(&key, None);
        }
    }

    /// The rows changed since the last call.
    pub fn take_changes(&mut self) -> BTreeMap<String, Option<String>> {
        std::mem::take(&mut self.changed)
    }

    /// Sets the size of a row; returns what it was.
    fn account(&mut self, key: &str, bytes: usize) -> usize {
        let before = self.sizes.insert(key.to_string(), bytes).unwrap_or(0);
        self.total_bytes = self.total_bytes - before + bytes;
        before
    }

    fn root(&self, root: Root) -> &Map<String, Value> {
        let value = match root {
            Root::State => &self.state,
            Root::Output => &self.output,
            Root::Branch => unreachable!("a branch's output stands on its tokens"),
        };
        // Both are made as objects and only ever written below their top level.
        value
            .as_object()
            .unwrap_or_else(|| unreachable!("a context root is an object"))
    }

    fn root_mut(&mut self, root: Root) -> &mut Map<String, Value> {
        let value = match root {
            Root::State => &mut self.state,
            Root::Output => &mut self.output,
            Root::Branch => unreachable!("a branch's output stands on its tokens"),
        };
        value
            .as_object_mut()
            .unwrap_or_else(|| unreachable!("a context root is an object"))
    }
}

fn split_key(key: &str) -> Option<(Root, &str)> {
    match key.split_once('.')? {
        ("state", name) => Some((Root::State, name)),
        ("output", name) => Some((Root::Output, name)),
        (_, _) => None,
    }
}
