//! Hashes of values, stable across builds because undo patches store them to detect later writes.

use serde_json::Value;

/// The hash of an absent value. No value has this hash.
pub(in crate::run) const NOTHING: u32 = 0;

fn short(hash: u64) -> u32 {
    ((hash ^ (hash >> 32)) as u32).max(1)
}

/// Persisted: the hash of a value never changes.
pub(in crate::run) fn hash(value: &Value) -> u32 {
    short(hash64(value))
}

pub(in crate::run) fn hash_items(values: &[Value]) -> u32 {
    let list = mix(8, values.len() as u64);
    short(
        values
            .iter()
            .fold(list, |so_far, value| mix(so_far, hash64(value))),
    )
}

pub(in crate::run) fn hash_text(text: &str) -> u32 {
    short(mix_text(7, text))
}

pub(in crate::run) fn hash64(value: &Value) -> u64 {
    match value {
        Value::Null => mix(1, 0),
        Value::Bool(value) => mix(2, u64::from(*value)),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), _, _) => mix(4, number),
            (None, Some(number), _) => mix(5, number as u64),
            (None, None, number) => mix(6, number.unwrap_or_default().to_bits()),
        },
        Value::String(text) => mix_text(7, text),
        Value::Array(values) => {
            let list = mix(8, values.len() as u64);
            values
                .iter()
                .fold(list, |so_far, value| mix(so_far, hash64(value)))
        }
        Value::Object(fields) => {
            let object = mix(9, fields.len() as u64);
            fields.iter().fold(object, |so_far, (key, value)| {
                mix(mix_text(so_far, key), hash64(value))
            })
        }
    }
}

fn mix(so_far: u64, next: u64) -> u64 {
    let mixed = (so_far.rotate_left(23) ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn mix_text(so_far: u64, text: &str) -> u64 {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let mixed = words
        .iter()
        .fold(so_far, |so_far, word| mix(so_far, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(mixed, u64::from_le_bytes(last)), text.len() as u64)
}
