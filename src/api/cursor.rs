//! Where the next page of a list begins. A cursor names its list, so that one that belongs elsewhere is refused and not
//! misunderstood.

use crate::api::error::Error;

/// No id and no key that stands in a cursor before another part holds it.
const SEPARATOR: char = ':';

pub fn write(list: &str, parts: &[&str]) -> String {
    let mut text = list.to_string();
    for part in parts {
        text.push(SEPARATOR);
        text.push_str(part);
    }
    text
}

/// What stands behind the name of the list, in as many parts as it was written in; the last may hold the separator.
pub fn read<'a, const PARTS: usize>(list: &str, text: &'a str) -> Result<[&'a str; PARTS], Error> {
    let parts = text
        .strip_prefix(list)
        .and_then(|rest| rest.strip_prefix(SEPARATOR))
        .map(|rest| rest.splitn(PARTS, SEPARATOR).collect::<Vec<_>>());
    parts
        .and_then(|parts| <[&str; PARTS]>::try_from(parts).ok())
        .ok_or_else(refusal)
}

/// A moment in a cursor: no number that SQLite and JavaScript would see differently.
pub fn read_moment(text: &str) -> Result<u64, Error> {
    let number = text.parse().ok().filter(|number| *number <= MOMENT_MAX);
    number.ok_or_else(refusal)
}

/// The largest whole number that JavaScript has exactly.
pub const MOMENT_MAX: u64 = (1 << 53) - 1;

pub fn refusal() -> Error {
    Error::new(400, "invalid_request", "cursor is no cursor of this list")
}

/// Lists in the order of one name: what comes behind it. None: the beginning.
pub fn read_name(list: &str, text: Option<&str>) -> Result<String, Error> {
    let Some(text) = text else {
        return Ok(String::new());
    };
    let [name] = read(list, text)?;
    Ok(name.to_string())
}

/// The gates that are open: the one behind which a page begins.
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
            opened_at: read_moment(opened_at)?,
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
    fn what_was_written_is_read_by_the_same_list_only() {
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
            assert_eq!(GatePosition::read(nonsense), Err(refusal()), "{nonsense}");
        }
    }
}
