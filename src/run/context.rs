//! The run's data: `input` never changes; mappings write `state` and `output`. A top-level name is first stored on the row of
//! the token that wrote it, because that row is written anyway. When it is written again it gets its own row.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::base::compute::{Meter, copy_steps, write_steps};
use crate::base::failure::Failure;
use crate::base::limits::CONTEXT_BYTES;
use crate::base::text::{json_bytes, json_text};
use crate::definition::path::{Path, Root};
use crate::run::decision::Write;
use crate::run::recovery::undo::{Patch, inverse};
use crate::run::token::TokenId;

/// Passes over a written value and the value it replaces: measuring, comparing, serializing, saving.
const WRITE_PASSES: u64 = 4;

#[derive(Clone, Debug)]
pub struct Context {
    pub input: Rc<Value>,
    state: Value,
    output: Value,
    names: BTreeMap<String, Name>,
    total_bytes: usize,
    input_steps: OnceCell<u64>,
    /// Names that changed since the last save, with the token that changed them, if any.
    changed: BTreeMap<String, Option<TokenId>>,
}

/// How large a top-level name is and where it is stored.
#[derive(Clone, Copy, Debug, Default)]
struct Name {
    /// The size as JSON text, so that checking the limit does not measure unchanged names again.
    bytes: usize,
    /// It has its own row, which overrides the copy on a token.
    has_row: bool,
    /// It is on the row of an ended token, which is not written again.
    on_token: bool,
}

/// Up to this many paths are compared pairwise; more go through a set.
const FEW: usize = 8;

/// The text of the row of a deleted name. The row is kept because it overrides the copy on a token.
pub const GONE: &str = "";

impl Context {
    pub fn new(input: Rc<Value>) -> Context {
        Context {
            input,
            state: Value::Object(Map::new()),
            output: Value::Object(Map::new()),
            names: BTreeMap::new(),
            total_bytes: 0,
            input_steps: OnceCell::new(),
            changed: BTreeMap::new(),
        }
    }

    /// Restores a saved row.
    pub fn restore(&mut self, key: &str, text: &str) -> Result<(), String> {
        let (root, name) = split_key(key).ok_or_else(|| format!("{key} is no name in the context"))?;
        self.account(key, text.len());
        self.names.entry(key.to_string()).or_default().has_row = true;
        if text != GONE {
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            self.root_mut(root).insert(name.to_string(), value);
        }
        Ok(())
    }

    /// Restores a name stored on a token. Must be called after all rows are restored, because rows override tokens.
    pub fn restore_from_token(&mut self, key: &str, value: Value) -> Result<(), String> {
        let (root, name) = split_key(key).ok_or_else(|| format!("{key} is no name in the context"))?;
        let known = self.names.entry(key.to_string()).or_default();
        known.on_token = true;
        if !known.has_row {
            self.account(key, json_bytes(&value));
            self.root_mut(root).insert(name.to_string(), value);
        }
        Ok(())
    }

    /// Steps to write the input as JSON. Computed once, since the input never changes.
    pub(in crate::run) fn input_steps(&self) -> u64 {
        *self.input_steps.get_or_init(|| write_steps(&self.input))
    }

    pub fn state(&self) -> &Value {
        &self.state
    }

    pub fn output(&self) -> &Value {
        &self.output
    }

    /// Writes all values or none: a write that would exceed the limit leaves the context unchanged. Returns the patches that
    /// undo the write.
    pub fn write(
        &mut self,
        values: Vec<(&Path, Value)>,
        writer: Option<TokenId>,
        meter: &Meter,
    ) -> Result<Vec<Patch>, Failure> {
        self.charge_for(&values, meter)?;
        let is_few = values.len() <= FEW;
        let mut touched: Vec<(Root, String, Option<Value>)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (path, value) in values {
            let is_new = match is_few {
                true => !touched
                    .iter()
                    .any(|(root, name, _)| *root == path.root && name == path.top()),
                false => seen.insert((path.root, path.top())),
            };
            if is_new {
                let name = path.top().to_string();
                let before = self.root(path.root).get(&name).cloned();
                touched.push((path.root, name, before));
            }
            path.write(self.root_mut(path.root), value);
        }
        let mut keys = Vec::with_capacity(touched.len());
        for (root, name, _) in &touched {
            let key = format!("{}.{name}", root.name());
            let bytes = self.root(*root).get(name).map_or(0, json_bytes);
            let bytes_before = self.account(&key, bytes);
            keys.push((key, bytes_before));
        }
        if self.total_bytes > CONTEXT_BYTES {
            let bytes = self.total_bytes;
            for (root, name, before) in touched {
                match before {
                    Some(value) => self.root_mut(root).insert(name, value),
                    None => self.root_mut(root).remove(&name),
                };
            }
            for (key, bytes_before) in keys {
                self.account(&key, bytes_before);
            }
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the context would hold {bytes} bytes; the limit is {CONTEXT_BYTES}"),
            ));
        }
        for (key, _) in &keys {
            self.changed.insert(key.clone(), writer);
        }
        let mut undo = Vec::new();
        for ((root, name, before), (key, _)) in touched.iter().zip(&keys) {
            undo.extend(inverse(key, before.as_ref(), self.root(*root).get(name)));
        }
        Ok(undo)
    }

    /// A name is measured and saved whole, whichever part of it is written. An existing value is copied for the undo patches,
    /// a new one for the token that stores it.
    fn charge_for(&self, values: &[(&Path, Value)], meter: &Meter) -> Result<(), Failure> {
        let charge = |steps| meter.charge_for("what is written to the context", steps);
        let mut seen = BTreeSet::new();
        for (index, (path, value)) in values.iter().enumerate() {
            let Some(before) = self.root(path.root).get(path.top()) else {
                charge(copy_steps(value) + WRITE_PASSES * write_steps(value))?;
                continue;
            };
            let is_same = |(other, _): &(&Path, Value)| (other.root, other.top()) == (path.root, path.top());
            let is_first = match values.len() <= FEW {
                true => !values[..index].iter().any(is_same),
                false => seen.insert((path.root, path.top())),
            };
            let undo = match is_first {
                true => copy_steps(before) + WRITE_PASSES * write_steps(before),
                false => 0,
            };
            charge(undo + WRITE_PASSES * write_steps(value))?;
        }
        Ok(())
    }

    /// Undoes writes, last first, where they were not overwritten. The caller updates the sizes with `count_changed`
    /// afterwards: many patches may belong to one name.
    pub fn undo(&mut self, patches: &[Patch]) {
        for patch in patches.iter().rev() {
            let Some((root, name)) = split_key(&patch.name) else {
                continue;
            };
            let mut value = self.root_mut(root).remove(name);
            patch.apply(&mut value);
            if let Some(value) = value {
                self.root_mut(root).insert(name.to_string(), value);
            }
            self.changed.insert(patch.name.clone(), None);
        }
    }

    /// As `undo`, for several lists, latest first. Returns the patches that undo this.
    pub fn undo_with_inverse<'a>(&mut self, lists: impl IntoIterator<Item = &'a [Patch]>) -> Vec<Patch> {
        let mut before: BTreeMap<String, Option<Value>> = BTreeMap::new();
        for patches in lists {
            for patch in patches {
                if !before.contains_key(&patch.name) {
                    before.insert(patch.name.clone(), self.value_of(&patch.name).cloned());
                }
            }
            self.undo(patches);
        }
        self.count_changed();
        let names = before.iter();
        names
            .flat_map(|(name, before)| inverse(name, before.as_ref(), self.value_of(name)))
            .collect()
    }

    pub fn count_changed(&mut self) {
        let keys: Vec<String> = self.changed.keys().cloned().collect();
        for key in keys {
            let bytes = self.value_of(&key).map_or(0, json_bytes);
            self.account(&key, bytes);
        }
    }

    /// Deletes everything but the input.
    pub fn clear(&mut self) {
        let keys: Vec<String> = self.names.keys().cloned().collect();
        for key in keys {
            if let Some((root, name)) = split_key(&key) {
                self.root_mut(root).remove(name);
                self.account(&key, 0);
                self.changed.insert(key, None);
            }
        }
    }

    /// The changes since the last call. A name that is not stored yet is offered to the token that wrote it.
    pub fn take_changes(&mut self, mut keeps: impl FnMut(TokenId, &str, &Value) -> bool) -> Vec<Write> {
        let mut writes = Vec::new();
        for (key, writer) in std::mem::take(&mut self.changed) {
            let mut name = self.names.get(&key).copied().unwrap_or_default();
            let is_new = !name.has_row && !name.on_token;
            let value = self.value_of(&key);
            match (value, writer) {
                (Some(value), Some(writer)) if is_new && keeps(writer, &key, value) => name.on_token = true,
                (None, _) if is_new => {}
                (None, _) if !name.on_token => {
                    name.has_row = false;
                    writes.push(Write::DeleteContext { key: key.clone() });
                }
                (value, _) => {
                    name.has_row = true;
                    let text = value.map_or(GONE.to_string(), json_text);
                    writes.push(Write::SaveContext {
                        key: key.clone(),
                        text,
                    });
                }
            }
            self.names.insert(key, name);
        }
        writes
    }

    /// Sets the size of a name and returns the previous one.
    fn account(&mut self, key: &str, bytes: usize) -> usize {
        let known = self.names.entry(key.to_string()).or_default();
        let before = std::mem::replace(&mut known.bytes, bytes);
        self.total_bytes = self.total_bytes - before + bytes;
        before
    }

    fn value_of(&self, key: &str) -> Option<&Value> {
        let (root, name) = split_key(key)?;
        self.root(root).get(name)
    }

    fn root(&self, root: Root) -> &Map<String, Value> {
        let value = match root {
            Root::State => &self.state,
            Root::Output => &self.output,
            Root::Branch => unreachable!("a branch's output is stored on its tokens"),
        };
        // Both are created as objects and only written below their top level.
        value
            .as_object()
            .unwrap_or_else(|| unreachable!("a context root is an object"))
    }

    fn root_mut(&mut self, root: Root) -> &mut Map<String, Value> {
        let value = match root {
            Root::State => &mut self.state,
            Root::Output => &mut self.output,
            Root::Branch => unreachable!("a branch's output is stored on its tokens"),
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
