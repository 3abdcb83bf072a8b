//! Actions of kind `service_call`: an HTTP request to a Worker through a service binding.

use crate::cel::Template;
use crate::definition::action::NAMES;
use crate::definition::http_request::constant;
use crate::definition::reader::Reader;

#[derive(Clone, Debug)]
pub struct ServiceCall {
    pub binding: String,
    pub path: Template,
    pub method: Template,
    pub headers: Option<Template>,
    pub body: Option<Template>,
}

impl ServiceCall {
    pub(super) fn read(reader: &Reader) -> Option<ServiceCall> {
        let binding = reader.required_string("binding");
        let path = reader.template("path", NAMES);
        let method = reader.template("method", NAMES);
        let headers = reader.template("headers", NAMES);
        let body = reader.template("body", NAMES);
        Some(ServiceCall {
            binding: binding?.to_string(),
            path: path.unwrap_or_else(|| constant("/")),
            method: method.unwrap_or_else(|| constant("POST")),
            headers,
            body,
        })
    }
}
