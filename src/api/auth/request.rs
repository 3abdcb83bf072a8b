//! What the decisions about a request need of it.

use url::Url;

/// A request without its body.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    /// Where wrangler's development server takes it from a header that any client may send, its host is not what the client
    /// asked for.
    pub url: &'a Url,
    /// The header with a name in lower case. Each one that is read costs a call of the platform, so that they are read one by
    /// one.
    pub header: &'a dyn Fn(&str) -> Option<String>,
}

impl RequestHead<'_> {
    pub fn header(&self, name: &str) -> Option<String> {
        (self.header)(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.header(name).is_some()
    }

    /// Whether it may change something.
    pub fn changes(&self) -> bool {
        !matches!(self.method, "GET" | "HEAD")
    }
}
