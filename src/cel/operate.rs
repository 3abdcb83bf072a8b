//! The operators on values: selection, arithmetic, order, equality.
//!
//! Integers stay exact and doubles stay finite, because JSON has neither wrapped
//! integers nor NaN. Each function charges for the bytes it reads or creates, and
//! the only recursion, deep equality, stops at the depth limit of values.

use std::cmp::Ordering;

use super::budget::{Budget, ENTRY_BYTES, Fault, fail};
use super::node::Binary;
use super::value::{List, Operand, StringMap, Text, one_deeper};
use crate::base::text::shorten_to;

/// A value, or why a selection found none. A lenient selection accepts that.
type Found<'a> = Result<Operand<'a>, String>;

pub(super) fn select<'a>(parent: &Operand<'a>, field: &str) -> Result<Found<'a>, Fault> {
    match parent {
        Operand::Map(map) => Ok(entry(map, field)),
        other => fail(format!("cannot select .{field} from {}", other.type_name())),
    }
}

fn entry<'a>(map: &StringMap<'a>, key: &str) -> Found<'a> {
    map.entry(key)
        .ok_or_else(|| format!("no such key: {}", shorten_to(key, 60)))
}

pub(super) fn index<'a>(
    parent: &Operand<'a>,
    index: &Operand<'a>,
    budget: &mut Budget,
) -> Result<Found<'a>, Fault> {
    match parent {
        Operand::Map(map) => {
            let key = key(index)?;
            budget.read(key.as_str().len())?;
            Ok(entry(map, key.as_str()))
        }
        Operand::List(list) => {
            let Some(index) = whole_number(index) else {
                return fail(format!("cannot index list with {}", index.type_name()));
            };
            let item = usize::try_from(index).ok().and_then(|index| list.item(index));
            Ok(item
                .ok_or_else(|| format!("index {index} is out of range for a list of size {}", list.size())))
        }
        other => fail(format!("cannot index {}", other.type_name())),
    }
}

/// Converts a value to a map key. JSON has string keys only.
pub(super) fn key<'a>(value: &Operand<'a>) -> Result<Text<'a>, Fault> {
    match value {
        Operand::Text(text) => Ok(text.clone()),
        Operand::Int(number) => Ok(Text::Shared(number.to_string().into())),
        Operand::Bool(truth) => Ok(Text::Shared(truth.to_string().into())),
        other => fail(format!("map key must be a string, found {}", other.type_name())),
    }
}

/// The whole number a value holds, as an int or as a double such as 2.0.
pub(super) fn whole_number(value: &Operand) -> Option<i128> {
    match value {
        Operand::Int(number) => Some(*number),
        Operand::Double(number) if number.trunc() == *number && number.abs() < 1e18 => Some(*number as i128),
        Operand::Null
        | Operand::Bool(_)
        | Operand::Double(_)
        | Operand::Text(_)
        | Operand::List(_)
        | Operand::Map(_) => None,
    }
}

fn number(value: &Operand) -> Option<f64> {
    match value {
        Operand::Int(number) => Some(*number as f64),
        Operand::Double(number) => Some(*number),
        Operand::Null | Operand::Bool(_) | Operand::Text(_) | Operand::List(_) | Operand::Map(_) => None,
    }
}

pub(super) fn negate(value: Operand) -> Result<Operand, Fault> {
    match value {
        Operand::Int(number) => int(i64::try_from(number).ok().and_then(i64::checked_neg)),
        Operand::Double(number) => Ok(Operand::Double(-number)),
        other => fail(format!("cannot negate {}", other.type_name())),
    }
}

/// The result of checked integer arithmetic.
pub(super) fn int<'a>(result: Option<i64>) -> Result<Operand<'a>, Fault> {
    match result {
        Some(number) => Ok(Operand::Int(number.into())),
        None => fail("integer overflow"),
    }
}

pub(super) fn arithmetic<'a>(
    operator: Binary,
    left: Operand<'a>,
    right: Operand<'a>,
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    match (operator, &left, &right) {
        (_, Operand::Int(left), Operand::Int(right)) => integers(operator, *left, *right),
        (Binary::Add, Operand::Text(left), Operand::Text(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            budget.allocate((left.len() + right.len()) as u64)?;
            Ok(Operand::Text(Text::Shared([left, right].concat().into())))
        }
        (Binary::Add, Operand::List(left), Operand::List(right)) => append(left, right, budget),
        (_, left, right) => match (number(left), number(right)) {
            (Some(left), Some(right)) => doubles(operator, left, right),
            _ => {
                let text = matches!(left, Operand::Text(_)) || matches!(right, Operand::Text(_));
                let hint = if text && operator == Binary::Add {
                    ", convert with string(value)"
                } else {
                    ""
                };
                let (left, right) = (left.type_name(), right.type_name());
                fail(format!(
                    "cannot apply {} to {left} and {right}{hint}",
                    symbol(operator)
                ))
            }
        },
    }
}

fn append<'a>(left: &List<'a>, right: &List<'a>, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let size = (left.size() + right.size()) as u64;
    budget.charge(size)?;
    budget.allocate(size * ENTRY_BYTES)?;
    Ok(Operand::list(left.items().chain(right.items()).collect()))
}

fn integers<'a>(operator: Binary, left: i128, right: i128) -> Result<Operand<'a>, Fault> {
    let (Ok(left), Ok(right)) = (i64::try_from(left), i64::try_from(right)) else {
        return fail("integer overflow");
    };
    match operator {
        Binary::Add => int(left.checked_add(right)),
        Binary::Subtract => int(left.checked_sub(right)),
        Binary::Multiply => int(left.checked_mul(right)),
        Binary::Divide | Binary::Remainder if right == 0 => fail("division by zero"),
        Binary::Divide => int(left.checked_div(right)),
        Binary::Remainder => int(left.checked_rem(right)),
        Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::In => unreachable!("{} is not arithmetic", symbol(operator)),
    }
}

fn doubles<'a>(operator: Binary, left: f64, right: f64) -> Result<Operand<'a>, Fault> {
    match operator {
        Binary::Add => Operand::double(left + right),
        Binary::Subtract => Operand::double(left - right),
        Binary::Multiply => Operand::double(left * right),
        Binary::Divide | Binary::Remainder if right == 0.0 => fail("division by zero"),
        Binary::Divide => Operand::double(left / right),
        Binary::Remainder => Operand::double(left % right),
        Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::In => unreachable!("{} is not arithmetic", symbol(operator)),
    }
}

fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::In => "in",
    }
}

/// Compares exactly. Converting a large int to a double would make neighbours equal.
fn order_mixed(left: i128, right: f64) -> Ordering {
    // Larger than every JSON integer, and the cast below would saturate.
    if right.abs() >= 1e30 {
        return if right > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let floor = right.floor();
    match left.cmp(&(floor as i128)) {
        Ordering::Equal if right > floor => Ordering::Less,
        decided => decided,
    }
}

/// The order of two numbers. None if one of them is none; doubles are always finite.
pub(super) fn order_numbers(left: &Operand, right: &Operand) -> Option<Ordering> {
    match (left, right) {
        (Operand::Int(left), Operand::Int(right)) => Some(left.cmp(right)),
        (Operand::Int(left), Operand::Double(right)) => Some(order_mixed(*left, *right)),
        (Operand::Double(left), Operand::Int(right)) => Some(order_mixed(*right, *left).reverse()),
        (Operand::Double(left), Operand::Double(right)) => left.partial_cmp(right),
        (
            Operand::Null
            | Operand::Bool(_)
            | Operand::Int(_)
            | Operand::Double(_)
            | Operand::Text(_)
            | Operand::List(_)
            | Operand::Map(_),
            _,
        ) => None,
    }
}

/// The order of two numbers, two strings or two bools.
pub(super) fn order(left: &Operand, right: &Operand, budget: &mut Budget) -> Result<Ordering, Fault> {
    if let Some(order) = order_numbers(left, right) {
        return Ok(order);
    }
    match (left, right) {
        (Operand::Text(left), Operand::Text(right)) => {
            budget.read(left.as_str().len().min(right.as_str().len()))?;
            Ok(left.cmp(right))
        }
        (Operand::Bool(left), Operand::Bool(right)) => Ok(left.cmp(right)),
        (left, right) => fail(format!(
            "cannot compare {} with {}",
            left.type_name(),
            right.type_name()
        )),
    }
}

/// Deep equality. Values of different types are not equal.
pub(super) fn equal(
    left: &Operand,
    right: &Operand,
    budget: &mut Budget,
    depth: usize,
) -> Result<bool, Fault> {
    match (left, right) {
        (Operand::Null, Operand::Null) => Ok(true),
        (Operand::Bool(_), Operand::Bool(_))
        | (Operand::Text(_), Operand::Text(_))
        | (Operand::Int(_) | Operand::Double(_), Operand::Int(_) | Operand::Double(_)) => {
            Ok(order(left, right, budget)?.is_eq())
        }
        (Operand::List(left), Operand::List(right)) => {
            let depth = one_deeper(depth)?;
            if left.size() != right.size() {
                return Ok(false);
            }
            for (left, right) in left.items().zip(right.items()) {
                budget.charge(1)?;
                if !equal(&left, &right, budget, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Operand::Map(left), Operand::Map(right)) => {
            let depth = one_deeper(depth)?;
            if left.size() != right.size() {
                return Ok(false);
            }
            for key in left.each_key() {
                budget.charge(1)?;
                budget.read(key.len())?;
                let (Some(left), Some(right)) = (left.entry(key), right.entry(key)) else {
                    return Ok(false);
                };
                if !equal(&left, &right, budget, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (
            Operand::Null
            | Operand::Bool(_)
            | Operand::Int(_)
            | Operand::Double(_)
            | Operand::Text(_)
            | Operand::List(_)
            | Operand::Map(_),
            _,
        ) => Ok(false),
    }
}

/// `item in container`.
pub(super) fn contains(item: &Operand, container: &Operand, budget: &mut Budget) -> Result<bool, Fault> {
    match container {
        Operand::Map(map) => {
            let key = key(item)?;
            budget.read(key.as_str().len())?;
            Ok(map.entry(key.as_str()).is_some())
        }
        Operand::List(list) => {
            for candidate in list.items() {
                budget.charge(1)?;
                if equal(item, &candidate, budget, 0)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Operand::Text(_) => fail("in needs a list or a map, for strings use text.contains(part)"),
        other => fail(format!("in needs a list or a map, found {}", other.type_name())),
    }
}
