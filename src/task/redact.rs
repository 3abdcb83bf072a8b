//! Removes the values of secrets from everything that leaves the executor.
//!
//! A value is found verbatim, escaped as in JSON, and percent-encoded in whole or in part. Other encodings, such as base64, are
//! not recognized.

use serde_json::{Map, Value};

pub const REDACTED: &str = "[redacted]";

/// A shorter value also occurs in ordinary text, so it is only redacted if it is the whole string.
const SHORT_CHARACTERS: usize = 6;

/// Marks the end of a quotation that was cut.
const CUT: char = '…';

/// The bytes of a value at the end of a cut text that count as a part of it.
const TAIL_BYTES: usize = 4;

#[derive(Debug, Default)]
pub struct Redactor {
    /// The longest first: a value may contain another one.
    values: Vec<String>,
}

/// How a text may encode a value.
#[derive(Clone, Copy)]
enum Encoding {
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
            // A peer may return a secret of digits as a number.
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
            for encoding in [Encoding::Plain, Encoding::Json, Encoding::Percent] {
                if let Some(clean) = replace(&text, value, encoding) {
                    text = clean;
                }
            }
        }
        text
    }

    /// Like `text`, for a text that may end inside a value.
    pub fn cut_text(&self, text: String) -> String {
        let mut text = self.text(text);
        for value in self.values.iter().filter(|value| !is_short(value)) {
            if let Some(start) = tail_of(&text, value) {
                text.truncate(start);
                text += REDACTED;
            }
        }
        text
    }

    /// Like `text`, for a message with quotations that are cut at a `…`, inside the quotes or after them.
    pub fn message(&self, text: String) -> String {
        let text = self.text(text);
        if self.is_idle() || !text.contains(CUT) {
            return text;
        }
        let mut clean = String::new();
        let mut parts = text.split(CUT).peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                clean += part;
                break;
            }
            let quoted = part.strip_suffix('"');
            clean += &self.cut_text(quoted.unwrap_or(part).to_string());
            clean += if quoted.is_some() { "\"" } else { "" };
            clean.push(CUT);
        }
        clean
    }

    /// Whether a text holds any of the values.
    pub fn finds(&self, text: &str) -> bool {
        !self.is_idle() && self.text(text.to_string()) != text
    }
}

fn is_short(value: &str) -> bool {
    value.chars().count() < SHORT_CHARACTERS
}

/// The text without the value; none if it does not contain it.
fn replace(text: &str, value: &str, encoding: Encoding) -> Option<String> {
    let possible = match encoding {
        Encoding::Plain => text.contains(value),
        Encoding::Json => text.contains('\\'),
        Encoding::Percent => text.contains('%') || text.contains('+'),
    };
    if !possible {
        return None;
    }
    let mut clean = String::new();
    let (mut kept, mut at) = (0, 0);
    while at < text.len() {
        if let Match::Whole(length) = match_start(&text[at..], value, encoding) {
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

/// Where the beginning of a value starts with which the text ends.
fn tail_of(text: &str, value: &str) -> Option<usize> {
    // No encoding uses more than six bytes for one of the value.
    let first = text.len().saturating_sub(value.len().saturating_mul(6));
    let starts = text.char_indices().map(|(start, _)| start);
    let mut starts = starts.skip_while(|start| *start < first);
    starts.find(|start| {
        [Encoding::Plain, Encoding::Json, Encoding::Percent]
            .into_iter()
            .any(|encoding| match match_start(&text[*start..], value, encoding) {
                Match::Begun(bytes) => bytes >= TAIL_BYTES,
                Match::Whole(_) | Match::No => false,
            })
    })
}

/// Whether a text starts with a value.
enum Match {
    /// It does; the value takes so many bytes of the text.
    Whole(usize),
    /// The text ends after so many bytes of the value.
    Begun(usize),
    No,
}

fn match_start(text: &str, value: &str, encoding: Encoding) -> Match {
    let (mut at, mut done) = (0, 0);
    for wanted in value.chars() {
        let rest = text.get(at..).unwrap_or_default();
        let next = match encoding {
            Encoding::Plain => plain(rest),
            Encoding::Json => json_unescaped(rest),
            Encoding::Percent => percent_decoded(rest.as_bytes(), wanted),
        };
        match next {
            Next::Character(found, length) if found == wanted => {
                at += length;
                done += wanted.len_utf8();
            }
            Next::Character(..) | Next::Invalid => return Match::No,
            Next::End => return Match::Begun(done),
        }
    }
    Match::Whole(at)
}

/// The first character of a text, decoded.
enum Next {
    /// The character, and how many bytes of the text it takes.
    Character(char, usize),
    /// The text ends, perhaps inside an escape.
    End,
    /// The escape is invalid.
    Invalid,
}

fn plain(text: &str) -> Next {
    match text.chars().next() {
        Some(character) => Next::Character(character, character.len_utf8()),
        None => Next::End,
    }
}

fn json_unescaped(text: &str) -> Next {
    let Some(escape) = text.strip_prefix('\\') else {
        return plain(text);
    };
    match escape.chars().next() {
        None => Next::End,
        Some('n') => Next::Character('\n', 2),
        Some('r') => Next::Character('\r', 2),
        Some('t') => Next::Character('\t', 2),
        Some('b') => Next::Character('\u{8}', 2),
        Some('f') => Next::Character('\u{c}', 2),
        Some('u') => unicode_escape(escape),
        Some(itself) => Next::Character(itself, 1 + itself.len_utf8()),
    }
}

/// `u0041`, or a surrogate pair.
fn unicode_escape(escape: &str) -> Next {
    let unit = |text: &str| u32::from_str_radix(text.get(1..5)?, 16).ok();
    if escape.len() < 5 {
        return Next::End;
    }
    let Some(first) = unit(escape) else {
        return Next::Invalid;
    };
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map_or(Next::Invalid, |character| Next::Character(character, 6));
    }
    let Some(second) = escape.get(5..11) else {
        return Next::End;
    };
    let low = second
        .strip_prefix('\\')
        .filter(|it| it.starts_with('u'))
        .and_then(unit);
    let both = low
        .and_then(|low| low.checked_sub(0xdc00))
        .map(|low| 0x10000 + ((first - 0xd800) << 10) + low);
    both.and_then(char::from_u32)
        .map_or(Next::Invalid, |character| Next::Character(character, 12))
}

/// Each byte of a character may be encoded or not.
fn percent_decoded(text: &[u8], wanted: char) -> Next {
    let mut at = 0;
    for byte in wanted.encode_utf8(&mut [0; 4]).bytes() {
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let (found, length) = match text.get(at..).unwrap_or_default() {
            [] | [b'%'] => return Next::End,
            [b'%', high] if digit(*high).is_some() => return Next::End,
            [b'%', high, low, ..] if digit(*high).is_some() && digit(*low).is_some() => {
                (digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0), 3)
            }
            // Forms encode a space as `+`.
            [b'+', ..] if byte == b' ' => (b' ', 1),
            [itself, ..] => (*itself, 1),
        };
        if found != byte {
            return Next::Invalid;
        }
        at += length;
    }
    Next::Character(wanted, at)
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
            (r"it is \u0074ok-1\u00", "it is [redacted]"),
            ("it is tok%2D12%3", "it is [redacted]"),
            ("tok-tok-1", "tok-[redacted]"),
            ("", ""),
        ] {
            assert_eq!(redactor.cut_text(text.into()), clean, "{text}");
        }
        let wide = super::Redactor::new(["pa\"ss-🔑-word".to_string()]);
        for (text, clean) in [
            (r#"{"k":"pa\"ss-"#, r#"{"k":"[redacted]"#),
            (r"pa\u0022ss-\ud83d", "[redacted]"),
            (r"pa\u0022ss-\ud83d\udd1", "[redacted]"),
            ("pa%22ss-%F0%9F", "[redacted]"),
        ] {
            assert_eq!(wide.cut_text(text.into()), clean, "{text}");
        }
    }

    #[test]
    fn a_message_may_quote_the_start_of_a_value() {
        let long = redactor(&["tok-0123456789\"abcdef"]);
        for (text, clean) in [
            (
                "int cannot read \"tok-012345…\": bad",
                "int cannot read \"[redacted]…\": bad",
            ),
            (
                "found string \"tok-0123456789\\\"ab\"… twice…",
                "found string \"[redacted]\"… twice…",
            ),
            ("tok-0123456789\"abcdef… tok-", "[redacted]… tok-"),
        ] {
            assert_eq!(long.message(text.into()), clean);
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
