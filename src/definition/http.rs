//! What a request must be: its URL, its method and the names of its headers. Constants are checked when a document is stored, values
//! that were computed when the executor makes the request.

use url::Url;

/// Headers of the connection, which only the platform writes.
pub const CONNECTION_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlProblem {
    /// Why it is no URL that can be called.
    Invalid(String),
    /// A message must not quote the URL, because it holds a password.
    Credentials,
}

pub const CREDENTIALS: &str = "the url holds a user or a password; write an \"authorization\" header instead";

pub fn parse_url(text: &str) -> Result<Url, UrlProblem> {
    let url = Url::parse(text).map_err(|error| UrlProblem::Invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        let why = format!("{} is neither http nor https", url.scheme());
        return Err(UrlProblem::Invalid(why));
    }
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err(UrlProblem::Credentials),
    }
}

/// Whether the text can be a method or the name of a header.
pub fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// A line break in the value of a header would start another header or request.
pub fn breaks_out(value: &str) -> bool {
    value
        .trim_matches([' ', '\t'])
        .chars()
        .any(|c| c.is_control() && c != '\t')
}

pub fn has_no_body(method: &str) -> bool {
    method.eq_ignore_ascii_case("GET") || method.eq_ignore_ascii_case("HEAD")
}
