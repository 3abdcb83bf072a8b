//! Owns how values, types and counts read in a message. Everything is written
//! lazily, since most messages are about alternatives that do not matter, and
//! cut short, since a value or a name can be as long as its author likes.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::{Counted, Problem, Types};

/// How much of a name or value is shown.
const SHOWN_CHARACTERS: usize = 60;

/// Writes "number 3", "string \"id\"", "array of 2 items".
pub(super) struct Found<'v>(pub(super) &'v Value);

impl Display for Found<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("null"),
            Value::Bool(value) => write!(out, "boolean {value}"),
            Value::Number(number) => write!(out, "number {number}"),
            Value::String(text) => write!(out, "string {}", Quoted(text)),
            Value::Array(items) => write!(out, "array of {}", Plural(items.len() as u64, "item")),
            Value::Object(map) => {
                write!(out, "object with {}", Plural(map.len() as u64, "property"))
            }
        }
    }
}

/// Writes text as a JSON string, cut short so that a message stays a message.
pub(super) struct Quoted<'t>(pub(super) &'t str);

impl Display for Quoted<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARACTERS) {
            Some((end, _)) => write!(out, "{}…", Value::from(&self.0[..end])),
            None => write!(out, "{}", Value::from(self.0)),
        }
    }
}

struct Cut<'t>(&'t str, usize);

impl Display for Cut<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Cut(text, characters) = *self;
        match text.char_indices().nth(characters) {
            Some((end, _)) => write!(out, "{}…", &text[..end]),
            None => out.write_str(text),
        }
    }
}

pub(super) struct Plural(pub(super) u64, pub(super) &'static str);

impl Display for Plural {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Plural(count, noun) = self;
        match (count, noun.strip_suffix('y')) {
            (1, _) => write!(out, "1 {noun}"),
            (_, Some(stem)) => write!(out, "{count} {stem}ies"),
            (_, None) => write!(out, "{count} {noun}s"),
        }
    }
}

/// Writes the values of an `enum`, the first few spelled out.
pub(super) struct Choice<'v>(pub(super) &'v [Value]);

impl Display for Choice<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        if self.0.len() != 1 {
            out.write_str("one of ")?;
        }
        for (position, value) in self.0.iter().take(SHOWN).enumerate() {
            if position > 0 {
                out.write_str(", ")?;
            }
            write!(out, "{}", Cut(&value.to_string(), SHOWN_CHARACTERS))?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(out, " or {more} more"),
        }
    }
}

impl Counted {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Counted::Characters => "character",
            Counted::Items => "item",
            Counted::Properties => "property",
        }
    }
}

impl Display for Types {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (position, name) in self.names().enumerate() {
            if position > 0 {
                out.write_str(" or ")?;
            }
            out.write_str(name)?;
        }
        Ok(())
    }
}

/// Writes why the first alternatives did not match. Each reason is cut, or
/// nested alternatives would multiply the length of the message.
pub(super) struct Misses<'p> {
    /// Length of the pointer to the value all alternatives were tried on.
    pub(super) path: usize,
    pub(super) misses: &'p [Problem],
}

impl Display for Misses<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        for (position, miss) in self.misses.iter().take(SHOWN).enumerate() {
            if position > 0 {
                out.write_str("; ")?;
            }
            let place = miss.pointer.get(self.path..).unwrap_or_default();
            if !place.is_empty() {
                write!(out, "at {place} ")?;
            }
            write!(out, "{}", Cut(&miss.message, 2 * SHOWN_CHARACTERS))?;
        }
        match self.misses.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}
