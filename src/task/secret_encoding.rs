//! How a text may encode the value of a secret: verbatim, escaped as in JSON, or percent-encoded in whole or in part.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Json,
    Percent,
}

pub(super) const ENCODINGS: [Encoding; 3] = [Encoding::Plain, Encoding::Json, Encoding::Percent];

/// The first byte of a value that a text could start with here, after an escape that is at its start. None for an escape that
/// is none, or that stands for itself.
pub(super) fn first_byte(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [b'\\', ..] => match json_unescaped(text) {
            Next::Character(character, _) => character.encode_utf8(&mut [0; 4]).bytes().next(),
            Next::End | Next::Invalid => None,
        },
        [b'%', high, low, ..] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        // Forms encode a space as `+`.
        [b'+', ..] => Some(b' '),
        [..] => None,
    }
}

/// Whether a text starts with a value.
pub(super) enum Match {
    /// It does; the value takes so many bytes of the text.
    Whole(usize),
    /// The text ends after so many bytes of the value.
    Begun(usize),
    No,
}

pub(super) fn match_start(text: &str, value: &str, encoding: Encoding) -> Match {
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
        let (found, length) = match text.get(at..).unwrap_or_default() {
            [] | [b'%'] => return Next::End,
            [b'%', high] if hex_digit(*high).is_some() => return Next::End,
            [b'%', high, low, ..] if hex_digit(*high).is_some() && hex_digit(*low).is_some() => (
                hex_digit(*high).unwrap_or(0) << 4 | hex_digit(*low).unwrap_or(0),
                3,
            ),
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

fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}
