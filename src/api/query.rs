//! The query string of a request. Unknown names, repeated names and empty values are refused, so that a typing error never
//! changes what a request means. Pure.

use serde_json::json;
use url::form_urlencoded;

use crate::api::cursor::{self, GatePosition, SAFE_INTEGER_MAX};
use crate::api::error::Error;
use crate::api::routes::Route;
use crate::api::run_filter::{RunList, read_limit};
use crate::base::ids;
use crate::base::suggest::{closest, known_names};
use crate::base::text::shorten;

/// The longest a caller may wait for a run to end in one request.
const WAIT_MS_MAX: u64 = 30_000;
/// Longer than any valid name or cursor.
const VALUE_BYTES: usize = 2_048;

/// Names that may occur more than once.
const REPEATABLE: &[&str] = &["status"];

/// Name and value pairs; all names are known to the route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(&'static str, String)>,
}

/// One page of `GET /v1/gates`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateList {
    /// `None`: gates of all runs.
    pub run: Option<String>,
    pub after: GatePosition,
    pub limit: u64,
}

impl Query {
    /// `text` is the part of the URL after the `?`.
    pub fn read(route: &Route, text: Option<&str>) -> Result<Query, Error> {
        // Services may append their own parameters to a callback URL.
        let Some(known) = route.rules().parameters else {
            return Ok(Query::default());
        };
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.unwrap_or_default().as_bytes()) {
            let Some(name) = known.iter().find(|other| **other == name) else {
                return Err(unknown(&name, known));
            };
            if pairs.iter().any(|(other, _)| other == name) && !REPEATABLE.contains(name) {
                return Err(Error::bad_request(format!(
                    "{name} stands in the query more than once"
                )));
            }
            if value.is_empty() && *name != "cursor" {
                return Err(Error::bad_request(format!(
                    "{name} has no value; give it one or leave it out"
                )));
            }
            if value.len() > VALUE_BYTES {
                return Err(Error::bad_request(format!(
                    "{name} has more than {VALUE_BYTES} bytes"
                )));
            }
            pairs.push((name, value.into_owned()));
        }
        // An empty cursor means the first page.
        pairs.retain(|(_, value)| !value.is_empty());
        Ok(Query { pairs })
    }

    pub fn one(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter();
        pairs
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn limit(&self) -> Result<u64, Error> {
        read_limit(self.one("limit"))
    }

    /// How long the request may wait for the end of the run.
    pub fn wait_ms(&self) -> Result<u64, Error> {
        match self.one("wait_ms").map(str::parse::<u64>) {
            None => Ok(0),
            Some(Ok(millis)) if millis <= WAIT_MS_MAX => Ok(millis),
            Some(_) => Err(Error::bad_request(format!(
                "wait_ms is a number of milliseconds, {WAIT_MS_MAX} at most"
            ))),
        }
    }

    pub fn version(&self) -> Result<Option<u64>, Error> {
        match self.one("version").map(str::parse::<u64>) {
            None => Ok(None),
            Some(Ok(version)) if (1..=SAFE_INTEGER_MAX).contains(&version) => Ok(Some(version)),
            Some(_) => Err(Error::bad_request("version is a whole number from 1")),
        }
    }

    /// Of an export: `redact=values`.
    pub fn redacts_values(&self) -> Result<bool, Error> {
        match self.one("redact") {
            None => Ok(false),
            Some("values") => Ok(true),
            Some(_) => Err(Error::bad_request("redact has the one value \"values\"")),
        }
    }

    /// The number of the last event or token of the previous page.
    pub fn after(&self) -> Result<u64, Error> {
        match (self.one("after"), self.one("cursor")) {
            (None, None) => Ok(0),
            (Some(_), Some(_)) => Err(Error::bad_request(
                "after and cursor mean the same; give one of them",
            )),
            (Some(text), None) | (None, Some(text)) => {
                let number = text
                    .parse::<u64>()
                    .ok()
                    .filter(|number| *number <= SAFE_INTEGER_MAX);
                number.ok_or_else(|| {
                    Error::bad_request("after and cursor are the number of the last item that was seen")
                })
            }
        }
    }

    /// The last name of the previous page, and the page's length.
    pub fn page_by_name(&self, list: &str) -> Result<(String, u64), Error> {
        Ok((cursor::read_name(list, self.one("cursor"))?, self.limit()?))
    }

    pub fn gate_list(&self) -> Result<GateList, Error> {
        let run = self.one("run").map(str::to_string);
        if run.as_ref().is_some_and(|run| !ids::is_any_run_id(run)) {
            return Err(Error::bad_request(format!("run: {}", ids::RUN_ID_RULE)));
        }
        let after = self.one("cursor").map(GatePosition::read).transpose()?;
        Ok(GateList {
            run,
            after: after.unwrap_or_default(),
            limit: self.limit()?,
        })
    }

    pub fn run_list(&self) -> Result<RunList, Error> {
        let pairs = self.pairs.iter();
        let pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect();
        RunList::read(&pairs)
    }
}

fn unknown(name: &str, known: &[&'static str]) -> Error {
    let near = closest(known, name);
    let mut message = format!("unknown query parameter \"{}\"", shorten(name));
    if let Some(near) = near {
        message += &format!("; did you mean \"{near}\"?");
    }
    message += &format!(" {}", known_names(known));
    let mut error = Error::bad_request(message);
    error.details = Some(json!({"parameter": shorten(name), "known": known, "nearest": near}));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str, text: &str) -> Result<Query, Error> {
        let route = Route::parse(method, path).expect("a route");
        Query::read(&route, Some(text))
    }

    #[test]
    fn only_known_names_once_each_with_a_value() {
        for (path, text, part) in [
            ("/v1/runs", "statsu=failed", "did you mean \"status\"?"),
            ("/v1/runs", "nonsense=1", "known: status, workflow, tag"),
            ("/v1/runs", "tag=a&tag=a", "more than once"),
            ("/v1/runs", "status=", "has no value"),
            ("/v1/runs", "limit", "has no value"),
            ("/v1/runs", "=1", "unknown query parameter \"\""),
            ("/v1/runs/x", "wait=1", "did you mean \"wait_ms\"?"),
            ("/v1/runs/x/deliverable", "a=1", "(none is known here)"),
            ("/healthz", "a=1", "unknown query parameter \"a\""),
        ] {
            let error = read("GET", path, text).expect_err(text);
            assert_eq!((error.status, error.code), (400, "invalid_request"), "{text}");
            assert!(error.message.contains(part), "{text}: {}", error.message);
        }
        let query = read("GET", "/v1/runs", "tag=a%20b%26c&cursor=&limit=7").expect("fine");
        assert_eq!((query.one("tag"), query.limit()), (Some("a b&c"), Ok(7)));
        assert_eq!(query.one("cursor"), None);
        assert!(read("POST", "/v1/callbacks/x", "a=1&a=2").is_ok());
    }

    #[test]
    fn invalid_values_are_refused() {
        let of = |path: &str, text: &str| read("GET", path, text).expect("names are known");
        for text in ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=1e2"] {
            assert_eq!(of("/v1/runs", text).limit().expect_err(text).status, 400);
        }
        for text in ["wait_ms=30001", "wait_ms=-1", "wait_ms=1.5"] {
            assert_eq!(of("/v1/runs/x", text).wait_ms().expect_err(text).status, 400);
        }
        for text in ["version=0", "version=last", "version=99999999999999999999"] {
            let query = of("/v1/workflows/x", text);
            assert_eq!(query.version().expect_err(text).status, 400);
        }
        for text in ["after=x", "cursor=x", "after=1&cursor=1"] {
            assert_eq!(of("/v1/runs/x/events", text).after().expect_err(text).status, 400);
        }
        for text in [
            "status=done",
            "cursor=x",
            "cursor=started:x:y",
            "limit=0",
            "since=now",
        ] {
            assert_eq!(of("/v1/runs", text).run_list().expect_err(text).status, 400);
        }
        for text in ["run=a%20b", "run=..", "run=~", "cursor=x", "limit=0"] {
            assert_eq!(of("/v1/gates", text).gate_list().expect_err(text).status, 400);
        }
        let gates = of("/v1/gates", "run=a~t1").gate_list().expect("a list");
        assert_eq!((gates.run.as_deref(), gates.limit), (Some("a~t1"), 100));
        let list = of("/v1/runs", "status=failed&status=paused,running")
            .run_list()
            .expect("a list");
        assert_eq!(list.filter.statuses.len(), 3);
    }
}
