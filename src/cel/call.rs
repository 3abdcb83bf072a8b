//! The implementation of each function.
//!
//! Safe on any arguments: a wrong type is an error that names the expected type,
//! and each function charges for what it reads and creates beforehand. Positions
//! in text count characters, not bytes, so no slice splits a character.

use std::str::FromStr;

use super::budget::{Budget, ENTRY_BYTES, Fault, fail};
use super::functions::Function;
use super::lists::{distinct, flatten, join, min_or_max, sum};
use super::operate::{int, whole_number};
use super::value::{Operand, Text, json_text, plain_text};
use crate::base::compute::{OBJECT_STEPS, OPERATION_STEPS};
use crate::base::text::shorten_to;

pub(super) fn call<'a>(
    function: Function,
    arguments: &[Operand<'a>],
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    let argument = |index: usize| {
        arguments
            .get(index)
            .expect("resolve checked the number of arguments")
    };
    let first = argument(0);
    match function {
        Function::Abs => match first {
            Operand::Int(number) => int(i64::try_from(*number).ok().and_then(i64::checked_abs)),
            Operand::Double(number) => Ok(Operand::Double(number.abs())),
            other => wrong_type("abs", "a number", other),
        },
        Function::Bool => match first {
            Operand::Bool(value) => Ok(Operand::Bool(*value)),
            Operand::Text(text) if text.as_str() == "true" => Ok(Operand::Bool(true)),
            Operand::Text(text) if text.as_str() == "false" => Ok(Operand::Bool(false)),
            other => wrong_type("bool", "a bool, \"true\" or \"false\"", other),
        },
        Function::Ceil => to_int("ceil", first, f64::ceil),
        Function::Floor => to_int("floor", first, f64::floor),
        Function::Round => to_int("round", first, f64::round),
        Function::Int => match first {
            Operand::Text(_) => int(Some(parse_text("int", first, budget)?)),
            other => to_int("int", other, f64::trunc),
        },
        Function::Double => match first {
            Operand::Int(number) => Ok(Operand::Double(*number as f64)),
            Operand::Double(number) => Ok(Operand::Double(*number)),
            Operand::Text(_) => Operand::double(parse_text("double", first, budget)?),
            other => wrong_type("double", "a number or a string", other),
        },
        Function::String => Ok(Operand::Text(plain_text(first, budget)?)),
        Function::Json => Ok(Operand::Text(Text::Shared(json_text(first, budget)?.into()))),
        Function::ParseJson => parse_json(text("parse_json", first, budget)?, budget),
        Function::Dyn | Function::HasValue | Function::OrValue => Ok(first.clone()),
        Function::Type => Ok(Operand::Text(Text::Borrowed(first.type_name()))),
        Function::Size => size(first, budget),
        Function::Keys => match first {
            Operand::Map(map) => {
                let keys = map.keys(budget)?.into_iter().map(Operand::Text);
                Ok(Operand::list(keys.collect()))
            }
            other => wrong_type("keys", "a map", other),
        },
        Function::Sum => sum(first, budget),
        Function::Flatten => flatten(first, budget),
        Function::Distinct => distinct(first, budget),
        Function::Max => min_or_max("max", arguments, true, budget),
        Function::Min => min_or_max("min", arguments, false, budget),
        Function::Contains => {
            let (whole, part) = texts("contains", first, argument(1), budget)?;
            Ok(Operand::Bool(whole.contains(part)))
        }
        Function::StartsWith => {
            let (whole, part) = texts("startsWith", first, argument(1), budget)?;
            Ok(Operand::Bool(whole.starts_with(part)))
        }
        Function::EndsWith => {
            let (whole, part) = texts("endsWith", first, argument(1), budget)?;
            Ok(Operand::Bool(whole.ends_with(part)))
        }
        Function::LowerAscii => {
            let text = text("lowerAscii", first, budget)?;
            budget.allocate(text.len() as u64)?;
            Ok(Operand::Text(Text::Shared(text.to_ascii_lowercase().into())))
        }
        Function::UpperAscii => {
            let text = text("upperAscii", first, budget)?;
            budget.allocate(text.len() as u64)?;
            Ok(Operand::Text(Text::Shared(text.to_ascii_uppercase().into())))
        }
        Function::Trim => {
            let whole = text("trim", first, budget)?;
            let start = whole.len() - whole.trim_start().len();
            slice(first, start, start + whole.trim().len(), budget)
        }
        Function::Substring => {
            let whole = text("substring", first, budget)?;
            let start = byte_offset("substring", whole, argument(1))?;
            let end = match arguments.get(2) {
                Some(end) => byte_offset("substring", whole, end)?,
                None => whole.len(),
            };
            if start > end {
                return fail("substring ends before it starts");
            }
            slice(first, start, end, budget)
        }
        Function::IndexOf => {
            let (whole, sought) = texts("indexOf", first, argument(1), budget)?;
            let start = match arguments.get(2) {
                Some(start) => byte_offset("indexOf", whole, start)?,
                None => 0,
            };
            let found = whole[start..].find(sought).map(|offset| start + offset);
            let position = found.map(|offset| whole[..offset].chars().count() as i128);
            Ok(Operand::Int(position.unwrap_or(-1)))
        }
        Function::Split => split(first, argument(1), arguments.get(2), budget),
        Function::Join => join(first, arguments.get(1), budget),
        Function::Replace => replace(arguments, budget),
    }
}

pub(super) fn wrong_type<T>(function: &str, expected: &str, found: &Operand) -> Result<T, Fault> {
    fail(format!(
        "{function} expects {expected}, found {}",
        found.type_name()
    ))
}

/// The text of an argument, charged as read.
pub(super) fn text<'v>(function: &str, value: &'v Operand, budget: &mut Budget) -> Result<&'v str, Fault> {
    match value {
        Operand::Text(text) => {
            budget.read(text.as_str().len())?;
            Ok(text.as_str())
        }
        other => wrong_type(function, "a string", other),
    }
}

fn parse_text<T: FromStr>(function: &str, value: &Operand, budget: &mut Budget) -> Result<T, Fault> {
    let text = text(function, value, budget)?;
    budget.search(text.len())?;
    text.parse()
        .or_else(|_| fail(format!("{function} cannot read \"{}\"", shorten_to(text, 60))))
}

fn texts<'v>(
    function: &str,
    one: &'v Operand,
    two: &'v Operand,
    budget: &mut Budget,
) -> Result<(&'v str, &'v str), Fault> {
    let (one, two) = (text(function, one, budget)?, text(function, two, budget)?);
    // Every caller searches `one` for `two`.
    budget.search(one.len())?;
    Ok((one, two))
}

fn slice<'a>(
    value: &Operand<'a>,
    start: usize,
    end: usize,
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    match value {
        Operand::Text(text) => Ok(Operand::Text(text.slice(start, end, budget)?)),
        other => wrong_type("substring", "a string", other),
    }
}

/// The byte offset of a character position. The end of the text is a position too.
fn byte_offset(function: &str, whole: &str, position: &Operand) -> Result<usize, Fault> {
    let Some(position) = whole_number(position) else {
        return wrong_type(function, "a whole number", position);
    };
    let ends = whole.char_indices().map(|(offset, _)| offset);
    let offset = usize::try_from(position)
        .ok()
        .and_then(|position| ends.chain([whole.len()]).nth(position));
    match offset {
        Some(offset) => Ok(offset),
        None => {
            let size = whole.chars().count();
            fail(format!(
                "{function} position {position} is out of range for a string of size {size}"
            ))
        }
    }
}

/// Rounds a number to an int, so that it can serve as a count or an index.
fn to_int<'a>(name: &str, value: &Operand, round: fn(f64) -> f64) -> Result<Operand<'a>, Fault> {
    match value {
        Operand::Int(number) => Ok(Operand::Int(*number)),
        Operand::Double(number) => {
            let rounded = round(*number);
            // The upper bound is 2^63, the first double that does not fit.
            if rounded >= i64::MIN as f64 && rounded < i64::MAX as f64 {
                Ok(Operand::Int(rounded as i128))
            } else {
                fail("integer overflow")
            }
        }
        other => wrong_type(name, "a number", other),
    }
}

fn size<'a>(value: &Operand, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let size = match value {
        Operand::Text(_) => text("size", value, budget)?.chars().count(),
        Operand::List(list) => list.size(),
        Operand::Map(map) => map.size(),
        other => return wrong_type("size", "a string, list or map", other),
    };
    Ok(Operand::Int(size as i128))
}

fn parse_json<'a>(text: &str, budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    // Charged before parsing: two bytes of text can become an entry.
    let marks = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':'));
    let nodes = marks.count() as u64 + 1;
    budget.charge(nodes)?;
    budget.allocate(nodes * ENTRY_BYTES + text.len() as u64)?;
    // Created twice: as JSON, and as an operand.
    let objects = text.bytes().filter(|byte| *byte == b'{').count() as u64;
    budget.charge_unit(2 * (objects * OBJECT_STEPS + nodes * OPERATION_STEPS))?;
    match serde_json::from_str(text) {
        Ok(value) => Ok(Operand::from_owned(value)),
        Err(error) => fail(format!("parse_json: {error}")),
    }
}

fn limit(name: &str, count: Option<&Operand>) -> Result<usize, Fault> {
    match count.map(|count| (whole_number(count), count)) {
        None => Ok(usize::MAX),
        // In CEL a negative count means no limit.
        Some((Some(count), _)) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        Some((None, count)) => wrong_type(name, "a whole number", count),
    }
}

fn split<'a>(
    value: &Operand<'a>,
    separator: &Operand,
    count: Option<&Operand>,
    budget: &mut Budget,
) -> Result<Operand<'a>, Fault> {
    let (whole, separator) = texts("split", value, separator, budget)?;
    let mut parts = Vec::new();
    let mut at = 0;
    // An empty separator splits into characters, without the empty parts Rust adds at both ends.
    let bounds: Box<dyn Iterator<Item = (usize, usize)>> = if separator.is_empty() {
        Box::new(whole.char_indices().skip(1).map(|(offset, _)| (offset, offset)))
    } else {
        let found = whole.match_indices(separator);
        Box::new(found.map(|(offset, found)| (offset, offset + found.len())))
    };
    let limit = limit("split", count)?;
    if limit == 0 || (separator.is_empty() && whole.is_empty()) {
        return Ok(Operand::list(parts));
    }
    for (start, end) in bounds.take(limit - 1) {
        budget.charge(1)?;
        budget.allocate(ENTRY_BYTES)?;
        parts.push(slice(value, at, start, budget)?);
        at = end;
    }
    budget.allocate(ENTRY_BYTES)?;
    parts.push(slice(value, at, whole.len(), budget)?);
    Ok(Operand::list(parts))
}

fn replace<'a>(arguments: &[Operand<'a>], budget: &mut Budget) -> Result<Operand<'a>, Fault> {
    let [whole, from, to, count @ ..] = arguments else {
        unreachable!("resolve checked the number of arguments")
    };
    let (whole, from) = texts("replace", whole, from, budget)?;
    let to = text("replace", to, budget)?;
    let limit = limit("replace", count.first())?;
    let matches = whole.matches(from).take(limit).count();
    budget.charge_unit(matches as u64 * OPERATION_STEPS / 2)?;
    let grown = matches.saturating_mul(to.len().saturating_sub(from.len()));
    budget.allocate(whole.len().saturating_add(grown) as u64)?;
    Ok(Operand::Text(Text::Shared(
        whole.replacen(from, to, limit).into(),
    )))
}
