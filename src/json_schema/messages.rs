//! Formats values, types and counts for messages. Formatting is lazy, because
//! most messages about alternatives are never shown, and truncated, because
//! values and names can have any length.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::{Counted, Types, Violation};

/// A longer name or value is truncated.
const SHOWN_CHARACTERS: usize = 60;

/// Writes "number 3", "string \"id\"", "array of 2 items".
pub(super) struct Described<'v>(pub(super) &'v Value);

impl Display for Described<'_> {
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

/// Writes text as a truncated JSON string.
pub(super) struct Quoted<'t>(pub(super) &'t str);

impl Display for Quoted<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARACTERS) {
            Some((end, _)) => write!(out, "{}…", Value::from(&self.0[..end])),
            None => write!(out, "{}", Value::from(self.0)),
        }
    }
}

struct Truncated<'t>(&'t str, usize);

impl Display for Truncated<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Truncated(text, characters) = *self;
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

/// Writes the first values of an `enum` and the number of the others.
pub(super) struct AllowedValues<'v>(pub(super) &'v [Value]);

impl Display for AllowedValues<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        if self.0.len() != 1 {
            out.write_str("one of ")?;
        }
        for (position, value) in self.0.iter().take(SHOWN).enumerate() {
            if position > 0 {
                out.write_str(", ")?;
            }
            write!(out, "{}", Truncated(&value.to_string(), SHOWN_CHARACTERS))?;
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

/// Writes why the first alternatives did not match. Each reason is truncated, or
/// nested alternatives would multiply the length of the message.
pub(super) struct Mismatches<'p> {
    /// Length of the pointer to the value that the alternatives were applied to.
    pub(super) pointer_length: usize,
    pub(super) mismatches: &'p [Violation],
}

impl Display for Mismatches<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        for (position, mismatch) in self.mismatches.iter().take(SHOWN).enumerate() {
            if position > 0 {
                out.write_str("; ")?;
            }
            let pointer = mismatch.pointer.get(self.pointer_length..).unwrap_or_default();
            if !pointer.is_empty() {
                write!(out, "at {pointer} ")?;
            }
            write!(out, "{}", Truncated(&mismatch.message, 2 * SHOWN_CHARACTERS))?;
        }
        match self.mismatches.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}
