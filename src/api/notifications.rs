//! Views of notifications. Pure.

use serde_json::{Value, json};
use url::Url;

use crate::run::{Notification, NotificationStatus};

pub fn view(notification: &Notification) -> Value {
    let mut view = json!({
        "id": notification.id,
        "target": shown_target(notification),
        "kind": notification.kind,
        "seq": notification.seq,
        "status": notification.status,
        "attempts": notification.attempts,
        "created_at": notification.created_at,
    });
    if let Some(error) = &notification.last_error {
        view["last_error"] = json!(error);
    }
    if let Some(skipped) = &notification.skipped {
        view["skipped"] = json!(skipped);
    }
    if let Some(at) = notification.next_attempt_at {
        view["next_attempt_at"] = json!(at);
    }
    if let Some(at) = notification.ended_at {
        let field = match notification.status {
            NotificationStatus::Delivered => "delivered_at",
            NotificationStatus::Pending | NotificationStatus::Failed | NotificationStatus::Refused => {
                "ended_at"
            }
        };
        view[field] = json!(at);
    }
    view
}

/// The address without its query. Of a target of the deployment only the origin: the path may hold a credential, and callers
/// of the API may not read the variable. A secret is only named in an address.
fn shown_target(notification: &Notification) -> String {
    let url = notification.target.url.as_str();
    if !notification.of_deployment {
        let end = url.find(['?', '#']).unwrap_or(url.len());
        return url[..end].to_string();
    }
    // A secret may be the whole address, or its host.
    let before_secret = url.split("${").next().unwrap_or_default();
    let origin = Url::parse(before_secret)
        .ok()
        .map(|url| url.origin().ascii_serialization());
    let is_whole = before_secret.len() == url.len() || before_secret.matches('/').count() > 2;
    origin
        .filter(|_| is_whole)
        .unwrap_or_else(|| "CURFEW_NOTIFY".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str, of_deployment: bool) -> String {
        let row = json!({"id": "ntf_1", "target": {"url": url}, "of_deployment": of_deployment, "kind": "run_failed", "seq": 7,
            "status": "pending", "created_at": 1});
        let notification: Notification = serde_json::from_value(row).expect("a notification");
        shown_target(&notification)
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_a_credential() {
        for (url, of_workflow, of_deployment) in [
            (
                "https://x.example:8443/hook?key=1#a",
                "https://x.example:8443/hook",
                "https://x.example:8443",
            ),
            (
                "https://x.example/${secret.A}/b",
                "https://x.example/${secret.A}/b",
                "https://x.example",
            ),
            ("${secret.HOOK}", "${secret.HOOK}", "CURFEW_NOTIFY"),
            (
                "https://${secret.HOST}/b",
                "https://${secret.HOST}/b",
                "CURFEW_NOTIFY",
            ),
            (
                "https://x${secret.HOST}/b",
                "https://x${secret.HOST}/b",
                "CURFEW_NOTIFY",
            ),
            ("https://x.example", "https://x.example", "https://x.example"),
        ] {
            assert_eq!(shown(url, false), of_workflow);
            assert_eq!(shown(url, true), of_deployment, "{url}");
        }
    }
}
