//! The shapes of rows. They are persisted in every run's object: golden files pin them, and only a migration or an optional field
//! may change them.

mod event;
mod header;
mod instance;
mod token;
mod trace;

use serde::Deserialize;
use serde_json::Value;

pub use event::{ListedRowEvent, events_of};
pub use header::HeaderRow;
pub use instance::{BranchRow, FanInRow, InstanceRow};
pub use token::{
    COMPLETED_WITH_CONTEXT, TokenRow, context_on_token, error_of, parse_status, past_token, patches_of,
    status_of,
};
pub use trace::{traced_event, traced_row_event, traced_token};

/// Distinguishes a `null` from an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Names with an optional value, stored as a list of one or none, because `null` is a value.
mod optional_values {
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

fn is_zero<Number: Default + PartialEq>(number: &Number) -> bool {
    *number == Number::default()
}
