//! JSON as text, and how long that is. `Value::to_string` goes through the formatter, which takes twice as long.

use std::io;

use serde::Serialize;
use serde_json::{Error, Value};

/// Enough for most rows and orders.
const BYTES: usize = 512;

pub fn written(value: &(impl Serialize + ?Sized)) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(BYTES);
    serde_json::to_writer(&mut bytes, value)?;
    // JSON is UTF-8.
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

pub fn json(value: &Value) -> String {
    // A value has no key that is none.
    written(value).unwrap_or_else(|_| value.to_string())
}

/// How many bytes `json` would have.
pub fn json_bytes(value: &Value) -> usize {
    bytes_of(value)
}

/// How many bytes `written` would have. What cannot be written has none.
pub fn bytes_of(value: &(impl Serialize + ?Sized)) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => 0,
    }
}

/// The text, or as much of it as `most` bytes hold, with a mark that says how long it was.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let mark = format!("… [cut, {} bytes in all]", text.len());
    text.truncate(text.floor_char_boundary(most.saturating_sub(mark.len())));
    text.push_str(&mark);
    text
}

/// As `json_bytes`, if that is no more than `most`: stops counting there.
pub fn json_bytes_up_to(value: &Value, most: usize) -> Option<usize> {
    let mut counter = Bounded { bytes: 0, most };
    let counted = serde_json::to_writer(&mut counter, value);
    counted.is_ok().then_some(counter.bytes)
}

struct Bounded {
    bytes: usize,
    most: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        match self.bytes <= self.most {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_is_cut_says_so_and_fits() {
        assert_eq!(cut("short".into(), 5), "short");
        let text = cut("ä".repeat(3_000), 4_096);
        assert!(text.len() <= 4_096, "{}", text.len());
        assert!(text.ends_with("ä… [cut, 6000 bytes in all]"), "{text}");
    }

    #[test]
    fn text_and_its_length_are_those_of_the_formatter() {
        for value in [
            json!(null),
            json!({"größe": [1, -2.5, 1e300, true, "\"\u{0}\n𝔸"], "": {}}),
            json!("x".repeat(10_000)),
        ] {
            assert_eq!(json(&value), value.to_string());
            let bytes = value.to_string().len();
            assert_eq!(json_bytes(&value), bytes);
            assert_eq!(bytes_of(&value), bytes);
            assert_eq!(json_bytes_up_to(&value, bytes), Some(bytes));
            assert_eq!(json_bytes_up_to(&value, bytes - 1), None);
        }
    }
}
