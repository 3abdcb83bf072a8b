//! The values an evaluation works on, and their conversion from and to JSON.
//!
//! A value borrows from the caller's JSON where possible: selecting, filtering and
//! indexing return references, and only a result is copied. Every traversal
//! charges per node beforehand and stops at a fixed depth, so time and stack are
//! bounded whatever the size and depth of the data.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::budget::{Budget, ENTRY_BYTES, Fault, fail};
use crate::base::compute::OBJECT_STEPS;
use crate::base::ordered::map_of;

/// Below the 128 levels that serde_json can parse, so that a result can be wrapped.
pub(super) const MAX_VALUE_DEPTH: usize = crate::base::limits::DEPTH;

#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl<'a> Text<'a> {
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }

    /// A slice of this text, borrowed if the text itself is.
    pub fn slice(&self, start: usize, end: usize, budget: &mut Budget) -> Result<Self, Fault> {
        match self {
            Text::Borrowed(text) => Ok(Text::Borrowed(text.get(start..end).unwrap_or_default())),
            Text::Shared(text) => {
                let part = text.get(start..end).unwrap_or_default();
                budget.allocate(part.len() as u64)?;
                Ok(Text::Shared(part.into()))
            }
        }
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
impl Eq for Text<'_> {}
impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Borrowed(&'a [Value]),
    Shared(Rc<Vec<Operand<'a>>>),
}

impl<'a> List<'a> {
    pub fn size(&self) -> usize {
        match self {
            List::Borrowed(items) => items.len(),
            List::Shared(items) => items.len(),
        }
    }

    pub fn item(&self, index: usize) -> Option<Operand<'a>> {
        match self {
            List::Borrowed(items) => items.get(index).map(Operand::from),
            List::Shared(items) => items.get(index).cloned(),
        }
    }

    pub fn items(&self) -> impl Iterator<Item = Operand<'a>> {
        (0..self.size()).map_while(|index| self.item(index))
    }
}

#[derive(Clone, Debug)]
pub(super) enum StringMap<'a> {
    Borrowed(&'a Map<String, Value>),
    Shared(Rc<BTreeMap<Text<'a>, Operand<'a>>>),
}

impl<'a> StringMap<'a> {
    pub fn size(&self) -> usize {
        match self {
            StringMap::Borrowed(entries) => entries.len(),
            StringMap::Shared(entries) => entries.len(),
        }
    }

    pub fn entry(&self, key: &str) -> Option<Operand<'a>> {
        match self {
            StringMap::Borrowed(entries) => entries.get(key).map(Operand::from),
            StringMap::Shared(entries) => entries.get(key).cloned(),
        }
    }

    /// Keys in the map's own order, for uses that do not depend on the order.
    pub fn each_key(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            StringMap::Borrowed(entries) => Box::new(entries.keys().map(String::as_str)),
            StringMap::Shared(entries) => Box::new(entries.keys().map(Text::as_str)),
        }
    }

    /// Keys in sorted order. Sorted here, because another crate can enable
    /// insertion order in serde_json's maps.
    pub fn keys(&self, budget: &mut Budget) -> Result<Vec<Text<'a>>, Fault> {
        let size = self.size() as u64;
        budget.charge(size)?;
        budget.allocate(size * ENTRY_BYTES)?;
        Ok(match self {
            StringMap::Borrowed(entries) => {
                let mut keys: Vec<_> = entries.keys().map(|key| Text::Borrowed(key)).collect();
                keys.sort();
                keys
            }
            StringMap::Shared(entries) => entries.keys().cloned().collect(),
        })
    }
}

#[derive(Clone, Debug)]
pub(super) enum Operand<'a> {
    Null,
    Bool(bool),
    /// Wide enough for every JSON integer, so that an unsigned 64-bit
    /// identifier is not changed. Arithmetic stays within `i64`.
    Int(i128),
    Double(f64),
    Text(Text<'a>),
    List(List<'a>),
    Map(StringMap<'a>),
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Operand::Null,
            Value::Bool(value) => Operand::Bool(*value),
            Value::Number(number) => number_operand(number),
            Value::String(text) => Operand::Text(Text::Borrowed(text)),
            Value::Array(items) => Operand::List(List::Borrowed(items)),
            Value::Object(entries) => Operand::Map(StringMap::Borrowed(entries)),
        }
    }
}

fn number_operand<'a>(number: &Number) -> Operand<'a> {
    if let Some(value) = number.as_i64() {
        Operand::Int(value.into())
    } else if let Some(value) = number.as_u64() {
        Operand::Int(value.into())
    } else {
        // serde_json has an f64 for every other number; the default is never used.
        Operand::Double(number.as_f64().unwrap_or_default())
    }
}

impl<'a> Operand<'a> {
    pub fn list(items: Vec<Operand<'a>>) -> Self {
        Operand::List(List::Shared(Rc::new(items)))
    }

    /// Converts a value that the evaluator created and charged for.
    pub fn from_owned(value: Value) -> Self {
        match value {
            Value::Null => Operand::Null,
            Value::Bool(value) => Operand::Bool(value),
            Value::Number(number) => number_operand(&number),
            Value::String(text) => Operand::Text(Text::Shared(text.into())),
            Value::Array(items) => Operand::list(items.into_iter().map(Operand::from_owned).collect()),
            Value::Object(entries) => {
                Operand::Map(StringMap::Shared(Rc::new(map_of(entries.into_iter().map(
                    |(key, value)| (Text::Shared(key.into()), Operand::from_owned(value)),
                )))))
            }
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Operand::Null => "null_type",
            Operand::Bool(_) => "bool",
            Operand::Int(_) => "int",
            Operand::Double(_) => "double",
            Operand::Text(_) => "string",
            Operand::List(_) => "list",
            Operand::Map(_) => "map",
        }
    }

    /// A finite double, or an error because JSON cannot represent the number.
    pub fn double(value: f64) -> Result<Self, Fault> {
        if value.is_finite() {
            Ok(Operand::Double(value))
        } else {
            fail("result is not a finite number")
        }
    }

    pub fn into_json(self, budget: &mut Budget, depth: usize) -> Result<Value, Fault> {
        budget.charge(1)?;
        Ok(match self {
            Operand::Null => Value::Null,
            Operand::Bool(value) => Value::Bool(value),
            Operand::Int(value) => match Number::from_i128(value) {
                Some(number) => Value::Number(number),
                None => return fail("integer overflow"),
            },
            Operand::Double(value) => match Number::from_f64(value) {
                Some(number) => Value::Number(number),
                None => return fail("result is not a finite number"),
            },
            Operand::Text(text) => {
                budget.allocate(text.as_str().len() as u64)?;
                Value::String(text.as_str().to_string())
            }
            Operand::List(List::Borrowed(items)) => {
                charge_items(items, budget, depth)?;
                Value::Array(items.to_vec())
            }
            Operand::Map(StringMap::Borrowed(entries)) => {
                charge_entries(entries, budget, depth)?;
                Value::Object(entries.clone())
            }
            Operand::List(List::Shared(items)) => {
                let depth = one_deeper(depth)?;
                budget.allocate(items.len() as u64 * ENTRY_BYTES)?;
                let copies = items.iter().cloned();
                let copies: Result<_, _> = copies.map(|item| item.into_json(budget, depth)).collect();
                Value::Array(copies?)
            }
            Operand::Map(StringMap::Shared(entries)) => {
                let depth = one_deeper(depth)?;
                budget.charge_unit(OBJECT_STEPS)?;
                let mut copies = Map::new();
                for (key, value) in entries.iter() {
                    budget.allocate(ENTRY_BYTES + key.as_str().len() as u64)?;
                    let value = value.clone().into_json(budget, depth)?;
                    copies.insert(key.as_str().to_string(), value);
                }
                Value::Object(copies)
            }
        })
    }
}

pub(super) fn one_deeper(depth: usize) -> Result<usize, Fault> {
    if depth >= MAX_VALUE_DEPTH {
        return fail(format!("value is nested deeper than {MAX_VALUE_DEPTH} levels"));
    }
    Ok(depth + 1)
}

/// Charges for a copy of JSON before it is made.
fn charge_copy(value: &Value, budget: &mut Budget, depth: usize) -> Result<(), Fault> {
    budget.charge(1)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => budget.allocate(text.len() as u64),
        Value::Array(items) => charge_items(items, budget, depth),
        Value::Object(entries) => charge_entries(entries, budget, depth),
    }
}

fn charge_items(items: &[Value], budget: &mut Budget, depth: usize) -> Result<(), Fault> {
    let depth = one_deeper(depth)?;
    budget.allocate(items.len() as u64 * ENTRY_BYTES)?;
    items.iter().try_for_each(|item| charge_copy(item, budget, depth))
}

fn charge_entries(entries: &Map<String, Value>, budget: &mut Budget, depth: usize) -> Result<(), Fault> {
    let depth = one_deeper(depth)?;
    budget.charge_unit(OBJECT_STEPS)?;
    entries.iter().try_for_each(|(key, value)| {
        budget.allocate(ENTRY_BYTES + key.len() as u64)?;
        charge_copy(value, budget, depth)
    })
}

/// One call of the JSON writer. Escaped text takes a call for each character.
const WRITE_STEPS: u64 = 2;

/// Writes compact JSON within the budget: escapes can make the text six times as
/// long as the value.
struct Writer<'b, 'm> {
    bytes: Vec<u8>,
    budget: &'b mut Budget<'m>,
    fault: Option<Fault>,
}

impl io::Write for Writer<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let charged = self.budget.allocate(bytes.len() as u64);
        if let Err(fault) = charged.and_then(|()| self.budget.charge_unit(WRITE_STEPS)) {
            self.fault = Some(fault);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The compact JSON of a value.
pub(super) fn json_text(operand: &Operand, budget: &mut Budget) -> Result<String, Fault> {
    let value = operand.clone().into_json(budget, 0)?;
    let mut writer = Writer {
        bytes: Vec::new(),
        budget,
        fault: None,
    };
    if let Err(error) = serde_json::to_writer(&mut writer, &value) {
        return match writer.fault {
            Some(fault) => Err(fault),
            None => fail(error.to_string()),
        };
    }
    String::from_utf8(writer.bytes).or_else(|error| fail(error.to_string()))
}

/// A value inside other text: strings as they are, other types as JSON.
pub(super) fn plain_text<'a>(operand: &Operand<'a>, budget: &mut Budget) -> Result<Text<'a>, Fault> {
    match operand {
        Operand::Text(text) => Ok(text.clone()),
        Operand::Null
        | Operand::Bool(_)
        | Operand::Int(_)
        | Operand::Double(_)
        | Operand::List(_)
        | Operand::Map(_) => Ok(Text::Shared(json_text(operand, budget)?.into())),
    }
}
