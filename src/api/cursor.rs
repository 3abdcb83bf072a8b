//! Cursors: where the next page of a list begins. A cursor starts with the name of its list, so that a cursor of another
//! list is refused instead of misread.

use crate::api::error::Error;

/// Only the last part of a cursor may contain it.
const SEPARATOR: char = ':';

pub fn write(list: &str, parts: &[&str]) -> String {
    let mut text = list.to_string();
    for part in parts {
        text.push(SEPARATOR);
        text.push_str(part);
    }
    text
}

/// The parts after the list's name. The last one may contain the separator.
pub fn read<'a, const PARTS: usize>(list: &str, text: &'a str) -> Result<[&'a str; PARTS], Error> {
    let parts = text
        .strip_prefix(list)
        .and_then(|rest| rest.strip_prefix(SEPARATOR))
        .map(|rest| rest.splitn(PARTS, SEPARATOR).collect::<Vec<_>>());
    parts
        .and_then(|parts| <[&str; PARTS]>::try_from(parts).ok())
        .ok_or_else(invalid_cursor)
}

/// Unix milliseconds.
pub fn read_timestamp(text: &str) -> Result<u64, Error> {
    let number = text.parse().ok().filter(|number| *number <= SAFE_INTEGER_MAX);
    number.ok_or_else(invalid_cursor)
}

/// The largest integer that JavaScript, and therefore D1, represents exactly.
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

pub fn invalid_cursor() -> Error {
    Error::bad_request("cursor is no cursor of this list")
}

/// For lists that are sorted by one name: the last name of the previous page, empty for the first page.
pub fn read_name(list: &str, text: Option<&str>) -> Result<String, Error> {
    let Some(text) = text else {
        return Ok(String::new());
    };
    let [name] = read(list, text)?;
    Ok(name.to_string())
}

/// The last gate of the previous page, in the list of open gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePosition {
    pub opened_at: u64,
    pub run_id: String,
    pub gate_id: String,
}

const GATES: &str = "gates";

impl GatePosition {
    pub fn read(text: &str) -> Result<GatePosition, Error> {
        let [opened_at, run_id, gate_id] = read(GATES, text)?;
        Ok(GatePosition {
            opened_at: read_timestamp(opened_at)?,
            run_id: run_id.to_string(),
            gate_id: gate_id.to_string(),
        })
    }

    pub fn write(&self) -> String {
        write(GATES, &[&self.opened_at.to_string(), &self.run_id, &self.gate_id])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_that_wrote_a_cursor_reads_it() {
        let position = GatePosition {
            opened_at: 1_700,
            run_id: "a_b.c~d".into(),
            gate_id: "g1".into(),
        };
        assert_eq!(position.write(), "gates:1700:a_b.c~d:g1");
        assert_eq!(GatePosition::read(&position.write()), Ok(position.clone()));
        assert!(read_name("breakers", Some(&position.write())).is_err());
        assert_eq!(
            read_name("breakers", Some("breakers:pay:eu")),
            Ok("pay:eu".into())
        );
        assert_eq!(read_name("breakers", None), Ok(String::new()));
        for nonsense in [
            "",
            "gates",
            "gates:",
            "gates:1:run",
            "gates:x:run:g1",
            "gates:-1:run:g1",
            "gates:9007199254740992:run:g1",
        ] {
            assert_eq!(GatePosition::read(nonsense), Err(invalid_cursor()), "{nonsense}");
        }
    }
}
