//! Sorts, maps and sets. The standard library has a copy of its sort for each type that it sorts, also where it collects a map or
//! a set; what is here adds next to nothing for a further type. Numbers and texts are sorted by the standard library.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// As `slice::sort_by`: equal items keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    sort_places(&mut order, &|left, right| compare(&items[left], &items[right]));
    arrange(items, &mut order);
}

/// As `slice::sort_by_key`.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |left, right| key(left).cmp(&key(right)));
}

/// As `collect`: of equal keys the last one counts.
pub fn map_of<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

pub fn set_of<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for item in items {
        set.insert(item);
    }
    set
}

pub fn object_of(fields: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in fields {
        object.insert(name, value);
    }
    object
}

/// The one sort.
fn sort_places(order: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    order.sort_by(|left, right| compare(*left, *right));
}

/// Puts the item that is at `order[place]` at each place. A place that has its item is noted as its own.
fn arrange<T>(items: &mut [T], order: &mut [usize]) {
    for start in 0..order.len() {
        let mut place = start;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == start {
                break;
            }
            items.swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_the_standard_library(items in prop::collection::vec((0u8..20, any::<u16>()), 0..200)) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let mut sorted = items.clone();
            sort_by_key(&mut sorted, |item| item.0);
            prop_assert_eq!(sorted, expected);
            prop_assert_eq!(map_of(items.clone()), items.iter().copied().collect());
            prop_assert_eq!(set_of(items.clone()), items.into_iter().collect());
        }
    }
}
