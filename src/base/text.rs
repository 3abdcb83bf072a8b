//! JSON as text, its length in bytes, text shortened to a length, and text that is kept once.
//!
//! `Value::to_string` goes through the formatter, which takes twice as long as a writer.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use serde::Serialize;
use serde_json::{Error, Value};

/// Holds most rows and task orders without growing.
const INITIAL_CAPACITY: usize = 512;

pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(INITIAL_CAPACITY);
    serde_json::to_writer(&mut bytes, value)?;
    Ok(String::from_utf8(bytes).expect("serde_json writes UTF-8"))
}

pub fn json_text(value: &Value) -> String {
    to_json(value).expect("the keys of a JSON value are strings, and a Vec accepts every byte")
}

/// The length of `to_json`, or 0 if the value cannot be serialized.
pub fn json_bytes(value: &(impl Serialize + ?Sized)) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => 0,
    }
}

/// `json_bytes` if it is at most `bytes_max`. Counting stops there.
pub fn json_bytes_within(value: &Value, bytes_max: usize) -> Option<usize> {
    let mut counter = BoundedCounter { bytes: 0, bytes_max };
    let counted = serde_json::to_writer(&mut counter, value);
    counted.is_ok().then_some(counter.bytes)
}

/// Shortens user text in a message.
pub fn shorten(text: &str) -> String {
    shorten_to(text, 80)
}

pub fn shorten_to(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// The type of a value, in a message.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Shortens text to `bytes_max`, ending in a note that states the original length.
pub fn truncate(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let note = truncation_note(&text);
    text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(note.len())));
    text.push_str(&note);
    text
}

/// Ends a truncated text.
pub fn truncation_note(text: &str) -> String {
    format!("… [cut, {} bytes in all]", text.len())
}

struct BoundedCounter {
    bytes: usize,
    bytes_max: usize,
}

impl io::Write for BoundedCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        match self.bytes <= self.bytes_max {
            true => Ok(bytes.len()),
            false => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text as it is in `known`, so that many owners of one text share it.
pub fn shared(known: &mut BTreeSet<Rc<str>>, text: String) -> Rc<str> {
    if let Some(known) = known.get(text.as_str()) {
        return Rc::clone(known);
    }
    let text: Rc<str> = text.into();
    known.insert(Rc::clone(&text));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn truncated_text_fits_and_states_its_original_length() {
        assert_eq!(truncate("short".into(), 5), "short");
        let text = truncate("ä".repeat(3_000), 4_096);
        assert!(text.len() <= 4_096, "{}", text.len());
        assert!(text.ends_with("ä… [cut, 6000 bytes in all]"), "{text}");
    }

    #[test]
    fn text_and_its_length_equal_those_of_the_formatter() {
        for value in [
            json!(null),
            json!({"größe": [1, -2.5, 1e300, true, "\"\u{0}\n𝔸"], "": {}}),
            json!("x".repeat(10_000)),
        ] {
            assert_eq!(json_text(&value), value.to_string());
            let bytes = value.to_string().len();
            assert_eq!(json_bytes(&value), bytes);
            assert_eq!(json_bytes_within(&value, bytes), Some(bytes));
            assert_eq!(json_bytes_within(&value, bytes - 1), None);
        }
    }
}
