//! Base64 for URLs, without padding (RFC 4648, section 5).

/// `None` for anything else, also for padding and for bits that no encoder sets.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | u32::from(value_of(*byte)?);
        }
        let [first, second, third] = match group.len() {
            4 => [bits >> 16, bits >> 8, bits],
            3 if bits & 0b11 == 0 => [bits >> 10, bits >> 2, 0],
            2 if bits & 0b1111 == 0 => [bits >> 4, 0, 0],
            _ => return None,
        }
        .map(|bits| bits as u8);
        bytes.extend(&[first, second, third][..group.len() - 1]);
    }
    Some(bytes)
}

fn value_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        for (text, expected) in [
            ("", ""),
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(expected.as_bytes()), "{text}");
        }
        assert_eq!(decode("-_8"), Some(vec![0xfb, 0xff]));
    }

    #[test]
    fn other_texts_are_refused() {
        // Padding, the other alphabet, a group of one, bits beyond the last byte, other characters.
        for text in ["Zg==", "+/8", "Z", "Zm9vY", "Zh", "Zm9", "Z g", "Zm9v\n", "ä"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
