//! The rules for names and ids that users choose.

use crate::base::limits;

/// Ids of documents, nodes, transitions and steps: 1-64 of `a-z 0-9 - _`.
pub fn is_id(text: &str) -> bool {
    (1..=limits::ID_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

/// Names of signals and events: 1-128 of `A-Z a-z 0-9 - _ .`.
pub fn is_name(text: &str) -> bool {
    (1..=limits::RUN_ID_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// `.` and `..`, which a URL path cannot contain: no request can name what is named so.
pub fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

/// Run ids that a client may choose: 1-128 of `A-Z a-z 0-9 - _ .`, except `.` and `..`.
pub fn is_run_id(text: &str) -> bool {
    is_name(text) && !is_dots(text)
}

/// Any id a run may have: one that a client chose, or the generated id of a child run. A child's id is the parent's run id
/// and the token id, separated by `~`. Older builds used `.`.
pub fn is_any_run_id(text: &str) -> bool {
    let is_part = |part: &str| is_run_id(part) || part.split('.').all(is_run_id);
    text.len() <= limits::CHILD_RUN_ID_LENGTH && text.split('~').all(is_part)
}

/// Keys of breakers: 1-128 of `A-Z a-z 0-9 - _ . :`.
pub fn is_breaker_key(text: &str) -> bool {
    (1..=limits::BREAKER_KEY_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'))
}

pub const ID_RULE: &str = "an id is 1-64 characters of a-z, 0-9, - and _";
pub const EVENT_NAME_RULE: &str = "an event's name is 1-128 characters of A-Z, a-z, 0-9, -, _ and .";
pub const BREAKER_KEY_RULE: &str = "a breaker's key is 1-128 characters of A-Z, a-z, 0-9, -, _, . and :";
pub const RUN_ID_RULE: &str =
    "a run id is 1-128 characters of A-Z, a-z, 0-9, -, _ and ., other than \".\" and \"..\"";
pub const NAME_RULE: &str = "a name is 1-128 characters of A-Z, a-z, 0-9, -, _ and .";
