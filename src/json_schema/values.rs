//! Equality and order of JSON values, exact arithmetic on numbers, and size.
//! Every recursion is over values that nest at most `limits::NESTING` deep.

use std::cmp::Ordering;

use crate::base::ordered::sort_by;
use serde_json::{Map, Number, Value};

use super::limits;

pub(super) fn nests_deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| nests_deeper_than(item, below)),
        Value::Object(map) => map.values().any(|item| nests_deeper_than(item, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Steps to read the whole value.
pub(super) fn read_steps(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text_steps(text),
        Value::Array(items) => 1 + items.iter().map(read_steps).sum::<usize>(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, item)| text_steps(key) + read_steps(item));
            1 + entries.sum::<usize>()
        }
    }
}

pub(super) fn text_steps(text: &str) -> usize {
    1 + text.len() / limits::TEXT_BYTES
}

/// A total order in which values are equal exactly when JSON Schema says so.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differing = left
                .iter()
                .zip(right)
                .map(|(left, right)| compare(left, right))
                .find(|order| order.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let (left, right) = (sorted_entries(left), sorted_entries(right));
            let (left_keys, right_keys) = (left.iter().map(key), right.iter().map(key));
            left_keys.cmp(right_keys).then_with(|| {
                let values = left.iter().zip(&right);
                values
                    .map(|(left, right)| compare(left.1, right.1))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

/// Sorted explicitly, because a dependency that enables serde_json's
/// `preserve_order` would otherwise change equality.
pub(super) fn sorted_entries(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries = Vec::from_iter(map);
    sort_by(&mut entries, |left, right| left.0.cmp(right.0));
    entries
}

fn key<'v>(entry: &(&'v String, &'v Value)) -> &'v String {
    entry.0
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Compares the mathematical values. Converting a mixed pair to `f64` would make
/// the order intransitive above 2^53, and sorting relies on it.
pub(super) fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_mixed(left, float(right)),
        (None, Some(right)) => compare_mixed(right, float(left)).reverse(),
        (None, None) => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates, and 64-bit integers lie strictly inside i128, so a
    // float too large to convert still compares correctly.
    integer
        .cmp(&(float.trunc() as i128))
        .then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

fn float(number: &Number) -> f64 {
    // A number has no f64 only under serde_json's `arbitrary_precision`, and
    // then because its magnitude is beyond f64.
    number.as_f64().unwrap_or(f64::MAX)
}

pub(super) fn is_integer(number: &Number) -> bool {
    number.as_i128().is_some() || float(number).fract() == 0.0
}

/// The value of a keyword that counts something.
pub(super) fn as_count(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        // The cast saturates, which no instance is large enough to notice.
        (float >= 0.0 && float.fract() == 0.0).then_some(float as u64)
    })
}

/// Whether `number` is a multiple of `divisor` in decimal notation, so that
/// 19.99 is a multiple of 0.01 although their binary floats disagree.
pub(super) fn is_multiple_of(number: &Number, divisor: &Number) -> bool {
    let (Some((digits, exponent)), Some((unit, unit_exponent))) = (decimal(number), decimal(divisor)) else {
        return false;
    };
    if digits == 0 {
        return true;
    }
    if unit == 0 {
        return false;
    }
    if exponent >= unit_exponent {
        let mut remainder = digits % unit;
        for _ in 0..exponent - unit_exponent {
            remainder = remainder * 10 % unit;
        }
        return remainder == 0;
    }
    // A unit that overflows u128 is larger than the digits, so it cannot divide them.
    10_u128
        .checked_pow((unit_exponent - exponent) as u32)
        .and_then(|scale| unit.checked_mul(scale))
        .is_some_and(|unit| digits % unit == 0)
}

/// The magnitude as `digits * 10^exponent`, from the shortest text of the number.
/// `None` for a number that neither `f64` nor `u64` can represent.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    if let Some(integer) = number.as_i128() {
        return Some((integer.unsigned_abs(), 0));
    }
    let text = number.to_string();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{}", whole.trim_start_matches('-'), fraction);
    // Trailing zeros would make `1.0` look finer than its divisor.
    let significant = digits.trim_end_matches('0');
    let dropped = digits.len() - significant.len();
    let exponent = exponent - fraction.len() as i32 + dropped as i32;
    let bounded = significant.len() <= 37 && exponent.abs() <= 1_000;
    match significant {
        "" => Some((0, 0)),
        _ if bounded => Some((significant.parse().ok()?, exponent)),
        _ => None,
    }
}
