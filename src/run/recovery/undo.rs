//! Patches that undo a write to the context. They cover only what the write changed, so their size grows with the change and
//! not with the value.
//!
//! Patches are applied last first. Each has a hash of the value that the write left at its place (`left`): if another value is
//! there, a later write changed it and the patch does nothing. Applying a patch never fails.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::text::{json_bytes, json_bytes_within};
use crate::run::recovery::value_hash::{NOTHING, hash, hash_items, hash_text, hash64};

/// The most bytes of patches on a token's row. Longer lists, after a large value was overwritten, have a row of their own.
pub const UNDO_INLINE_BYTES: usize = 64 << 10;

/// Undoes one change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// The top-level name: `state.<name>` or `output.<name>`.
    pub name: String,
    /// The place below that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Step>,
    /// The hash of the value that the write left there. Rows of older builds have none: their patches always apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    #[serde(flatten)]
    pub back: Back,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    Index(usize),
    Key(String),
}

/// How the change is undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Back {
    /// The old value.
    Put(Value),
    /// There was no old value.
    Remove(()),
    /// In an array: the index, the number of elements to remove from there, and the elements to insert. `(n, 1, [])` undoes an
    /// append.
    Items(usize, usize, Vec<Value>),
    /// The same in a string, counted in bytes.
    Text(usize, usize, String),
}

/// Patches of one value that are no larger than this together are kept as they are: precise patches preserve more of what
/// other tokens write beside them. Larger ones must not take more bytes than the whole old value.
const PRECISE_BYTES: usize = 256;
/// The bytes of a patch besides its place and the values it restores.
const PATCH_BYTES: usize = 48;
/// The depth to which values are compared. Each level compares everything below it, so the depth bounds the work.
const DEPTH_MAX: usize = 16;

impl Patch {
    /// The patch of older builds: the whole old value of a top-level name.
    pub fn whole(name: String, before: Option<Value>) -> Patch {
        Patch {
            name,
            path: Vec::new(),
            left: None,
            back: before.map_or(Back::Remove(()), Back::Put),
        }
    }

    pub fn bytes(&self) -> usize {
        json_bytes(self)
    }

    /// Undoes the change in the value of the patch's name. A value that the patch does not fit is left unchanged.
    pub fn apply(&self, value: &mut Option<Value>) {
        let Some((last, way)) = self.path.split_last() else {
            return self.apply_whole(value);
        };
        let mut here = value.as_mut();
        for step in way {
            here = here.and_then(|value| child(value, step));
        }
        match (here, last, &self.back) {
            (Some(Value::Object(fields)), Step::Key(key), Back::Put(before))
                if self.fits(fields.get(key)) =>
            {
                fields.insert(key.clone(), before.clone());
            }
            (Some(Value::Object(fields)), Step::Key(key), Back::Remove(())) if self.fits(fields.get(key)) => {
                fields.remove(key);
            }
            (Some(here), step, Back::Put(_) | Back::Items(..) | Back::Text(..)) => {
                if let Some(there) = child(here, step) {
                    self.change(there);
                }
            }
            (_, _, _) => {}
        }
    }

    fn apply_whole(&self, value: &mut Option<Value>) {
        match &self.back {
            Back::Put(before) if self.fits(value.as_ref()) => *value = Some(before.clone()),
            Back::Remove(()) if self.fits(value.as_ref()) => *value = None,
            Back::Put(_) | Back::Remove(()) => {}
            Back::Items(..) | Back::Text(..) => {
                if let Some(value) = value {
                    self.change(value);
                }
            }
        }
    }

    /// Changes a value in place.
    fn change(&self, value: &mut Value) {
        match (&self.back, value) {
            (Back::Put(before), value) if self.fits(Some(value)) => *value = before.clone(),
            (Back::Items(at, take, put), Value::Array(items)) => {
                let range = *at..at.saturating_add(*take);
                if items
                    .get(range.clone())
                    .is_some_and(|taken| self.is_left(hash_items(taken)))
                {
                    items.splice(range, put.iter().cloned());
                }
            }
            (Back::Text(at, take, put), Value::String(text)) => {
                let range = *at..at.saturating_add(*take);
                if text
                    .get(range.clone())
                    .is_some_and(|taken| self.is_left(hash_text(taken)))
                {
                    text.replace_range(range, put);
                }
            }
            (_, _) => {}
        }
    }

    fn fits(&self, there: Option<&Value>) -> bool {
        self.is_left(there.map_or(NOTHING, hash))
    }

    fn is_left(&self, there: u32) -> bool {
        self.left.is_none_or(|left| left == there)
    }
}

fn child<'a>(value: &'a mut Value, step: &Step) -> Option<&'a mut Value> {
    match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(key),
        Step::Index(index) => value.as_array_mut()?.get_mut(*index),
    }
}

/// The patches from `new` back to `old`, to be applied last first. The places of all patches together take no more bytes than
/// `old`: a small change of a nested value may have a long path.
pub fn inverse(name: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<Patch> {
    let mut found = Difference {
        name,
        path: Vec::new(),
        path_bytes: 0,
        patches: Vec::new(),
        room: PRECISE_BYTES + old.map_or(0, json_bytes),
        is_full: false,
    };
    found.between(old, new);
    if found.is_full {
        let back = old.map_or(Back::Remove(()), |old| Back::Put(old.clone()));
        let left = new.map_or(NOTHING, hash);
        return vec![found.patch(left, back)];
    }
    found.patches.reverse();
    found.patches
}

/// Gathers patches in the order in which they are applied.
struct Difference<'a> {
    name: &'a str,
    path: Vec<Step>,
    path_bytes: usize,
    patches: Vec<Patch>,
    /// The bytes left for the places of further patches.
    room: usize,
    /// No room was left for a patch: the value around it is restored as a whole.
    is_full: bool,
}

impl Difference<'_> {
    fn between(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.push(hash(new), Back::Remove(())),
            (Some(old), None) => self.push(NOTHING, Back::Put(old.clone())),
            (Some(old), Some(new)) => self.of(old, new),
        }
    }

    fn of(&mut self, old: &Value, new: &Value) {
        let begin = self.patches.len();
        match (old, new) {
            (old, new) if self.path.len() >= DEPTH_MAX && old != new => {
                return self.push(hash(new), Back::Put(old.clone()));
            }
            (_, _) if self.path.len() >= DEPTH_MAX => return,
            (Value::Object(old), Value::Object(new)) => self.of_fields(old, new),
            (Value::Array(old), Value::Array(new)) => self.of_items(old, new),
            (Value::String(old), Value::String(new)) => self.of_texts(old, new),
            (old, new) if old != new => return self.push(hash(new), Back::Put(old.clone())),
            (_, _) => return,
        }
        // Many small patches may take more bytes than the whole old value.
        let bytes: usize = self.patches[begin..].iter().map(Patch::bytes).sum();
        if self.is_full || (bytes > PRECISE_BYTES && json_bytes_within(old, bytes).is_some()) {
            self.drop_from(begin);
            self.push(hash(new), Back::Put(old.clone()));
        }
    }

    fn of_fields(&mut self, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (key, before) in old {
            if self.is_full {
                return;
            }
            self.below(Step::Key(key.clone()), |it| {
                it.between(Some(before), new.get(key))
            });
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            if self.is_full {
                return;
            }
            self.below(Step::Key(key.clone()), |it| it.between(None, Some(value)));
        }
    }

    fn of_texts(&mut self, old: &str, new: &str) {
        if old == new {
            return;
        }
        let (a, b) = (old.as_bytes(), new.as_bytes());
        let mut from = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        while !(old.is_char_boundary(from) && new.is_char_boundary(from)) {
            from -= 1;
        }
        let rest = a.len().min(b.len()) - from;
        let mut behind = (a.iter().rev().zip(b.iter().rev()).take(rest))
            .take_while(|(a, b)| a == b)
            .count();
        while !(old.is_char_boundary(a.len() - behind) && new.is_char_boundary(b.len() - behind)) {
            behind -= 1;
        }
        let (before, after) = (&old[from..a.len() - behind], &new[from..b.len() - behind]);
        self.push(
            hash_text(after),
            Back::Text(from, after.len(), before.to_string()),
        );
    }

    /// Aligns equal elements. In the gaps between them, elements at the same position are compared, and the rest is inserted or
    /// removed.
    fn of_items(&mut self, old: &[Value], new: &[Value]) {
        let from = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let rest = old.len().min(new.len()) - from;
        let behind = (old.iter().rev().zip(new.iter().rev()).take(rest))
            .take_while(|(a, b)| a == b)
            .count();
        let (old_end, new_end) = (old.len() - behind, new.len() - behind);
        let mut same = align(&old[from..old_end], &new[from..new_end]);
        same.push((old_end - from, new_end - from));
        let (mut old_at, mut new_at) = (from, from);
        let mut spliced = Vec::new();
        for (old_to, new_to) in same {
            let (old_to, new_to) = (old_to + from, new_to + from);
            let gap = Gap {
                old: &old[old_at..old_to],
                new: &new[new_at..new_to],
                at: new_at,
            };
            spliced.extend(self.of_gap(&gap));
            (old_at, new_at) = (old_to + 1, new_to + 1);
        }
        // Elements are changed in place before others are inserted or removed, last ones first, so that indices stay valid.
        for (left, back) in spliced.into_iter().rev() {
            self.push(left, back);
        }
    }

    /// Adds patches for the elements in place, and returns the splice for the rest of the gap.
    fn of_gap(&mut self, gap: &Gap) -> Option<(u32, Back)> {
        let opposite = gap.old.len().min(gap.new.len());
        let begin = self.patches.len();
        for index in 0..opposite {
            if self.is_full {
                break;
            }
            self.below(Step::Index(gap.at + index), |it| {
                it.of(&gap.old[index], &gap.new[index])
            });
        }
        let edits: usize = self.patches[begin..].iter().map(Patch::bytes).sum();
        let is_smaller = |values: &[Value]| {
            let mut left = edits;
            values.iter().all(|value| {
                let bytes = json_bytes_within(value, left);
                left = left.saturating_sub(bytes.unwrap_or(left));
                bytes.is_some() && left > 0
            })
        };
        let mut kept = opposite;
        if self.is_full || (edits > PRECISE_BYTES && is_smaller(&gap.old[..opposite])) {
            self.drop_from(begin);
            kept = 0;
        }
        let (before, after) = (&gap.old[kept..], &gap.new[kept..]);
        if before.is_empty() && after.is_empty() {
            return None;
        }
        let back = Back::Items(gap.at + kept, after.len(), before.to_vec());
        Some((hash_items(after), back))
    }

    fn below(&mut self, step: Step, compare: impl FnOnce(&mut Self)) {
        let bytes = step.bytes();
        self.path.push(step);
        self.path_bytes += bytes;
        compare(self);
        self.path_bytes -= bytes;
        self.path.pop();
    }

    fn push(&mut self, left: u32, back: Back) {
        let bytes = self.place_bytes();
        match self.room.checked_sub(bytes) {
            Some(room) => {
                self.room = room;
                let patch = self.patch(left, back);
                self.patches.push(patch);
            }
            None => self.is_full = true,
        }
    }

    /// Drops the patches from `begin` on: a larger patch replaces them.
    fn drop_from(&mut self, begin: usize) {
        let dropped = self.patches.drain(begin..);
        let name = self.name;
        self.room += dropped
            .map(|patch| place_bytes(name, patch.path.iter().map(Step::bytes).sum()))
            .sum::<usize>();
        self.is_full = false;
    }

    fn place_bytes(&self) -> usize {
        place_bytes(self.name, self.path_bytes)
    }

    fn patch(&self, left: u32, back: Back) -> Patch {
        Patch {
            name: self.name.to_string(),
            path: self.path.clone(),
            left: Some(left),
            back,
        }
    }
}

fn place_bytes(name: &str, path_bytes: usize) -> usize {
    PATCH_BYTES + name.len() + path_bytes
}

impl Step {
    fn bytes(&self) -> usize {
        match self {
            Step::Index(_) => size_of::<Step>(),
            Step::Key(key) => size_of::<Step>() + key.len(),
        }
    }
}

/// A stretch of two arrays between equal elements.
struct Gap<'a> {
    old: &'a [Value],
    new: &'a [Value],
    /// Where it begins in the new array.
    at: usize,
}

/// The longest increasing sequence of pairs of indices whose elements are equal. The n-th of several equal elements is paired
/// with the n-th of the other array.
fn align(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() || (old.len() == 1 && new.len() == 1) {
        return Vec::new();
    }
    let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, value) in new.iter().enumerate().rev() {
        places.entry(hash64(value)).or_default().push(index);
    }
    let pairs: Vec<(usize, usize)> = (old.iter().enumerate())
        .filter_map(|(index, value)| {
            let place = places.get_mut(&hash64(value))?.pop()?;
            (*value == new[place]).then_some((index, place))
        })
        .collect();
    // `ends[n]`: the pair with the lowest second index that a sequence of n + 1 pairs can end with.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, place)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < *place);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut row: Vec<(usize, usize)> = std::iter::successors(ends.last().copied(), |&end| before[end])
        .map(|index| pairs[index])
        .collect();
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn back(old: &Value, new: &Value) -> Vec<Patch> {
        let patches = inverse("state.x", Some(old), Some(new));
        let mut value = Some(new.clone());
        for patch in patches.iter().rev() {
            patch.apply(&mut value);
        }
        assert_eq!(value.as_ref(), Some(old), "{patches:?}");
        patches
    }

    /// Paths count as well: many small changes below a long key, or of a deeply nested value.
    #[test]
    fn places_take_no_more_bytes_than_the_old_value() {
        let numbers = |number: u64| json!(vec![number; 20_000]);
        let key = "k".repeat(50_000);
        let long_key = |number| json!({ key.as_str(): numbers(number), "other": number });
        let deep = |number| (0..90).fold(numbers(number), |inner, _| json!({ "a": inner, "b": [1] }));
        let rows = |number: u64| json!(vec![json!({ key.as_str(): { "x": number, "y": [number] } }); 10]);
        for (old, new) in [(long_key(1), long_key(2)), (deep(1), deep(2)), (rows(1), rows(2))] {
            let patches = back(&old, &new);
            let places = patches
                .iter()
                .map(|patch| place_bytes(&patch.name, patch.path.iter().map(Step::bytes).sum()));
            assert!(places.sum::<usize>() <= json_bytes(&old) + PRECISE_BYTES);
            assert!(patches.iter().map(Patch::bytes).sum::<usize>() <= 2 * json_bytes(&old));
        }
    }

    fn bytes(old: &Value, new: &Value) -> usize {
        back(old, new).iter().map(Patch::bytes).sum()
    }

    /// Small changes of large values.
    #[test]
    fn a_patch_is_as_large_as_the_change() {
        let line = |n: usize| json!({"n": n, "text": "x".repeat(500)});
        let list = |range: std::ops::Range<usize>| Value::Array(range.map(line).collect());
        let mut other = list(0..200);
        other[100]["n"] = json!("changed");
        let mut last = list(0..200);
        last[199]["n"] = json!(-1);
        last.as_array_mut().unwrap().push(line(200));
        for (name, old, new) in [
            ("append", list(0..200), list(0..201)),
            ("prepend", list(1..200), list(0..200)),
            ("one in the middle", list(0..200), other),
            ("the last changed, and one appended", list(0..200), last),
            ("a window that moves on", list(0..200), list(1..201)),
        ] {
            assert!(bytes(&old, &new) < 800, "{name}: {}", bytes(&old, &new));
        }
        let text = "é".repeat(50_000);
        assert!(bytes(&json!(text), &json!(format!("{text}è!"))) < 100);
        assert!(bytes(&json!({"a": {"b": text}}), &json!({"a": {"b": text, "c": 1}})) < 100);
    }

    #[test]
    fn a_patch_is_hardly_larger_than_the_old_value() {
        let numbers = |by: usize| Value::Array((0..1_000).map(|n| json!(n * 7 + by)).collect());
        let (old, new) = (numbers(1), numbers(2));
        assert!(bytes(&old, &new) < old.to_string().len() + 100);
        let keys = |by: usize| -> Value { (0..1_000).map(|n| (format!("k{n}"), json!(n + by))).collect() };
        let (old, new) = (keys(0), keys(1));
        assert!(bytes(&old, &new) < old.to_string().len() + 100);
    }

    #[test]
    fn later_writes_of_other_tokens_stay() {
        let apply = |patches: &[Patch], value: Value| {
            let mut value = Some(value);
            for patch in patches.iter().rev() {
                patch.apply(&mut value);
            }
            value
        };
        let append = back(&json!([1]), &json!([1, 2]));
        assert_eq!(
            apply(&append, json!([1, 2, 3])),
            Some(json!([1, 3])),
            "appended after it"
        );
        assert_eq!(
            apply(&append, json!([1, 7, 3])),
            Some(json!([1, 7, 3])),
            "overwritten since"
        );
        for other in [json!(null), json!("text"), json!({"a": 1}), json!([])] {
            assert_eq!(apply(&append, other.clone()), Some(other), "another shape");
        }
        let number = back(&json!({"n": 1}), &json!({"n": 2}));
        assert_eq!(
            apply(&number, json!({"n": 2, "m": 1})),
            Some(json!({"n": 1, "m": 1}))
        );
        assert_eq!(apply(&number, json!({"n": 3})), Some(json!({"n": 3})));
        let text = back(&json!("é"), &json!("éa"));
        assert_eq!(apply(&text, json!("x")), Some(json!("x")));
    }

    /// Later builds read the rows of this one.
    #[test]
    fn hashes_stay_what_they_are() {
        let value = json!({"a": [1, -2, 2.5, "text of some length", true, null]});
        assert_eq!(hash(&value), 260_659_894);
    }
}
