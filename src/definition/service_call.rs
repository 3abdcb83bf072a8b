//! Actions of kind `service_call`: an HTTP request to a Worker through a service binding.

use crate::cel::Template;
use crate::definition::action::NAMES;
use crate::definition::http_request::constant;
use crate::definition::reader::Reader;
use crate::definition::typed::{TypedFields, read_binding};

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
        let fields = TypedFields { reader, names: NAMES };
        reader.require("binding");
        let binding = read_binding(reader, "binding");
        let path = fields.string("path");
        let method = fields.method("method");
        let headers = fields.headers("headers");
        let body = reader.template("body", NAMES);
        fields.check_body("POST");
        Some(ServiceCall {
            binding: binding?,
            path: path.unwrap_or_else(|| constant("/")),
            method: method.unwrap_or_else(|| constant("POST")),
            headers,
            body,
        })
    }
}
