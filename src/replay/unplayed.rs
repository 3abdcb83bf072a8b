//! What a recording has for places that a replay may reach, each of which is taken once.

use std::collections::{BTreeMap, VecDeque};

use crate::replay::recorded_calls::CallPlace;

pub struct Unplayed<T> {
    items: Vec<Option<T>>,
    by_attempt: BTreeMap<CallPlace, VecDeque<usize>>,
    by_node: BTreeMap<(String, Option<u32>), VecDeque<usize>>,
}

impl<T> Unplayed<T> {
    pub fn new(items: Vec<T>, place_of: impl Fn(&T) -> &CallPlace) -> Unplayed<T> {
        let mut by_attempt: BTreeMap<CallPlace, VecDeque<usize>> = BTreeMap::new();
        let mut by_node: BTreeMap<(String, Option<u32>), VecDeque<usize>> = BTreeMap::new();
        for (number, item) in items.iter().enumerate() {
            let place = place_of(item);
            by_attempt.entry(place.clone()).or_default().push_back(number);
            let node = (place.node_id.clone(), place.branch);
            by_node.entry(node).or_default().push_back(number);
        }
        Unplayed {
            items: items.into_iter().map(Some).collect(),
            by_attempt,
            by_node,
        }
    }

    /// Takes the item for a place: the one of the same attempt, or the next one of the same node and branch.
    pub fn take(&mut self, place: &CallPlace) -> Option<T> {
        let same = self.by_attempt.get_mut(place);
        if let Some(item) = next_of(&mut self.items, same) {
            return Some(item);
        }
        let node = (place.node_id.clone(), place.branch);
        next_of(&mut self.items, self.by_node.get_mut(&node))
    }

    /// The items of an attempt that were not taken.
    pub fn of_attempt<'a>(&'a self, token_id: &'a str, epoch: u64) -> impl Iterator<Item = &'a T> {
        let first = CallPlace {
            token_id: token_id.to_string(),
            epoch,
            node_id: String::new(),
            branch: None,
        };
        let found = self.by_attempt.range(first..);
        found
            .take_while(move |(place, _)| place.token_id == token_id && place.epoch == epoch)
            .flat_map(|(_, numbers)| numbers)
            .filter_map(|number| self.items[*number].as_ref())
    }
}

/// What was taken by the other way is passed over once.
fn next_of<T>(items: &mut [Option<T>], numbers: Option<&mut VecDeque<usize>>) -> Option<T> {
    let numbers = numbers?;
    while let Some(number) = numbers.pop_front() {
        if let Some(item) = items[number].take() {
            return Some(item);
        }
    }
    None
}
