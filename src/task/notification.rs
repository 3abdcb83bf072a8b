//! What an executor does with a notification, without the platform: fills in the secrets, checks the address, signs by Standard
//! Webhooks, and reads the status of the answer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::base::base64;
use crate::base::hmac::hmac_sha256;
use crate::base::time::Millis;
use crate::cel::{Scope, Template};
use crate::definition::secret::SECRET;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::task::address;
use crate::task::redirect::is_redirect;
use crate::task::request::{Outgoing, parse_url, text};
use crate::task::retry::retry_after_ms;
use crate::task::secret_hosts::Destination;
use crate::task::secrets::SecretStore;

/// Before the base64 text of a secret, as libraries of Standard Webhooks write it.
const SECRET_PREFIX: &str = "whsec_";

/// The request to make, or why none is made. `allows_private`: the executor may call private addresses.
pub fn prepare(
    order: &NotificationOrder,
    secrets: &SecretStore,
    allows_private: bool,
    now: Millis,
) -> Result<Outgoing, NotificationReport> {
    request_of(order, secrets, allows_private, now).map_err(|report| redacted(report, secrets))
}

fn request_of(
    order: &NotificationOrder,
    secrets: &SecretStore,
    allows_private: bool,
    now: Millis,
) -> Result<Outgoing, NotificationReport> {
    let refused = |message: String| NotificationReport::Refused { message };
    let target = &order.target;
    let template = |text: &str| {
        Template::parse(&Value::from(text)).map_err(|_| refused("a text of the target is no template".into()))
    };
    let url = template(&target.url)?;
    let mut headers = Vec::new();
    for (name, value) in &target.headers {
        headers.push((name, template(value)?));
    }
    let mut names: BTreeSet<String> = target.secret.iter().cloned().collect();
    for template in headers.iter().map(|(_, value)| value).chain([&url]) {
        template
            .visit(&mut |expression, _| names.extend(expression.bare_member_of(SECRET).map(str::to_string)));
    }
    // The variable or the secret may be corrected within the time of retries.
    let mut values = Map::new();
    for name in &names {
        let value = secrets
            .value(name)
            .map_err(|failure| NotificationReport::failed(failure.message))?;
        values.insert(name.clone(), value.into());
    }
    let values = Value::Object(values);
    let mut scope = Scope::new();
    scope.bind(SECRET, &values);
    let rendered = |template: &Template, what: &str| {
        text(template, &scope, what).map_err(|failure| refused(failure.message))
    };
    let url = parse_url(&rendered(&url, "url")?).map_err(|failure| refused(failure.message))?;
    if !allows_private {
        address::check(&url).map_err(|failure| refused(failure.message))?;
    }
    for name in &names {
        let checked = secrets.check(name, Destination::Url(&url));
        checked.map_err(|failure| NotificationReport::failed(failure.message))?;
    }
    let mut request = Outgoing {
        url,
        method: "POST".into(),
        headers: Vec::new(),
        body: Some(order.body.clone()),
    };
    let timestamp = (now / 1_000).to_string();
    let mut fields = Vec::new();
    for (name, value) in &headers {
        fields.push((name.as_str(), rendered(value, "a header")?));
    }
    // After those of the target, so that none of them replaces these.
    fields.push(("content-type", "application/json".into()));
    fields.push(("webhook-id", order.id.clone()));
    if let Some(name) = &target.secret {
        let secret = values[name].as_str().unwrap_or_default();
        let signature =
            sign(secret, &order.id, &timestamp, &order.body).map_err(NotificationReport::failed)?;
        fields.push(("webhook-signature", signature));
    }
    fields.push(("webhook-timestamp", timestamp));
    for (name, value) in fields {
        request
            .set_header(name, &value)
            .map_err(|failure| refused(failure.message))?;
    }
    Ok(request)
}

/// The value of `webhook-signature`.
fn sign(secret: &str, id: &str, timestamp: &str, body: &str) -> Result<String, &'static str> {
    let decoded;
    let key = match secret.strip_prefix(SECRET_PREFIX) {
        None => secret.as_bytes(),
        Some(text) => {
            decoded = base64::decode(text)
                .ok_or("the secret that signs begins with whsec_, but no base64 text follows")?;
            &decoded
        }
    };
    if key.is_empty() {
        return Err("the secret that signs is empty");
    }
    let signature = hmac_sha256(key, format!("{id}.{timestamp}.{body}").as_bytes());
    Ok(format!("v1,{}", base64::encode(&signature)))
}

/// What the status of an answer means.
pub fn report_of(status: u16, retry_after: Option<&str>, now: Millis) -> NotificationReport {
    match status {
        200..=299 => NotificationReport::Delivered,
        410 => NotificationReport::Gone,
        status if is_redirect(status) => NotificationReport::failed(format!(
            "the target answered with status {status}; a redirect is not followed: write the address that it leads to"
        )),
        status => NotificationReport::Failed {
            message: format!("the target answered with status {status}"),
            retry_after_ms: retry_after.and_then(|text| retry_after_ms(text, now)),
        },
    }
}

/// The report of an exchange that broke.
pub fn broken(message: String, secrets: &SecretStore) -> NotificationReport {
    redacted(NotificationReport::failed(message), secrets)
}

fn redacted(report: NotificationReport, secrets: &SecretStore) -> NotificationReport {
    let redact = |message: String| secrets.redactor().message(message);
    match report {
        NotificationReport::Delivered | NotificationReport::Gone => report,
        NotificationReport::Refused { message } => NotificationReport::Refused {
            message: redact(message),
        },
        NotificationReport::Failed {
            message,
            retry_after_ms,
        } => NotificationReport::Failed {
            message: redact(message),
            retry_after_ms,
        },
    }
}
