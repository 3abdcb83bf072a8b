//! The run's data: `input` never changes, `state` and `output` are written by mappings. A top-level name stands on the row of the
//! token that wrote it first, which is written anyway, and has a row of its own once it is written again.

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

/// How often what is written, and what stood there, is gone over: measured, compared, made text of, and saved.
const WRITE_PASSES: u64 = 4;

#[derive(Clone, Debug)]
pub struct Context {
    pub input: Rc<Value>,
    state: Value,
    output: Value,
    names: BTreeMap<String, Name>,
    total_bytes: usize,
    input_steps: OnceCell<u64>,
    /// Names that changed since they were saved, and the token that did it if it was one.
    changed: BTreeMap<String, Option<TokenId>>,
}

/// What there is of a top-level name in the store.
#[derive(Clone, Copy, Debug, Default)]
struct Name {
    /// As text, so that the limit costs no second look at what did not change.
    bytes: usize,
    /// A row of its own: whatever a token says, this counts.
    has_row: bool,
    /// The row of a token, which will not be written again.
    on_token: bool,
}

/// So many values are compared with each other; more of them are looked up.
const FEW: usize = 8;

/// The text of a row that says that nothing stands there any more, whatever a token says.
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

    /// Puts back a row that was saved before.
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

    /// Puts back what a token kept, behind all rows.
    pub fn restore_kept(&mut self, key: &str, value: Value) -> Result<(), String> {
        let (root, name) = split_key(key).ok_or_else(|| format!("{key} is no name in the context"))?;
        let known = self.names.entry(key.to_string()).or_default();
        known.on_token = true;
        if !known.has_row {
            self.account(key, json_bytes(&value));
            self.root_mut(root).insert(name.to_string(), value);
        }
        Ok(())
    }

    /// Steps that writing the input as JSON takes; it never changes.
    pub(in crate::run) fn input_steps(&self) -> u64 {
        *self.input_steps.get_or_init(|| write_steps(&self.input))
    }

    pub fn state(&self) -> &Value {
        &self.state
    }

    pub fn output(&self) -> &Value {
        &self.output
    }

    /// Writes all values or none: over the limit, the context is as it was. Returns the way back.
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
        let mut way_back = Vec::new();
        for ((root, name, before), (key, _)) in touched.iter().zip(&keys) {
            way_back.extend(inverse(key, before.as_ref(), self.root(*root).get(name)));
        }
        Ok(way_back)
    }

    /// A name is measured and saved as a whole, whatever part of it is written. One that was there is copied for the way
    /// back, a new one for the token that keeps it.
    fn charge_for(&self, values: &[(&Path, Value)], meter: &Meter) -> Result<(), Failure> {
        let pay = |steps| meter.charge_for("what is written to the context", steps);
        let mut seen = BTreeSet::new();
        for (index, (path, value)) in values.iter().enumerate() {
            let Some(before) = self.root(path.root).get(path.top()) else {
                pay(copy_steps(value) + WRITE_PASSES * write_steps(value))?;
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
            pay(undo + WRITE_PASSES * write_steps(value))?;
        }
        Ok(())
    }

    /// Takes writes back, last first, where they still stand. What that makes of the names' sizes is counted by
    /// `count_changed`: many patches may be of one name.
    pub fn take_back(&mut self, patches: &[Patch]) {
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

    /// As `take_back`, for several lists, the last one first; returns the way back from there.
    pub fn take_back_noted<'a>(&mut self, lists: impl IntoIterator<Item = &'a [Patch]>) -> Vec<Patch> {
        let mut before: BTreeMap<String, Option<Value>> = BTreeMap::new();
        for patches in lists {
            for patch in patches {
                if !before.contains_key(&patch.name) {
                    before.insert(patch.name.clone(), self.value_of(&patch.name).cloned());
                }
            }
            self.take_back(patches);
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

    /// Forgets everything but the input.
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

    /// What changed since the last call. A name that is nowhere in the store yet is offered to the token that wrote it.
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

    /// Sets the size of a name; returns what it was.
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
