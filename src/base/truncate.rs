//! Truncates values that leave a run: for the index and for notifications. Sizes are those of the values as JSON. `None` means that a value fits.

use serde_json::{Value, json};

use crate::base::text::{json_bytes, json_text, truncation_note};

/// The beginning of `text` with a note of its length, at most `bytes` long inside a JSON string.
pub fn text(text: &str, bytes: usize) -> Option<String> {
    if bytes_of(text) <= bytes {
        return None;
    }
    let note = truncation_note(text);
    let mut left = bytes.saturating_sub(note.len());
    let mut end = 0;
    for (index, character) in text.char_indices() {
        let taken = bytes_of_char(character);
        if taken > left {
            break;
        }
        left -= taken;
        end = index + character.len_utf8();
    }
    Some(format!("{}{note}", &text[..end]))
}

/// A text is truncated; any other value becomes its truncated JSON, as a text.
pub fn value(value: &Value, bytes: usize) -> Option<Value> {
    if json_bytes(value) <= bytes {
        return None;
    }
    let bytes = bytes.saturating_sub(QUOTES);
    let cut = match value {
        Value::String(long) => text(long, bytes),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            text(&json_text(value), bytes)
        }
    };
    cut.map(Value::String)
}

/// The first elements that fit. Elements are never truncated: that would change their meaning.
pub fn list(elements: &[Value], bytes: usize) -> Option<Vec<Value>> {
    let mut left = bytes.saturating_sub(QUOTES);
    let fits = elements.iter().take_while(|element| {
        let taken = json_bytes(element) + 1;
        let fits = taken <= left;
        left = left.saturating_sub(taken);
        fits
    });
    let count = fits.count();
    (count < elements.len()).then(|| elements[..count].to_vec())
}

/// A truncated JSON Schema would be invalid. A schema that accepts everything replaces it and states the length.
pub fn schema(schema: &Value, bytes: usize) -> Option<Value> {
    let whole = json_bytes(schema);
    (whole > bytes).then(|| json!({"$comment": format!("cut, {whole} bytes in all")}))
}

/// Truncates every text in `value`, at any depth. Returns whether there was one.
pub fn every_text(value: &mut Value, bytes: usize) -> bool {
    match value {
        Value::String(long) => match text(long, bytes) {
            Some(cut) => {
                *long = cut;
                true
            }
            None => false,
        },
        Value::Array(elements) => elements.iter_mut().fold(false, |was_truncated, element| {
            every_text(element, bytes) | was_truncated
        }),
        Value::Object(fields) => fields.values_mut().fold(false, |was_truncated, field| {
            every_text(field, bytes) | was_truncated
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The delimiters of a string or a list.
const QUOTES: usize = 2;

fn bytes_of(text: &str) -> usize {
    text.chars().map(bytes_of_char).sum()
}

/// With the escapes of `serde_json`.
fn bytes_of_char(character: char) -> usize {
    match character {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\u{0}'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_are_not_truncated() {
        for whole in ["", "short", "größe"] {
            assert_eq!(text(whole, whole.len()), None);
        }
        assert_eq!(value(&json!({"a": 1}), 7), None);
        assert_eq!(list(&[json!("a"), json!("b")], 10), None);
        assert_eq!(schema(&json!({}), 2), None);
    }

    #[test]
    fn a_truncated_text_fits_and_states_its_length() {
        for piece in ["x", "ß", "𝔸", "\"", "\u{1}", "\n"] {
            let long = piece.repeat(5_000);
            for bytes in [60, 61, 62, 63, 1_000] {
                let cut = text(&long, bytes).expect("it is too long");
                let written = json!(cut).to_string();
                assert!(
                    written.len() <= bytes + 2,
                    "{piece:?}: {} of {bytes}",
                    written.len()
                );
                assert!(
                    written.len() + 8 >= bytes,
                    "{piece:?}: {} of {bytes}",
                    written.len()
                );
                assert!(cut.ends_with(&format!("… [cut, {} bytes in all]", long.len())));
            }
        }
    }

    #[test]
    fn a_long_value_becomes_a_text() {
        let long = json!({"items": vec!["x"; 1_000]});
        let cut = value(&long, 200).expect("it is too long");
        assert!(
            cut.as_str()
                .is_some_and(|text| text.starts_with(r#"{"items":["x""#)),
            "{cut}"
        );
        assert!(cut.to_string().len() <= 400, "{cut}");
    }

    #[test]
    fn a_truncated_list_has_whole_elements() {
        let elements = [json!("aaaa"), json!("bbbb"), json!("cccc")];
        assert_eq!(list(&elements, 16), Some(vec![json!("aaaa"), json!("bbbb")]));
        assert_eq!(list(&elements, 3), Some(Vec::new()));
    }

    #[test]
    fn every_text_is_truncated() {
        let mut view = json!({"a": ["x".repeat(100), 1], "b": {"c": "y".repeat(100), "d": "short"}});
        assert!(every_text(&mut view, 40));
        assert!(view.to_string().len() < 140, "{view}");
        assert_eq!(view["b"]["d"], "short");
        assert!(!every_text(&mut view, 60));
    }
}
