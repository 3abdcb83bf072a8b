//! Follows redirects in place of the platform: each target is checked first, and credentials are not sent to another origin.

use crate::base::failure::Failure;
use crate::task::address;
use crate::task::redact::Redactor;
use crate::task::request::{CALLBACK_HEADER, Outgoing, parse_url};

pub const REDIRECTS_MAX: u32 = 5;

/// The kind of peer, and whether its address is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A bound Worker, whatever the address is.
    Binding,
    Internet {
        private: bool,
    },
}

impl Reach {
    pub fn check(self, request: &Outgoing) -> Result<(), Failure> {
        match self {
            Reach::Binding | Reach::Internet { private: true } => Ok(()),
            Reach::Internet { private: false } => address::check(&request.url),
        }
    }
}

/// Headers that are not sent to another origin.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "cookie",
    "cookie2",
    "proxy-authorization",
    CALLBACK_HEADER,
];

/// The request that follows `sent`, if its response is a redirect with a location.
pub fn next(
    sent: &Outgoing,
    status: u16,
    location: Option<&str>,
    reach: Reach,
    redactor: &Redactor,
) -> Result<Option<Outgoing>, Failure> {
    let Some(location) = location.filter(|_| is_redirect(status)) else {
        return Ok(None);
    };
    let target = sent.url.join(location).map_err(|error| {
        Failure::permanent(
            "invalid_redirect",
            format!("the answer redirects to no URL: {error}"),
        )
    })?;
    let url = parse_url(target.as_str()).map_err(|wrong| {
        Failure::permanent(
            "invalid_redirect",
            format!("the answer redirects: {}", wrong.message),
        )
    })?;
    let mut request = Outgoing { url, ..sent.clone() };
    let becomes_get = match status {
        301 | 302 => sent.method == "POST",
        303 => sent.method != "GET" && sent.method != "HEAD",
        _ => false,
    };
    if becomes_get {
        request.method = "GET".into();
        request.body = None;
        request.headers.retain(|(name, _)| !name.starts_with("content-"));
    }
    if request.url.origin() != sent.url.origin() {
        // Any header may hold a secret.
        let stays = |name: &str, value: &str| !CREDENTIALS.contains(&name) && !redactor.finds(value);
        request.headers.retain(|(name, value)| stays(name, value));
    }
    reach.check(&request)?;
    Ok(Some(request))
}

/// Statuses that are redirects if they have a location.
pub const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

pub fn is_redirect(status: u16) -> bool {
    STATUSES.contains(&status)
}

pub fn too_many() -> Failure {
    Failure::permanent(
        "too_many_redirects",
        format!("the answer redirects more than {REDIRECTS_MAX} times"),
    )
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    const PUBLIC: Reach = Reach::Internet { private: false };

    fn sent(method: &str) -> Outgoing {
        let header = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", "k"),
            ("authorization", "Bearer x"),
            ("cookie", "a=1"),
            ("x-api-key", "tok-123456"),
        ];
        Outgoing {
            url: Url::parse("https://a.example/deep/path?q=1").expect("a URL"),
            method: method.into(),
            headers: headers.map(header).to_vec(),
            body: Some("{}".into()),
        }
    }

    fn follow(method: &str, status: u16, location: &str, reach: Reach) -> String {
        let redactor = Redactor::new(["tok-123456".to_string()]);
        match next(&sent(method), status, Some(location), reach, &redactor) {
            Ok(Some(request)) => {
                let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
                let body = if request.body.is_some() { "+body" } else { "" };
                format!("{} {}{body} {}", request.method, request.url, names.join(","))
            }
            Ok(None) => "an answer".into(),
            Err(failure) => format!("{} {:?}", failure.code, failure.class),
        }
    }

    #[test]
    fn methods_change_as_in_fetch() {
        let all = "content-type,idempotency-key,authorization,cookie,x-api-key";
        let bare = "idempotency-key,authorization,cookie,x-api-key";
        for (method, status, line) in [
            ("POST", 301, format!("GET https://a.example/x {bare}")),
            ("POST", 302, format!("GET https://a.example/x {bare}")),
            ("POST", 303, format!("GET https://a.example/x {bare}")),
            ("PUT", 303, format!("GET https://a.example/x {bare}")),
            ("PUT", 301, format!("PUT https://a.example/x+body {all}")),
            ("PUT", 302, format!("PUT https://a.example/x+body {all}")),
            ("POST", 307, format!("POST https://a.example/x+body {all}")),
            ("POST", 308, format!("POST https://a.example/x+body {all}")),
            ("HEAD", 303, format!("HEAD https://a.example/x+body {all}")),
            ("POST", 300, "an answer".into()),
            ("POST", 304, "an answer".into()),
            ("POST", 200, "an answer".into()),
        ] {
            assert_eq!(follow(method, status, "/x", PUBLIC), line, "{method} {status}");
        }
        let no_location = next(&sent("GET"), 302, None, PUBLIC, &Redactor::default());
        assert_eq!(no_location, Ok(None));
    }

    #[test]
    fn another_origin_hears_no_credentials() {
        for (location, headers) in [
            (
                "https://a.example:443/x",
                "content-type,idempotency-key,authorization,cookie,x-api-key",
            ),
            ("http://a.example/x", "content-type,idempotency-key"),
            ("https://a.example:8443/x", "content-type,idempotency-key"),
            ("https://b.a.example/x", "content-type,idempotency-key"),
            ("//b.example/x", "content-type,idempotency-key"),
        ] {
            let line = follow("POST", 307, location, PUBLIC);
            assert_eq!(line.rsplit(' ').next(), Some(headers), "{location}: {line}");
        }
    }

    #[test]
    fn every_hop_is_checked() {
        for location in [
            "http://127.0.0.1/",
            "http://[::1]/",
            "//localhost/x",
            "http://169.254.169.254/latest",
            "https://0x7f.1/",
        ] {
            assert_eq!(
                follow("GET", 302, location, PUBLIC),
                "private_address Permanent",
                "{location}"
            );
            let private = Reach::Internet { private: true };
            assert!(
                follow("GET", 302, location, private).starts_with("GET http"),
                "{location}"
            );
            assert!(
                follow("GET", 302, location, Reach::Binding).starts_with("GET http"),
                "{location}"
            );
        }
        for location in [
            "ftp://a.example/x",
            "javascript:alert(1)",
            "http://",
            "https://u:p@a.example/",
        ] {
            assert_eq!(
                follow("GET", 302, location, PUBLIC),
                "invalid_redirect Permanent",
                "{location}"
            );
        }
    }

    #[test]
    fn the_first_address_is_checked_too() {
        let mut request = sent("GET");
        assert_eq!(PUBLIC.check(&request), Ok(()));
        request.url = Url::parse("http://10.0.0.1/").expect("a URL");
        assert!(PUBLIC.check(&request).is_err());
        assert_eq!(Reach::Binding.check(&request), Ok(()));
    }
}
