//! Rows and what they stand for. These shapes are persisted in every run's object: pinned by golden files,
//! changed only by a migration or an optional field.

mod header;
mod instance;
mod token;

use serde::Deserialize;
use serde_json::Value;

pub use header::HeaderRow;
pub use instance::{BranchRow, FanInRow, InstanceRow};
pub use token::{KEEPING, TokenRow, error_of, kept, parse_status, past_token, patches_of, status_of};

/// A `null` that was written is a value, unlike a field that was not.
fn written<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Names and what stands there, or stood there before: a list of one, or an empty one for nothing, because `null` is something.
mod values_at {
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    pub fn serialize<S: Serializer>(
        values: &[(String, Option<Value>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            values
                .iter()
                .map(|(key, value)| (key, value.iter().collect::<Vec<_>>())),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Option<Value>)>, D::Error> {
        let rows = Vec::<(String, Vec<Value>)>::deserialize(deserializer)?;
        Ok(rows
            .into_iter()
            .map(|(key, value)| (key, value.into_iter().next()))
            .collect())
    }
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_none_yet(number: &u64) -> bool {
    *number == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
