//! Development (`CURFEW_DEV` is `on`, and neither tokens nor Access are configured): requests of this machine need no credential.
//! The danger is a page in a browser of this machine, which can send requests to loopback addresses.

use url::{Host, Url};

use crate::api::auth::browser;
use crate::api::auth::request::RequestHead;
use crate::api::error::Error;

/// Refuses what did not come from a program of this machine or from our own page.
pub fn check(head: &RequestHead) -> Result<(), Error> {
    // A name of the attacker may resolve to a loopback address, but its browser still sends the name. A request over a service
    // binding has no Host header.
    let host = head.header("host").unwrap_or_default();
    if !is_loopback(head.url) || !is_host_of(&host, head.url) {
        return Err(Error::new(
            403,
            "not_local",
            "without tokens only requests to localhost, 127.0.0.1 or [::1] are answered; set the secret CURFEW_TOKENS for others",
        ));
    }
    // wrangler's development server replaces the Host header by what MF-Original-URL says, which a page under the attacker's name
    // can send. Browsers add no Origin to reads and no Sec-Fetch headers to such an address, but always this one.
    if head.has("accept-language") && !head.has("origin") && !browser::has_fetch_metadata(head) {
        return Err(browser::cross_origin(
            "it has Accept-Language, as those of browsers, and no Sec-Fetch headers; a program that is no browser leaves it out",
        ));
    }
    browser::check(head)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address == std::net::Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == std::net::Ipv6Addr::LOCALHOST,
        None => false,
    }
}

/// Whether the Host header names the host and the port of the URL.
fn is_host_of(host: &str, url: &Url) -> bool {
    if host.is_empty() || host.contains(['/', '@', '?', '#', '\\']) {
        return false;
    }
    let named = Url::parse(&format!("{}://{host}", url.scheme()));
    named.is_ok_and(|named| {
        named.host() == url.host() && named.port_or_known_default() == url.port_or_known_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(url: &str, headers: &[(&str, &str)]) -> &'static str {
        let url = Url::parse(url).expect("a URL");
        let header = |name: &str| {
            let found = headers.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.to_string())
        };
        let head = RequestHead {
            method: "GET",
            url: &url,
            header: &header,
        };
        check(&head).map_or_else(|error| error.code, |()| "ok")
    }

    #[test]
    fn only_loopback_hosts() {
        for (url, host, expected) in [
            ("http://localhost:8787/", "localhost:8787", "ok"),
            ("http://LOCALHOST:8787/", "Localhost:8787", "ok"),
            ("http://localhost/", "localhost:80", "ok"),
            ("http://127.0.0.1:8787/", "127.0.0.1:8787", "ok"),
            ("http://[::1]:8787/", "[::1]:8787", "ok"),
            ("http://localhost:8787/", "localhost", "not_local"),
            ("http://localhost:8787/", "127.0.0.1:8787", "not_local"),
            ("http://localhost:8787/", "evil.example:8787", "not_local"),
            ("http://localhost:8787/", "", "not_local"),
            ("http://localhost:8787/", "x@localhost:8787", "not_local"),
            ("http://localhost:8787/", "localhost:8787/", "not_local"),
            ("http://evil.example:8787/", "evil.example:8787", "not_local"),
            ("http://evil.example:8787/", "localhost:8787", "not_local"),
            (
                "http://localhost.evil.example/",
                "localhost.evil.example",
                "not_local",
            ),
            (
                "http://127.0.0.1.evil.example/",
                "127.0.0.1.evil.example",
                "not_local",
            ),
            ("http://a.localhost/", "a.localhost", "not_local"),
            ("http://0.0.0.0/", "0.0.0.0", "not_local"),
        ] {
            assert_eq!(outcome(url, &[("host", host)]), expected, "{url} {host}");
        }
    }

    #[test]
    fn a_service_binding_sends_no_host() {
        assert_eq!(outcome("http://localhost/v1/runs", &[]), "not_local");
    }

    /// As wrangler's development server passes on a page's request with MF-Original-URL.
    #[test]
    fn a_browser_that_does_not_say_where_the_request_comes_from_is_refused() {
        let local = ("host", "localhost:8787");
        let language = ("accept-language", "en");
        let url = "http://localhost:8787/v1/runs";
        assert_eq!(outcome(url, &[local, language]), "cross_origin");
        let foreign = ("origin", "http://evil.example:8787");
        assert_eq!(outcome(url, &[local, language, foreign]), "cross_origin");
        for own in [
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://localhost:8787"),
            // Node's fetch.
            ("sec-fetch-mode", "cors"),
        ] {
            assert_eq!(outcome(url, &[local, language, own]), "ok", "{own:?}");
        }
    }
}
