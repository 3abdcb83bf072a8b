//! Texts that are too long for the index are cut, and say so. Sizes are those of the JSON they end up in.

use serde_json::{Value, json};

use crate::base::text::{json_bytes, json_text};

/// The beginning of `text` and how long it was, at most `bytes` inside a JSON string. None: it fits as it is.
pub fn text(text: &str, bytes: usize) -> Option<String> {
    if bytes_of(text) <= bytes {
        return None;
    }
    let marker = format!("… [cut, {} bytes in all]", text.len());
    let mut left = bytes.saturating_sub(marker.len());
    let mut end = 0;
    for (index, character) in text.char_indices() {
        let taken = bytes_of_char(character);
        if taken > left {
            break;
        }
        left -= taken;
        end = index + character.len_utf8();
    }
    Some(format!("{}{marker}", &text[..end]))
}

/// A text is cut; of anything else the JSON is, which makes a text of it. None: it fits as it is.
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

/// As many elements from the beginning as fit: half an element would be another one. None: all fit.
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

/// A JSON Schema cannot be cut: in its place comes one that takes everything and says how long it was.
pub fn schema(schema: &Value, bytes: usize) -> Option<Value> {
    let whole = json_bytes(schema);
    (whole > bytes).then(|| json!({"$comment": format!("cut, {whole} bytes in all")}))
}

/// Cuts every text in `value`, however deep. Returns whether one was too long.
pub fn every_text(value: &mut Value, bytes: usize) -> bool {
    match value {
        Value::String(long) => match text(long, bytes) {
            Some(cut) => {
                *long = cut;
                true
            }
            None => false,
        },
        Value::Array(elements) => elements
            .iter_mut()
            .fold(false, |was_cut, element| every_text(element, bytes) | was_cut),
        Value::Object(fields) => fields
            .values_mut()
            .fold(false, |was_cut, field| every_text(field, bytes) | was_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Around a string or a list.
const QUOTES: usize = 2;

fn bytes_of(text: &str) -> usize {
    text.chars().map(bytes_of_char).sum()
}

/// As `serde_json` escapes it.
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
    fn what_fits_is_left_alone() {
        for whole in ["", "short", "größe"] {
            assert_eq!(text(whole, whole.len()), None);
        }
        assert_eq!(value(&json!({"a": 1}), 7), None);
        assert_eq!(list(&[json!("a"), json!("b")], 10), None);
        assert_eq!(schema(&json!({}), 2), None);
    }

    #[test]
    fn a_cut_text_takes_no_more_than_it_may_and_says_how_long_it_was() {
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
    fn a_value_that_is_no_text_becomes_one() {
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
    fn a_list_keeps_whole_elements() {
        let elements = [json!("aaaa"), json!("bbbb"), json!("cccc")];
        assert_eq!(list(&elements, 16), Some(vec![json!("aaaa"), json!("bbbb")]));
        assert_eq!(list(&elements, 3), Some(Vec::new()));
    }

    #[test]
    fn every_text_is_found() {
        let mut view = json!({"a": ["x".repeat(100), 1], "b": {"c": "y".repeat(100), "d": "short"}});
        assert!(every_text(&mut view, 40));
        assert!(view.to_string().len() < 140, "{view}");
        assert_eq!(view["b"]["d"], "short");
        assert!(!every_text(&mut view, 60));
    }
}
