//! Owns the list of functions expressions can call: their names and how each is
//! called.
//!
//! The table is the whole list, so an unknown name or a wrong number of
//! arguments is found when an expression is checked and not when it runs. That
//! also keeps a workflow from depending on anything outside its scope: no entry
//! reads a clock or randomness.

use super::budget::shorten;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
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
    Double,
    Dyn,
    EndsWith,
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
    Trim,
    Type,
    UpperAscii,
}

/// Name, function, form, least and most arguments (with the receiver), usage.
type Signature = (&'static str, Function, Form, usize, usize, &'static str);

const MANY: usize = usize::MAX;

#[rustfmt::skip]
const TABLE: &[Signature] = &[
    ("abs", Function::Abs, Form::Global, 1, 1, "abs(number)"),
    ("bool", Function::Bool, Form::Global, 1, 1, "bool(value)"),
    ("ceil", Function::Ceil, Form::Global, 1, 1, "ceil(number)"),
    ("contains", Function::Contains, Form::Member, 2, 2, "text.contains(part)"),
    ("double", Function::Double, Form::Global, 1, 1, "double(value)"),
    ("dyn", Function::Dyn, Form::Global, 1, 1, "dyn(value)"),
    ("endsWith", Function::EndsWith, Form::Member, 2, 2, "text.endsWith(part)"),
    ("floor", Function::Floor, Form::Global, 1, 1, "floor(number)"),
    ("hasValue", Function::HasValue, Form::Member, 1, 1, "value.?field.hasValue()"),
    ("indexOf", Function::IndexOf, Form::Member, 2, 3, "text.indexOf(part) or text.indexOf(part, start)"),
    ("int", Function::Int, Form::Global, 1, 1, "int(value)"),
    ("join", Function::Join, Form::Member, 1, 2, "list.join() or list.join(separator)"),
    ("json", Function::Json, Form::Global, 1, 1, "json(value)"),
    ("keys", Function::Keys, Form::Either, 1, 1, "keys(map) or map.keys()"),
    ("lowerAscii", Function::LowerAscii, Form::Member, 1, 1, "text.lowerAscii()"),
    ("max", Function::Max, Form::Either, 1, MANY, "max(list) or max(a, b, ...)"),
    ("min", Function::Min, Form::Either, 1, MANY, "min(list) or min(a, b, ...)"),
    ("orValue", Function::OrValue, Form::Member, 2, 2, "value.?field.orValue(default)"),
    ("parse_json", Function::ParseJson, Form::Global, 1, 1, "parse_json(text)"),
    ("replace", Function::Replace, Form::Member, 3, 4, "text.replace(from, to) or text.replace(from, to, count)"),
    ("round", Function::Round, Form::Global, 1, 1, "round(number)"),
    ("size", Function::Size, Form::Either, 1, 1, "size(value) or value.size()"),
    ("split", Function::Split, Form::Member, 2, 3, "text.split(separator) or text.split(separator, limit)"),
    ("startsWith", Function::StartsWith, Form::Member, 2, 2, "text.startsWith(part)"),
    ("string", Function::String, Form::Global, 1, 1, "string(value)"),
    ("substring", Function::Substring, Form::Member, 2, 3, "text.substring(start) or text.substring(start, end)"),
    ("trim", Function::Trim, Form::Member, 1, 1, "text.trim()"),
    ("type", Function::Type, Form::Global, 1, 1, "type(value)"),
    ("upperAscii", Function::UpperAscii, Form::Member, 1, 1, "text.upperAscii()"),
];

/// Expanded by the parser when called as shown; anything else ends up here.
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

/// The function a call means, or why there is none.
pub(super) fn resolve(name: &str, form: Form, given: usize) -> Result<Function, String> {
    if let Some((_, function, expected, least, most, usage)) =
        TABLE.iter().find(|signature| signature.0 == name)
    {
        let fits = *expected == form || *expected == Form::Either;
        if !fits || given < *least || given > *most {
            return Err(format!("wrong call of {name}, expected {usage}"));
        }
        return Ok(*function);
    }
    if let Some((_, usage)) = MACROS.iter().find(|known| known.0 == name) {
        return Err(format!("wrong call of {name}, expected {usage}"));
    }
    let known = || {
        let functions = TABLE.iter().map(|signature| signature.0);
        functions.chain(MACROS.iter().map(|known| known.0))
    };
    let near: Vec<_> = known().filter(|known| is_near(name, known)).collect();
    let name = shorten(name, 60);
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

/// Whether two names differ by case and underscores or by two edits at most.
fn is_near(name: &str, known: &str) -> bool {
    let fold = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let (name, known) = (fold(name), fold(known));
    if name.len().abs_diff(known.len()) > 2 {
        return false;
    }
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (place, left) in name.bytes().enumerate() {
        let mut diagonal = place;
        row[0] = place + 1;
        for (column, right) in known.bytes().enumerate() {
            let change = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    // Two edits turn any two-letter name into any other.
    row[known.len()] <= 2.min(known.len() / 3)
}
