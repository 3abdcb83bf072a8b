//! Takes the values of secrets out of what leaves the executor.
//!
//! A value is found as it is, escaped as in JSON, and percent-encoded in whole or in part. Any other way to write it,
//! base64 for one, is not found: there is no end to them.

use serde_json::{Map, Value};

pub const REDACTED: &str = "[redacted]";

/// A value shorter than this is a word of its own more often than a secret: it counts only as a whole string.
const SHORT_CHARACTERS: usize = 6;

/// A cut text that ends with so many bytes of a value ends with a part of it.
const TAIL_BYTES: usize = 4;

#[derive(Debug, Default)]
pub struct Redactor {
    /// The longest first, so that no part of one is left where another is inside it.
    values: Vec<String>,
}

/// One way in which a text may write characters.
#[derive(Clone, Copy)]
enum Spelling {
    Plain,
    Json,
    Percent,
}

impl Redactor {
    pub fn new(values: impl IntoIterator<Item = String>) -> Redactor {
        let mut values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Redactor { values }
    }

    pub fn is_idle(&self) -> bool {
        self.values.is_empty()
    }

    pub fn value(&self, value: Value) -> Value {
        if self.is_idle() {
            return value;
        }
        match value {
            Value::Null | Value::Bool(_) => value,
            // A secret of digits comes back as a number from a peer that reads it as one.
            Value::Number(number) => match self.values.contains(&number.to_string()) {
                true => Value::from(REDACTED),
                false => Value::Number(number),
            },
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let clean = fields.map(|(key, field)| (self.text(key), self.value(field)));
                Value::Object(clean.collect::<Map<_, _>>())
            }
        }
    }

    pub fn text(&self, mut text: String) -> String {
        for value in &self.values {
            if text == *value {
                return REDACTED.to_string();
            }
            if is_short(value) {
                continue;
            }
            for spelling in [Spelling::Plain, Spelling::Json, Spelling::Percent] {
                if let Some(clean) = replace(&text, value, spelling) {
                    text = clean;
                }
            }
        }
        text
    }

    /// As `text`, for one that may end in the middle of a value.
    pub fn cut_text(&self, text: String) -> String {
        let mut text = self.text(text);
        for value in self.values.iter().filter(|value| !is_short(value)) {
            let longest = value.len().min(text.len() + 1) - 1;
            let tail = (TAIL_BYTES..=longest)
                .rev()
                .find(|length| value.is_char_boundary(*length) && text.ends_with(&value[..*length]));
            if let Some(length) = tail {
                text.truncate(text.len() - length);
                text += REDACTED;
            }
        }
        text
    }

    /// Whether a text holds any of the values.
    pub fn finds(&self, text: &str) -> bool {
        !self.is_idle() && self.text(text.to_string()) != text
    }
}

fn is_short(value: &str) -> bool {
    value.chars().count() < SHORT_CHARACTERS
}

/// The text without the value; none if it does not hold it.
fn replace(text: &str, value: &str, spelling: Spelling) -> Option<String> {
    let possible = match spelling {
        Spelling::Plain => text.contains(value),
        Spelling::Json => text.contains('\\'),
        Spelling::Percent => text.contains('%') || text.contains('+'),
    };
    if !possible {
        return None;
    }
    let mut clean = String::new();
    let (mut kept, mut at) = (0, 0);
    while at < text.len() {
        if let Some(length) = matches_at(&text[at..], value, spelling) {
            clean.push_str(&text[kept..at]);
            clean.push_str(REDACTED);
            at += length;
            kept = at;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    if kept == 0 {
        return None;
    }
    clean.push_str(&text[kept..]);
    Some(clean)
}

/// How many bytes of `text` spell `value`, if it begins with it.
fn matches_at(text: &str, value: &str, spelling: Spelling) -> Option<usize> {
    match spelling {
        Spelling::Plain => text.starts_with(value).then_some(value.len()),
        Spelling::Json => matches_escaped(text, value),
        Spelling::Percent => matches_encoded(text.as_bytes(), value.as_bytes()),
    }
}

fn matches_escaped(text: &str, value: &str) -> Option<usize> {
    let mut rest = text;
    for wanted in value.chars() {
        let (found, length) = escaped_character(rest)?;
        if found != wanted {
            return None;
        }
        rest = &rest[length..];
    }
    Some(text.len() - rest.len())
}

/// The character that a JSON string begins with, and how long it is written.
fn escaped_character(text: &str) -> Option<(char, usize)> {
    let Some(escape) = text.strip_prefix('\\') else {
        let plain = text.chars().next()?;
        return Some((plain, plain.len_utf8()));
    };
    let unit = |text: &str| u32::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok();
    Some(match escape.chars().next()? {
        'n' => ('\n', 2),
        'r' => ('\r', 2),
        't' => ('\t', 2),
        'b' => ('\u{8}', 2),
        'f' => ('\u{c}', 2),
        'u' => {
            let first = unit(escape)?;
            match first {
                0xd800..=0xdbff => {
                    let second = unit(escape.get(5..)?.strip_prefix('\\')?)?;
                    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                    let both = 0x10000 + ((first - 0xd800) << 10) + low;
                    (char::from_u32(both)?, 12)
                }
                alone => (char::from_u32(alone)?, 6),
            }
        }
        itself => (itself, 1 + itself.len_utf8()),
    })
}

fn matches_encoded(text: &[u8], value: &[u8]) -> Option<usize> {
    let mut at = 0;
    for wanted in value {
        let (found, length) = match text.get(at..)? {
            [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                (digit(*high) << 4 | digit(*low), 3)
            }
            // Forms write a space so.
            [b'+', ..] if *wanted == b' ' => (b' ', 1),
            [plain, ..] => (*plain, 1),
            [] => return None,
        };
        if found != *wanted {
            return None;
        }
        at += length;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor(values: &[&str]) -> Redactor {
        Redactor::new(values.iter().map(|value| value.to_string()))
    }

    #[test]
    fn a_value_is_found_however_it_is_escaped() {
        for (value, text, clean) in [
            ("tok-123456", "Bearer tok-123456!", "Bearer [redacted]!"),
            ("tok-123456", "tok-123456tok-123456", "[redacted][redacted]"),
            ("tok-123456", "tok-12345 tok-123456", "tok-12345 [redacted]"),
            ("tok-123456", r"\u0074ok-12345\u0036", "[redacted]"),
            ("tok-123456", "%74ok%2D123456&x=1", "[redacted]&x=1"),
            ("pa\"ss\\word", r#"{"k":"pa\"ss\\word"}"#, r#"{"k":"[redacted]"}"#),
            ("line\nbreak", r"a line\nbreak", "a [redacted]"),
            ("a b/c+d%e", "q=a+b%2Fc%2bd%25e", "q=[redacted]"),
            ("a b/c+d%e", "q=a%20b/c%2Bd%25e", "q=[redacted]"),
            ("a b/c+d%e", "q=a b/c+d%e", "q=[redacted]"),
            ("schlüssel", "schl%C3%BCssel", "[redacted]"),
            ("schlüssel", r"schl\u00fcssel", "[redacted]"),
            ("key-🔑-key", r"key-\ud83d\udd11-key", "[redacted]"),
            ("key-🔑-key", "über key-🔑-key", "über [redacted]"),
            (
                "key-🔑-key",
                r"key-\ud83d-key \ud83d\u0041 \u12",
                r"key-\ud83d-key \ud83d\u0041 \u12",
            ),
            ("tok-123456", "100% sure, 1+1 \\", "100% sure, 1+1 \\"),
        ] {
            assert_eq!(
                redactor(&[value]).text(text.to_string()),
                clean,
                "{value} in {text}"
            );
        }
    }

    #[test]
    fn short_values_count_as_whole_strings_only() {
        let short = redactor(&["abc", ""]);
        assert_eq!(
            short.value(json!(["abc", "abcd", "x abc", ""])),
            json!(["[redacted]", "abcd", "x abc", ""])
        );
        let long = redactor(&["abcdef"]);
        assert_eq!(long.text("x abcdef".into()), "x [redacted]");
    }

    #[test]
    fn keys_numbers_and_everything_inside() {
        let redactor = redactor(&["1234567", "secretive"]);
        assert_eq!(
            redactor.value(
                json!({"a secretive key": [{"n": 1234567, "m": 12345678, "s": "12345678"}, null, true]})
            ),
            json!({"a [redacted] key": [{"n": "[redacted]", "m": 12345678, "s": "[redacted]8"}, null, true]})
        );
    }

    #[test]
    fn the_longest_value_goes_first() {
        let redactor = redactor(&["secret-1", "secret-1-and-more"]);
        assert_eq!(
            redactor.text("secret-1-and-more, secret-1".into()),
            "[redacted], [redacted]"
        );
    }

    #[test]
    fn a_cut_text_does_not_end_with_a_part() {
        let redactor = redactor(&["tok-123456"]);
        for (text, clean) in [
            ("it is tok-1234", "it is [redacted]"),
            ("it is tok-", "it is [redacted]"),
            ("it is tok", "it is tok"),
            ("tok-123456 tok-12345", "[redacted] [redacted]"),
            ("", ""),
        ] {
            assert_eq!(redactor.cut_text(text.into()), clean);
        }
    }

    #[test]
    fn without_values_nothing_is_touched() {
        let idle = redactor(&[]);
        assert!(idle.is_idle() && !idle.finds("anything"));
        assert_eq!(idle.cut_text("anything".into()), "anything");
        assert!(redactor(&["tok-123456"]).finds("Bearer tok-123456"));
    }
}
