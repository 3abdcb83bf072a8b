//! Actions of kind `http_request`.

use serde_json::Value;

use crate::cel::Template;
use crate::definition::action::NAMES;
use crate::definition::reader::Reader;
use crate::definition::typed::TypedFields;

#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: Template,
    pub url: Template,
    pub headers: Option<Template>,
    pub query: Option<Template>,
    pub body: Option<Template>,
    /// Statuses that count as success. Absent: 200-299.
    pub expect_status: Option<Vec<u16>>,
}

impl HttpRequest {
    pub(super) fn read(reader: &Reader) -> Option<HttpRequest> {
        let fields = TypedFields { reader, names: NAMES };
        let url = fields.required_url("url");
        let method = fields.method("method");
        let headers = fields.headers("headers");
        let query = fields.object("query");
        let body = reader.template("body", NAMES);
        fields.check_body("GET");
        let expect_status = reader.one_or_list("expect_status", "an HTTP status (100-599)", status);
        Some(HttpRequest {
            method: method.unwrap_or_else(|| constant("GET")),
            url: url?,
            headers,
            query,
            body,
            expect_status,
        })
    }
}

fn status(value: &Value) -> Option<u16> {
    let number = u16::try_from(value.as_u64()?).ok()?;
    (100..=599).contains(&number).then_some(number)
}

/// The template of a default value.
pub(super) fn constant(text: &str) -> Template {
    Template::parse(&Value::from(text)).unwrap_or_else(|_| unreachable!("{text} contains no expression"))
}
