//! The functions over lists, as in cel-go's and Kubernetes' list libraries.
//!
//! Each charges for every item before it is touched, so that a long list ends an evaluation instead of holding it up.

use std::cmp::Ordering;

use super::budget::{Budget, ENTRY_BYTES, Fault, fail};
use super::call::{text, wrong_type};
use super::node::Binary;
use super::operate::{arithmetic, equal, order, order_numbers};
use super::value::{List, Operand, Text};
use crate::base::ordered::sort_by;

fn list_of<'v, 'a>(function: &str, value: &'v Operand<'a>) -> Result<&'v List<'a>, Fault> {
    match value {
        Operand::List(list) => Ok(list),
        other => wrong_type(function, "a list", other),
    }
}

/// 0 for an empty list. Ints stay exact; one double makes the sum a double.
pub(super) fn sum<'a>(value: &Operand<'a>, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let mut total = Operand::Int(0);
    for item in list_of("sum", value)?.items() {
        budget.charge(1)?;
        total = match item {
            Operand::Int(_) | Operand::Double(_) => arithmetic(Binary::Add, total, item, budget)?,
            other => return wrong_type("sum", "a list of numbers", &other),
        };
    }
    Ok(total)
}

/// Removes one level: the items of every list in the list, and every other item as it is.
pub(super) fn flatten<'a>(value: &Operand<'a>, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let mut flat = Vec::new();
    for item in list_of("flatten", value)?.items() {
        budget.charge(1)?;
        match item {
            Operand::List(inner) => {
                let size = inner.size() as u64;
                budget.charge(size)?;
                budget.allocate(size * ENTRY_BYTES)?;
                flat.extend(inner.items());
            }
            other => {
                budget.allocate(ENTRY_BYTES)?;
                flat.push(other);
            }
        }
    }
    Ok(Operand::list(flat))
}

/// Keeps the first of equal items. Scalars are sorted to find them; lists and maps are compared with each other.
pub(super) fn distinct<'a>(value: &Operand<'a>, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let list = list_of("distinct", value)?;
    let size = list.size() as u64;
    // The number of comparisons of each item in a sort, at most.
    let rounds = u64::from(size.max(1).ilog2()) + 1;
    budget.charge(size.saturating_mul(rounds))?;
    budget.allocate(2 * size * ENTRY_BYTES)?;
    let items: Vec<Operand<'a>> = list.items().collect();
    let (scalars, compounds): (Vec<usize>, Vec<usize>) =
        (0..items.len()).partition(|index| rank(&items[*index]).is_some());
    let mut is_repeated = vec![false; items.len()];
    for repeated in repeated_scalars(&items, scalars, rounds, budget)? {
        is_repeated[repeated] = true;
    }
    let mut kept: Vec<usize> = Vec::new();
    for index in compounds {
        is_repeated[index] = equals_any(&items[index], &items, &kept, budget)?;
        if !is_repeated[index] {
            kept.push(index);
        }
    }
    let first = items
        .into_iter()
        .zip(is_repeated)
        .filter(|(_, repeated)| !repeated);
    Ok(Operand::list(first.map(|(item, _)| item).collect()))
}

fn equals_any(
    item: &Operand,
    items: &[Operand],
    among: &[usize],
    budget: &mut Budget,
) -> Result<bool, Fault> {
    for index in among {
        budget.charge(1)?;
        if equal(&items[*index], item, budget, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The scalars that equal one before them.
fn repeated_scalars(
    items: &[Operand],
    mut scalars: Vec<usize>,
    rounds: u64,
    budget: &mut Budget,
) -> Result<Vec<usize>, Fault> {
    for index in &scalars {
        if let Operand::Text(text) = &items[*index] {
            budget.read(text.as_str().len().saturating_mul(rounds as usize))?;
        }
    }
    // Stable, so that of equal items the first comes first.
    sort_by(&mut scalars, |left, right| {
        order_scalars(&items[*left], &items[*right])
    });
    let pairs = scalars.windows(2);
    let equal_pairs = pairs.filter(|pair| order_scalars(&items[pair[0]], &items[pair[1]]).is_eq());
    Ok(equal_pairs.map(|pair| pair[1]).collect())
}

/// The place of a scalar's type in the order of scalars. None for lists and maps.
fn rank(value: &Operand) -> Option<u8> {
    match value {
        Operand::Null => Some(0),
        Operand::Bool(_) => Some(1),
        Operand::Int(_) | Operand::Double(_) => Some(2),
        Operand::Text(_) => Some(3),
        Operand::List(_) | Operand::Map(_) => None,
    }
}

/// A total order in which exactly the equal scalars are equal.
fn order_scalars(left: &Operand, right: &Operand) -> Ordering {
    match (left, right) {
        (Operand::Bool(left), Operand::Bool(right)) => left.cmp(right),
        (Operand::Text(left), Operand::Text(right)) => left.cmp(right),
        (left, right) => order_numbers(left, right).unwrap_or_else(|| rank(left).cmp(&rank(right))),
    }
}

pub(super) fn min_or_max<'a>(
    name: &str,
    arguments: &[Operand<'a>],
    greatest: bool,
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    let items: Box<dyn Iterator<Item = Operand<'a>> + '_> = match arguments {
        [Operand::List(list)] => Box::new(list.items()),
        several => Box::new(several.iter().cloned()),
    };
    let mut best: Option<Operand<'a>> = None;
    for item in items {
        budget.charge(1)?;
        let better = match &best {
            Some(best) => {
                let order = order(&item, best, budget)?;
                if greatest { order.is_gt() } else { order.is_lt() }
            }
            // Comparing an item with itself rejects types without an order.
            None => order(&item, &item, budget)?.is_eq(),
        };
        if better {
            best = Some(item);
        }
    }
    match best {
        Some(best) => Ok(best),
        None => fail(format!("{name} of an empty list")),
    }
}

pub(super) fn join<'a>(
    list: &Operand<'a>,
    separator: Option<&Operand>,
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    let separator = match separator {
        Some(separator) => text("join", separator, budget)?,
        None => "",
    };
    let Operand::List(list) = list else {
        return wrong_type("join", "a list", list);
    };
    let mut joined = String::new();
    for (position, item) in list.items().enumerate() {
        let separator = if position == 0 { "" } else { separator };
        let item = text("join", &item, budget)?;
        budget.charge(1)?;
        budget.allocate((separator.len() + item.len()) as u64)?;
        joined.push_str(separator);
        joined.push_str(item);
    }
    Ok(Operand::Text(Text::Shared(joined.into())))
}
