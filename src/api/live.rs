//! What a client that watches a run asks for. Pure.

use serde_json::json;

use crate::api::cursor::SAFE_INTEGER_MAX;
use crate::api::error::Error;
use crate::api::query::Query;
use crate::base::suggest::{closest, known_names};
use crate::base::text::shorten;
use crate::definition::event_kinds::EVENT_KINDS;

/// What a watcher gets besides the events of the history.
pub const PROGRESS: &str = "progress";

/// The part of a run's history that a watcher gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The number of the last event that it has seen.
    pub after: u64,
    /// Empty: all kinds.
    pub kinds: Vec<&'static str>,
}

impl Watch {
    /// `last_event_id` is the header of that name. A client that connects again repeats its first URL and adds the header, so the
    /// header counts.
    pub fn read(query: &Query, last_event_id: Option<&str>) -> Result<Watch, Error> {
        let after = match last_event_id {
            None => query.after()?,
            Some(id) => {
                let number = id.trim().parse::<u64>().ok();
                let number = number.filter(|number| *number <= SAFE_INTEGER_MAX);
                number.ok_or_else(|| {
                    Error::bad_request(
                        "the header Last-Event-ID is the number of the last event that was seen",
                    )
                })?
            }
        };
        let kinds = query.one("kinds").map(read_kinds).transpose()?;
        Ok(Watch {
            after,
            kinds: kinds.unwrap_or_default(),
        })
    }
}

fn read_kinds(text: &str) -> Result<Vec<&'static str>, Error> {
    let kinds = text.split(',').map(|name| {
        let name = name.trim();
        let mut known = EVENT_KINDS.iter().chain(&[PROGRESS]);
        known
            .find(|known| **known == name)
            .copied()
            .ok_or_else(|| unknown_kind(name))
    });
    kinds.collect()
}

fn unknown_kind(name: &str) -> Error {
    let near = closest(EVENT_KINDS, name);
    let suggestion = near.map(|near| format!("; did you mean \"{near}\"?"));
    let mut error = Error::bad_request(format!(
        "kinds: no event is a \"{}\"{} {}",
        shorten(name),
        suggestion.unwrap_or_default(),
        known_names(EVENT_KINDS)
    ));
    error.details = Some(json!({"parameter": "kinds", "known": EVENT_KINDS, "nearest": near}));
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes::Route;

    fn read(text: &str, last_event_id: Option<&str>) -> Result<Watch, Error> {
        let route = Route::parse("GET", "/v1/runs/x/live").expect("a route");
        Watch::read(&Query::read(&route, Some(text))?, last_event_id)
    }

    #[test]
    fn the_header_counts_more_than_the_query() {
        let after = |text, header| read(text, header).map(|watch| watch.after);
        assert_eq!(after("", None), Ok(0));
        assert_eq!(after("after=5", None), Ok(5));
        assert_eq!(after("after=5", Some("17")), Ok(17));
        for (text, header) in [
            ("after=x", None),
            ("after=-1", None),
            ("", Some("18446744073709551615")),
            ("", Some("x")),
            ("", Some("")),
        ] {
            assert_eq!(read(text, header).expect_err(text).status, 400);
        }
    }

    #[test]
    fn kinds_are_those_of_the_history() {
        let watch = read("kinds=gate_opened,%20run_failed", None).expect("known kinds");
        assert_eq!(watch.kinds, ["gate_opened", "run_failed"]);
        let error = read("kinds=gate_opend", None).expect_err("a typo");
        assert!(
            error.message.contains("did you mean \"gate_opened\"?"),
            "{}",
            error.message
        );
        assert!(read("kinds=gate_opened,", None).is_err());
        assert!(read("limit=5", None).is_err());
    }
}
