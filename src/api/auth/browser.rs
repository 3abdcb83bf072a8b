//! Requests that a page of another origin makes a browser send. They matter where a request needs no credential that the page
//! must know: in development, and where the browser adds the cookie of Cloudflare Access by itself.

use url::Url;

use crate::api::auth::request::RequestHead;
use crate::api::error::Error;

/// What a script cannot remove from its requests.
const FETCH_METADATA: &[&str] = &["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"];

/// Refuses what a page of another origin sent, and a browser's body that is not declared as JSON: other types need no
/// permission of the server to be sent across origins.
pub fn check(head: &RequestHead) -> Result<(), Error> {
    let origin = head.header("origin");
    if let Some(origin) = &origin
        && !is_origin_of(origin, head.url)
    {
        return Err(cross_origin("its Origin is another one than that of this API"));
    }
    if let Some(site) = head.header("sec-fetch-site")
        && !["same-origin", "none"].contains(&site.as_str())
    {
        return Err(cross_origin("its Sec-Fetch-Site is neither same-origin nor none"));
    }
    if head.changes() && (origin.is_some() || has_fetch_metadata(head)) {
        return check_body_type(head);
    }
    Ok(())
}

pub fn has_fetch_metadata(head: &RequestHead) -> bool {
    FETCH_METADATA.iter().any(|name| head.has(name))
}

fn check_body_type(head: &RequestHead) -> Result<(), Error> {
    let is_accepted = match head.header("content-type") {
        Some(content_type) => is_json(&content_type),
        None => !has_body(head),
    };
    match is_accepted {
        true => Ok(()),
        false => Err(Error::new(
            415,
            "unsupported_media_type",
            "the body of a request with Origin or Sec-Fetch headers must have Content-Type: application/json",
        )),
    }
}

fn has_body(head: &RequestHead) -> bool {
    let is_empty = |length: String| length.trim() == "0";
    head.header("content-length")
        .is_some_and(|length| !is_empty(length))
        || head.has("transfer-encoding")
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// `null`, the origin of sandboxed pages, is no origin of any URL.
fn is_origin_of(origin: &str, url: &Url) -> bool {
    origin == url.origin().ascii_serialization()
}

pub fn cross_origin(reason: &str) -> Error {
    Error::new(
        403,
        "cross_origin",
        format!("a page of another origin may not send this request: {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(method: &str, headers: &[(&str, &str)]) -> &'static str {
        let url = Url::parse("http://localhost:8787/v1/runs/r/cancel").expect("a URL");
        let header = |name: &str| {
            let found = headers.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.to_string())
        };
        let head = RequestHead {
            method,
            url: &url,
            header: &header,
        };
        check(&head).map_or_else(|error| error.code, |()| "ok")
    }

    #[test]
    fn origins() {
        for (origin, expected) in [
            ("http://localhost:8787", "ok"),
            ("http://localhost:3000", "cross_origin"),
            ("http://localhost", "cross_origin"),
            ("https://localhost:8787", "cross_origin"),
            ("http://localhost:8787.evil.example", "cross_origin"),
            ("http://127.0.0.1:8787", "cross_origin"),
            ("null", "cross_origin"),
            ("", "cross_origin"),
        ] {
            assert_eq!(outcome("GET", &[("origin", origin)]), expected, "{origin}");
            assert_eq!(outcome("POST", &[("origin", origin)]), expected, "{origin}");
        }
        for (site, expected) in [
            ("same-origin", "ok"),
            ("none", "ok"),
            ("same-site", "cross_origin"),
            ("cross-site", "cross_origin"),
            ("", "cross_origin"),
        ] {
            assert_eq!(outcome("GET", &[("sec-fetch-site", site)]), expected, "{site}");
        }
    }

    #[test]
    fn the_body_of_a_browser_is_json() {
        let own = ("origin", "http://localhost:8787");
        for (headers, expected) in [
            (vec![own, ("content-type", "application/json")], "ok"),
            (
                vec![own, ("content-type", "Application/JSON; charset=utf-8")],
                "ok",
            ),
            (vec![own], "ok"),
            (vec![own, ("content-length", "0")], "ok"),
            (vec![own, ("content-length", "2")], "unsupported_media_type"),
            (
                vec![own, ("transfer-encoding", "chunked")],
                "unsupported_media_type",
            ),
            (
                vec![own, ("content-type", "text/plain")],
                "unsupported_media_type",
            ),
            (
                vec![own, ("content-type", "application/json-seq")],
                "unsupported_media_type",
            ),
            (
                vec![
                    ("sec-fetch-mode", "cors"),
                    ("content-type", "text/plain;charset=UTF-8"),
                ],
                "unsupported_media_type",
            ),
            (
                vec![
                    ("sec-fetch-site", "none"),
                    ("content-type", "application/x-www-form-urlencoded"),
                ],
                "unsupported_media_type",
            ),
            // curl -d
            (
                vec![
                    ("content-type", "application/x-www-form-urlencoded"),
                    ("content-length", "2"),
                ],
                "ok",
            ),
        ] {
            assert_eq!(outcome("POST", &headers), expected, "{headers:?}");
        }
        let read = [own, ("content-type", "text/plain")];
        assert_eq!(outcome("GET", &read), "ok");
    }
}
