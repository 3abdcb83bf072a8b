//! The functions that expressions can call, and the signature of each.
//!
//! The table is complete, so an unknown name or a wrong number of arguments is
//! found when an expression is checked, not when it is evaluated. No function
//! reads a clock or randomness, so a result depends only on the scope.

use crate::base::suggest::edit_distance;
use crate::base::text::shorten_to;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallForm {
    /// `value.name(...)`
    Member,
    /// `name(...)`
    Global,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Abs,
    Bool,
    Ceil,
    Contains,
    Distinct,
    Double,
    Dyn,
    EndsWith,
    Flatten,
    Floor,
    HasValue,
    IndexOf,
    Int,
    Join,
    Json,
    Keys,
    LowerAscii,
    Max,
    Min,
    OrValue,
    ParseJson,
    Replace,
    Round,
    Size,
    Split,
    StartsWith,
    String,
    Substring,
    Sum,
    Trim,
    Type,
    UpperAscii,
}

/// Name, function, form, minimum and maximum number of arguments (with the receiver), usage.
type Signature = (&'static str, Function, CallForm, usize, usize, &'static str);

const UNBOUNDED: usize = usize::MAX;

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    ("abs", Function::Abs, CallForm::Global, 1, 1, "abs(number)"),
    ("bool", Function::Bool, CallForm::Global, 1, 1, "bool(value)"),
    ("ceil", Function::Ceil, CallForm::Global, 1, 1, "ceil(number)"),
    ("contains", Function::Contains, CallForm::Member, 2, 2, "text.contains(part)"),
    ("distinct", Function::Distinct, CallForm::Member, 1, 1, "list.distinct()"),
    ("double", Function::Double, CallForm::Global, 1, 1, "double(value)"),
    ("dyn", Function::Dyn, CallForm::Global, 1, 1, "dyn(value)"),
    ("endsWith", Function::EndsWith, CallForm::Member, 2, 2, "text.endsWith(part)"),
    ("flatten", Function::Flatten, CallForm::Member, 1, 1, "list.flatten()"),
    ("floor", Function::Floor, CallForm::Global, 1, 1, "floor(number)"),
    ("hasValue", Function::HasValue, CallForm::Member, 1, 1, "value.?field.hasValue()"),
    ("indexOf", Function::IndexOf, CallForm::Member, 2, 3, "text.indexOf(part) or text.indexOf(part, start)"),
    ("int", Function::Int, CallForm::Global, 1, 1, "int(value)"),
    ("join", Function::Join, CallForm::Member, 1, 2, "list.join() or list.join(separator)"),
    ("json", Function::Json, CallForm::Global, 1, 1, "json(value)"),
    ("keys", Function::Keys, CallForm::Either, 1, 1, "keys(map) or map.keys()"),
    ("lowerAscii", Function::LowerAscii, CallForm::Member, 1, 1, "text.lowerAscii()"),
    ("max", Function::Max, CallForm::Either, 1, UNBOUNDED, "list.max(), max(list) or max(a, b, ...)"),
    ("min", Function::Min, CallForm::Either, 1, UNBOUNDED, "list.min(), min(list) or min(a, b, ...)"),
    ("orValue", Function::OrValue, CallForm::Member, 2, 2, "value.?field.orValue(default)"),
    ("parse_json", Function::ParseJson, CallForm::Global, 1, 1, "parse_json(text)"),
    ("replace", Function::Replace, CallForm::Member, 3, 4, "text.replace(from, to) or text.replace(from, to, count)"),
    ("round", Function::Round, CallForm::Global, 1, 1, "round(number)"),
    ("size", Function::Size, CallForm::Either, 1, 1, "size(value) or value.size()"),
    ("split", Function::Split, CallForm::Member, 2, 3, "text.split(separator) or text.split(separator, limit)"),
    ("startsWith", Function::StartsWith, CallForm::Member, 2, 2, "text.startsWith(part)"),
    ("string", Function::String, CallForm::Global, 1, 1, "string(value)"),
    ("substring", Function::Substring, CallForm::Member, 2, 3, "text.substring(start) or text.substring(start, end)"),
    ("sum", Function::Sum, CallForm::Member, 1, 1, "list.sum()"),
    ("trim", Function::Trim, CallForm::Member, 1, 1, "text.trim()"),
    ("type", Function::Type, CallForm::Global, 1, 1, "type(value)"),
    ("upperAscii", Function::UpperAscii, CallForm::Member, 1, 1, "text.upperAscii()"),
];

/// Macros that the parser expands when they are called as shown. Only wrong calls of them get here.
const MACROS: &[(&str, &str)] = &[
    ("all", "list.all(item, condition)"),
    ("exists", "list.exists(item, condition)"),
    ("exists_one", "list.exists_one(item, condition)"),
    ("filter", "list.filter(item, condition)"),
    ("has", "has(value.field)"),
    (
        "map",
        "list.map(item, result) or list.map(item, condition, result)",
    ),
];

/// The function that a call refers to, or why there is none.
pub(super) fn resolve(name: &str, form: CallForm, given: usize) -> Result<Function, String> {
    if let Some((_, function, expected, min, max, usage)) =
        SIGNATURES.iter().find(|signature| signature.0 == name)
    {
        let fits = *expected == form || *expected == CallForm::Either;
        if !fits || given < *min || given > *max {
            return Err(format!("wrong call of {name}, expected {usage}"));
        }
        return Ok(*function);
    }
    if let Some((_, usage)) = MACROS.iter().find(|known| known.0 == name) {
        return Err(format!("wrong call of {name}, expected {usage}"));
    }
    let known = || {
        let functions = SIGNATURES.iter().map(|signature| signature.0);
        functions.chain(MACROS.iter().map(|known| known.0))
    };
    let near: Vec<_> = known().filter(|known| is_similar(name, known)).collect();
    let name = shorten_to(name, 60);
    if near.is_empty() {
        let all: Vec<_> = known().collect();
        Err(format!("unknown function {name}, known are {}", all.join(", ")))
    } else {
        Err(format!(
            "unknown function {name}, did you mean {}?",
            near.join(" or ")
        ))
    }
}

/// Whether two names differ only by case and underscores, or by at most two edits.
fn is_similar(name: &str, known: &str) -> bool {
    let fold = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let (name, known) = (fold(name), fold(known));
    if name.len().abs_diff(known.len()) > 2 {
        return false;
    }
    // Short names allow fewer edits: two edits turn any two-letter name into any other.
    edit_distance(name.as_bytes(), known.as_bytes()) <= 2.min(known.len() / 3)
}
