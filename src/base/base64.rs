//! Base64 with padding (RFC 4648, section 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let is_padding = index > group.len();
            let value = (bits >> (18 - 6 * index)) & 0b11_1111;
            text.push(match is_padding {
                true => '=',
                false => char::from(ALPHABET[value as usize]),
            });
        }
    }
    text
}

/// `None` for anything else. Padding may be left out: some generators of secrets do.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 || (text.len() != digits.len() && !text.len().is_multiple_of(4)) {
        return None;
    }
    let for_urls: String = digits
        .chars()
        .map(|digit| match digit {
            '+' => Some('-'),
            '/' => Some('_'),
            '-' | '_' => None,
            other => Some(other),
        })
        .collect::<Option<String>>()?;
    crate::base::base64url::decode(&for_urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(
                decode(text.trim_end_matches('=')).as_deref(),
                Some(bytes.as_bytes())
            );
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
        assert_eq!(decode("+/8="), Some(vec![0xfb, 0xff]));
    }

    #[test]
    fn other_texts_are_refused() {
        // The other alphabet, wrong padding, a group of one, bits beyond the last byte, other characters.
        for text in [
            "-_8=", "Zg=", "Zg===", "Zm9v=", "=", "Z", "Zh==", "Z g=", "Zm9v\n", "ä",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
