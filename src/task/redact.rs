//! Removes the values of secrets from everything that leaves the executor.
//!
//! A value is found verbatim, escaped as in JSON, and percent-encoded in whole or in part. Other encodings, such as base64, are
//! not recognized. All values are searched in one pass: the results of every task are searched for every listed secret.

use std::fmt;

use serde_json::Value;

use crate::base::ordered::object_of;
use crate::task::secret_encoding::{ENCODINGS, Encoding, Match, first_byte, match_start};

pub const REDACTED: &str = "[redacted]";

/// A shorter value also occurs in ordinary text, so it is only redacted if it is the whole string.
const SHORT_CHARACTERS: usize = 6;

/// Marks the end of a quotation that was cut.
const CUT: char = '…';

/// The bytes of a value at the end of a cut text that count as a part of it.
const TAIL_BYTES: usize = 4;

#[derive(Default)]
pub struct Redactor {
    /// Only redacted where they are the whole string.
    short: Vec<String>,
    long: Option<Box<Search>>,
    /// Whether a value may look like a number.
    has_digits: bool,
}

/// The values that are searched in texts.
struct Search {
    values: Vec<String>,
    /// For each first byte of a value: the set of second bytes, by their last six bits.
    starts: [u64; 256],
}

/// A part of a text: from, to.
type Span = (usize, usize);

impl Redactor {
    pub fn new(values: impl IntoIterator<Item = String>) -> Redactor {
        let mut values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
        values.sort();
        values.dedup();
        let has_digits = values
            .iter()
            .any(|value| value.starts_with(|first: char| first == '-' || first.is_ascii_digit()));
        let (short, long): (Vec<String>, Vec<String>) = values.into_iter().partition(|value| is_short(value));
        Redactor {
            short,
            long: (!long.is_empty()).then(|| Box::new(Search::new(long))),
            has_digits,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.short.is_empty() && self.long.is_none()
    }

    pub fn value(&self, mut value: Value) -> Value {
        if !self.is_idle() {
            self.clean_value(&mut value);
        }
        value
    }

    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            // A peer may return a secret of digits as a number.
            Value::Number(number) if self.has_digits => {
                if self.is_value(&number.to_string()) {
                    *value = Value::from(REDACTED);
                }
            }
            Value::Number(_) => {}
            Value::String(text) => {
                if let Some(clean) = self.cleaned(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.clean_value(field));
                if fields.keys().any(|key| self.finds(key)) {
                    let fields_before = std::mem::take(fields).into_iter();
                    let clean = fields_before.map(|(key, field)| (self.text(key), field));
                    *fields = object_of(clean);
                }
            }
        }
    }

    fn is_value(&self, text: &str) -> bool {
        let is_it = |value: &String| value == text;
        self.short.iter().any(is_it) || self.long.iter().any(|search| search.values.iter().any(is_it))
    }

    pub fn text(&self, text: String) -> String {
        self.cleaned(&text).unwrap_or(text)
    }

    /// None if the text holds none of the values.
    fn cleaned(&self, text: &str) -> Option<String> {
        if self.short.iter().any(|value| value == text) {
            return Some(REDACTED.to_string());
        }
        let spans = self.long.as_ref()?.spans(text);
        if spans.is_empty() {
            return None;
        }
        let mut clean = String::with_capacity(text.len());
        let mut kept = 0;
        for (start, end) in spans {
            clean.push_str(&text[kept..start]);
            clean.push_str(REDACTED);
            kept = end;
        }
        clean.push_str(&text[kept..]);
        Some(clean)
    }

    /// Like `text`, for a text that may end inside a value.
    pub fn cut_text(&self, text: String) -> String {
        let mut text = self.text(text);
        let values = self.long.iter().flat_map(|search| &search.values);
        if let Some(start) = values.filter_map(|value| tail_of(&text, value, TAIL_BYTES)).min() {
            text.truncate(start);
            text += REDACTED;
        }
        text
    }

    /// Like `text`, for the beginning of a text that goes on. The end that may be the beginning of a value is left out: it comes
    /// with the rest, or never. The result for a longer text begins with the result for a shorter one.
    pub fn text_so_far(&self, text: &str) -> String {
        // A short value counts if it is the whole text, which is not known yet.
        if self.short.iter().any(|value| value.starts_with(text)) {
            return String::new();
        }
        let Some(search) = &self.long else {
            return text.to_string();
        };
        let tails = search.values.iter().filter_map(|value| tail_of(text, value, 0));
        let known = tails.min().unwrap_or(text.len());
        let mut clean = String::with_capacity(known);
        let mut kept = 0;
        // A value that ends after `known` overlaps with the one that may have begun.
        for (start, end) in search.spans(text).into_iter().filter(|(start, _)| *start < known) {
            clean.push_str(&text[kept..start]);
            clean.push_str(REDACTED);
            kept = end;
        }
        clean.push_str(text.get(kept..known).unwrap_or_default());
        clean
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
        self.cleaned(text).is_some()
    }
}

/// Never the values themselves.
impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Redactor")
    }
}

impl Search {
    fn new(values: Vec<String>) -> Search {
        let mut starts = [0; 256];
        for value in &values {
            if let [first, second, ..] = value.as_bytes() {
                starts[usize::from(*first)] |= bit_of(*second);
            }
        }
        Search { values, starts }
    }

    /// Where values are, in order and without overlaps. Values that overlap are one part, so that nothing of either is left.
    fn spans(&self, text: &str) -> Vec<Span> {
        let bytes = text.as_bytes();
        // Most texts hold no escape.
        let is_possible = |encoding: &Encoding| match encoding {
            Encoding::Plain => true,
            Encoding::Json => text.contains('\\'),
            Encoding::Percent => text.contains('%') || text.contains('+'),
        };
        let encodings: Vec<Encoding> = ENCODINGS.into_iter().filter(is_possible).collect();
        let has_escapes = encodings.len() > 1;
        let mut spans: Vec<Span> = Vec::new();
        for at in 0..bytes.len() {
            let seconds = self.starts[usize::from(bytes[at])];
            let next = bytes.get(at + 1).copied().unwrap_or(0);
            let is_start = seconds & bit_of(next) != 0 || seconds != 0 && has_escapes && is_escape(next);
            let escaped = match has_escapes && is_escape(bytes[at]) {
                true => first_byte(&text[at..]).filter(|first| self.starts[usize::from(*first)] != 0),
                false => None,
            };
            if !is_start && escaped.is_none() {
                continue;
            }
            if let Some(length) = self.longest_at(&text[at..], escaped, &encodings) {
                let end = at + length;
                match spans.last_mut() {
                    Some((_, last)) if at < *last => *last = end.max(*last),
                    Some(_) | None => spans.push((at, end)),
                }
            }
        }
        spans
    }

    /// How much of the start of a text is a value. `escaped` is the byte that an escape at the start stands for.
    fn longest_at(&self, text: &str, escaped: Option<u8>, encodings: &[Encoding]) -> Option<usize> {
        let first = text.as_bytes().first();
        let is_candidate = |value: &&String| {
            let wanted = value.as_bytes().first();
            wanted == first || wanted == escaped.as_ref()
        };
        let candidates = self.values.iter().filter(is_candidate);
        let lengths = candidates.flat_map(|value| {
            encodings.iter().filter_map(|encoding| match encoding {
                Encoding::Plain => text.starts_with(value.as_str()).then_some(value.len()),
                Encoding::Json | Encoding::Percent => match match_start(text, value, *encoding) {
                    Match::Whole(length) => Some(length),
                    Match::Begun(_) | Match::No => None,
                },
            })
        });
        lengths.max()
    }
}

fn bit_of(second: u8) -> u64 {
    1 << (second & 63)
}

fn is_escape(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'+')
}

fn is_short(value: &str) -> bool {
    value.chars().count() < SHORT_CHARACTERS
}

/// Where the beginning of a value starts with which the text ends, if that has at least so many bytes of the value. An escape
/// that is not complete has none.
fn tail_of(text: &str, value: &str, bytes_min: usize) -> Option<usize> {
    // No encoding uses more than six bytes for one of the value.
    let first = text.len().saturating_sub(value.len().saturating_mul(6));
    let starts = text.char_indices().map(|(start, _)| start);
    let mut starts = starts.skip_while(|start| *start < first);
    starts.find(|start| {
        ENCODINGS
            .into_iter()
            .any(|encoding| match match_start(&text[*start..], value, encoding) {
                Match::Begun(bytes) => bytes >= bytes_min,
                Match::Whole(_) | Match::No => false,
            })
    })
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
    fn nothing_is_left_of_values_that_overlap() {
        let overlapping = redactor(&["cdefghijkl", "abcdef", "ghijkl-mnop"]);
        assert_eq!(
            overlapping.text("x abcdefghijkl-mnop y abcdef".into()),
            "x [redacted] y [redacted]"
        );
        assert_eq!(
            redactor(&["aaaaaa"]).text("aaaaaaaaa aaaaa".into()),
            "[redacted] aaaaa"
        );
        let cut = redactor(&["secret-of-ours", "of-ours-alone"]);
        assert_eq!(cut.cut_text("it is secret-of-our".into()), "it is [redacted]");
    }

    #[test]
    fn many_values_are_found_at_once() {
        let values: Vec<String> = (0..40)
            .map(|n| format!("{}value-{n}\"", (b'a' + n) as char))
            .collect();
        let redactor = Redactor::new(values.clone());
        for value in &values {
            let json = serde_json::to_string(value).expect("text");
            let percent: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            assert_eq!(
                redactor.text(format!("ü{value}ü {json} {percent}+")),
                "ü[redacted]ü \"[redacted]\" [redacted]+"
            );
        }
    }

    /// Every string is compared with every value, as a search that knows no shortcut does it.
    #[test]
    fn the_search_finds_what_a_naive_one_finds() {
        let alphabet = [
            "a", "b", "\\", "\"", "%", "2", "5", "+", " ", "ü", "\\u00fc", "%C3%BC", "\\\\", "%5c", "%62",
        ];
        let mut seed = 7u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        let mut found = 0;
        for _ in 0..3_000 {
            let mut made =
                |pieces: usize| -> String { (0..pieces).map(|_| alphabet[random(alphabet.len())]).collect() };
            let values = [made(6), made(7), "ab\\\"ü%".to_string()];
            let text = format!("{}{}{}{}", made(8), values[0], made(4), "a%62\\\"%C3%BC%25");
            let redactor = Redactor::new(values.clone());
            for value in values.iter().filter(|value| !is_short(value)) {
                for start in text.char_indices().map(|(start, _)| start) {
                    for encoding in ENCODINGS {
                        let Match::Whole(length) = match_start(&text[start..], value, encoding) else {
                            continue;
                        };
                        found += 1;
                        let spans = redactor.long.as_ref().expect("a long value").spans(&text);
                        let is_inside = |(from, to): &Span| *from <= start && start + length <= *to;
                        assert!(
                            spans.iter().any(is_inside),
                            "{value:?} at {start} of {text:?}: {spans:?}"
                        );
                    }
                }
            }
        }
        assert!(found > 3_000, "{found}");
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
    fn a_text_that_goes_on_shows_no_beginning_of_a_value() {
        let redactor = redactor(&[
            "tok-123456",
            "tok-123456-and-more",
            "56-other",
            "pin",
            "pa\"ss-🔑-word",
        ]);
        for (text, shown) in [
            ("it is", "it is"),
            ("it is t", "it is "),
            ("it is tok-12345", "it is "),
            ("it is tok-123456", "it is "),
            ("it is tok-123456-and", "it is "),
            ("it is tok-123456!", "it is [redacted]!"),
            ("it is tok-123456-o", "it is [redacted]"),
            ("it is tok-123456-other", "it is [redacted]"),
            ("it is tok-123456-other!", "it is [redacted]!"),
            ("it is tok-123456-or", "it is [redacted]-or"),
            ("it is tok-12345.", "it is tok-12345."),
            (r"it is \u0074ok-1\u00", "it is "),
            (r"it is \", "it is "),
            ("it is tok%2D12%3", "it is "),
            ("100 %", "100 "),
            ("100 % of", "100 % of"),
            ("pi", ""),
            ("pin", ""),
            ("pint", "pin"),
            ("pint of", "pint of"),
            (r#"{"k":"pa\"ss-"#, r#"{"k":""#),
            ("", ""),
        ] {
            assert_eq!(redactor.text_so_far(text), shown, "{text}");
        }
        assert_eq!(super::Redactor::default().text_so_far("anything"), "anything");
    }

    /// What was shown of a text stays true, and nothing of a value is ever shown.
    #[test]
    fn a_text_that_goes_on_only_grows() {
        let pieces = [
            "a", "b", "ab", "aba", "%62", "\\u0061", "bab", " ", "ü", "aab", "cab",
        ];
        let values = ["abab-ü", "ab-üab", "bab ab", "aababa", "babaab"];
        let redactor = redactor(&values);
        let mut seed = 11u64;
        for _ in 0..2_000 {
            let mut text = String::new();
            let mut shown = String::new();
            for _ in 0..12 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text += pieces[(seed >> 33) as usize % pieces.len()];
                text += if seed >> 62 == 0 { "-ü" } else { "" };
                let now = redactor.text_so_far(&text);
                assert!(now.starts_with(&shown), "{text:?}: {shown:?} became {now:?}");
                assert!(!redactor.finds(&now), "{text:?}: {now:?}");
                shown = now;
            }
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
