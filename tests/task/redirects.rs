//! Where the requests of an action may go: redirects, private addresses, and the hosts of secrets.

use curfew::base::failure::Failure;
use curfew::definition::step::StepAction;
use curfew::task::redirect::{Reach, next};
use curfew::task::request::Outgoing;
use curfew::task::secret_hosts::Destination;
use curfew::task::secrets::{CallSecrets, SecretStore};
use curfew::task::task_cache::TaskCache;
use serde_json::{Value, json};
use url::Url;

use super::action_call::calling_with;
use super::fake_runtime::{secrets, with};

const PUBLIC: Reach = Reach::Internet { private: false };
const PRIVATE: Reach = Reach::Internet { private: true };

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sent(method: &str, body: Option<&str>) -> Outgoing {
    let header = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", "k"),
        ("authorization", "Bearer x"),
        ("cookie", "a=1"),
        ("x-api-key", "tok-123456"),
    ];
    Outgoing {
        url: url("https://a.example/deep/path?q=1"),
        method: method.into(),
        headers: headers.map(header).to_vec(),
        body: body.map(str::to_string),
    }
}

fn line(followed: Result<Option<Outgoing>, Failure>) -> String {
    match followed {
        Ok(Some(request)) => {
            let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
            let body = if request.body.is_some() { "+body" } else { "" };
            format!("{} {}{body} {}", request.method, request.url, names.join(","))
        }
        Ok(None) => "an answer".into(),
        Err(failure) => format!("{} {:?}: {}", failure.code, failure.class, failure.message),
    }
}

/// What follows a redirect of `request`, sent by an action with this implementation.
fn follow_in(
    store: &SecretStore,
    (kind, implementation): (&str, Value),
    request: &Outgoing,
    (status, location): (u16, &str),
    reach: Reach,
) -> String {
    calling_with(store, kind, implementation, json!({}), None, |call| {
        line(next(request, status, Some(location), reach, call))
    })
}

fn http_request() -> (&'static str, Value) {
    ("http_request", json!({"url": "https://a.example"}))
}

fn follow(method: &str, body: Option<&str>, status: u16, location: &str, reach: Reach) -> String {
    let store = secrets("KEY", &[("KEY", "tok-123456")]);
    follow_in(
        &store,
        http_request(),
        &sent(method, body),
        (status, location),
        reach,
    )
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
        assert_eq!(
            follow(method, Some("{}"), status, "/x", PUBLIC),
            line,
            "{method} {status}"
        );
    }
    let store = SecretStore::default();
    let (kind, implementation) = http_request();
    calling_with(&store, kind, implementation, json!({}), None, |call| {
        let no_location = next(&sent("GET", None), 302, None, PUBLIC, call);
        assert_eq!(no_location, Ok(None));
    });
}

#[test]
fn another_origin_gets_no_credentials() {
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
        let line = follow("DELETE", None, 307, location, PUBLIC);
        assert_eq!(line.rsplit(' ').next(), Some(headers), "{location}: {line}");
    }
}

#[test]
fn another_origin_gets_no_body() {
    let refused = |origin: &str| {
        format!(
            "redirected Permanent: the answer redirects to {origin}: the request has a body, which is not sent to another origin; \
             write the address it leads to into the action"
        )
    };
    for (method, status) in [
        ("POST", 307),
        ("POST", 308),
        ("PUT", 301),
        ("PUT", 302),
        ("PATCH", 307),
        ("DELETE", 301),
    ] {
        for (location, origin) in [
            ("https://b.example/x?token=tok-123456#y", "https://b.example"),
            ("http://a.example/x", "http://a.example"),
            ("https://a.example:8443/x", "https://a.example:8443"),
        ] {
            assert_eq!(
                follow(method, Some("{}"), status, location, PUBLIC),
                refused(origin),
                "{method} {status}"
            );
            // A bound Worker gets every hop itself, but its author may send requests on by their address.
            let bound = follow(method, Some("{}"), status, location, Reach::Binding("PEER"));
            assert_eq!(bound, refused(origin));
        }
        // An empty body is one.
        assert_eq!(
            follow(method, Some(""), status, "https://b.example", PUBLIC),
            refused("https://b.example")
        );
    }
    // A method that becomes GET leaves the body behind.
    for (method, status) in [("POST", 301), ("POST", 302), ("POST", 303), ("PUT", 303)] {
        let line = follow(method, Some("{}"), status, "https://b.example/x", PUBLIC);
        assert_eq!(
            line, "GET https://b.example/x idempotency-key",
            "{method} {status}"
        );
    }
}

#[test]
fn a_command_is_never_sent_to_another_origin() {
    let store = SecretStore::default();
    let shell = || ("shell", json!({"url": "https://a.example", "command": "make"}));
    for status in [301, 302, 303, 307, 308] {
        let away = follow_in(
            &store,
            shell(),
            &sent("POST", Some("{}")),
            (status, "https://b.example/x"),
            PUBLIC,
        );
        assert_eq!(
            away,
            "redirected Permanent: the answer redirects to https://b.example: a command goes to the runner that the action names and \
             to no other; write the address it leads to into the action",
            "{status}"
        );
    }
    let same = follow_in(&store, shell(), &sent("POST", Some("{}")), (307, "/x"), PUBLIC);
    assert!(same.starts_with("POST https://a.example/x+body"), "{same}");
}

#[test]
fn every_hop_is_checked() {
    for location in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "//localhost/x",
        "//db/x",
        "http://nas.lan/",
        "http://169.254.169.254/latest",
        "https://0x7f.1/",
    ] {
        let line = follow("GET", None, 302, location, PUBLIC);
        assert!(
            line.starts_with("private_address Permanent"),
            "{location}: {line}"
        );
        for reach in [PRIVATE, Reach::Binding("PEER")] {
            let line = follow("GET", None, 302, location, reach);
            assert!(line.starts_with("GET http"), "{location}: {line}");
        }
    }
    for location in [
        "ftp://a.example/x",
        "javascript:alert(1)",
        "http://",
        "https://u:p@a.example/",
    ] {
        let line = follow("GET", None, 302, location, PUBLIC);
        assert!(
            line.starts_with("invalid_redirect Permanent"),
            "{location}: {line}"
        );
    }
}

#[test]
fn the_first_address_is_checked_too() {
    let store = SecretStore::default();
    let (kind, implementation) = http_request();
    calling_with(&store, kind, implementation, json!({}), None, |call| {
        let mut request = sent("GET", None);
        assert_eq!(PUBLIC.check(&request, call), Ok(()));
        request.url = url("http://10.0.0.1/");
        assert!(PUBLIC.check(&request, call).is_err());
        assert_eq!(Reach::Binding("PEER").check(&request, call), Ok(()));
    });
}

/// The executor's secrets: one for two hosts and a Worker, one for every host.
fn bound() -> SecretStore {
    let setting = r#"{"STRIPE": ["api.stripe.com", "*.stripe.dev", "binding:PAY"], "ANY": [], "NULL": null}"#;
    let values = [
        ("STRIPE", "sk_live_0123456789"),
        ("ANY", "any-0123456789"),
        ("NULL", "null-0123456789"),
    ];
    secrets(setting, &values)
}

/// Checks the first request of an action with these headers to `url`.
fn checked(kind: &str, implementation: Value, url_called: &str, reach: Reach) -> Result<(), String> {
    calling_with(&bound(), kind, implementation, json!({}), None, |call| {
        let mut request = sent("POST", Some("{}"));
        request.url = url(url_called);
        let found = reach.check(&request, call);
        found.map_err(|it| format!("{} {:?}: {}", it.code, it.class, it.message))
    })
}

fn sending(secret: &str) -> Value {
    json!({"url": "https://a.example", "headers": {"authorization": format!("Bearer ${{secret.{secret}}}")}})
}

#[test]
fn a_bound_secret_is_only_sent_to_its_hosts() {
    for allowed in [
        "https://api.stripe.com/v1/charges",
        "https://API.STRIPE.COM./",
        "https://test.stripe.dev:8443/",
    ] {
        assert_eq!(
            checked("http_request", sending("STRIPE"), allowed, PUBLIC),
            Ok(()),
            "{allowed}"
        );
    }
    for (refused, host) in [
        ("https://evil.example/api.stripe.com", "evil.example"),
        (
            "https://api.stripe.com.evil.example:99/",
            "api.stripe.com.evil.example",
        ),
        ("https://stripe.dev/", "stripe.dev"),
    ] {
        let message =
            checked("http_request", sending("STRIPE"), refused, PUBLIC).expect_err("it may not go there");
        let port = if refused.contains(":99") { ":99" } else { "" };
        assert_eq!(
            message,
            format!(
                "secret_not_allowed Permanent: the secret \"STRIPE\" may not be sent to \"{host}{port}\": the executor's variable \
                 CURFEW_SECRETS binds it to other hosts; if it may, add \"{host}\" to them"
            )
        );
        for free in ["ANY", "NULL"] {
            assert_eq!(
                checked("http_request", sending(free), refused, PUBLIC),
                Ok(()),
                "{free}"
            );
        }
        let none = json!({"url": "https://a.example"});
        assert_eq!(checked("http_request", none, refused, PUBLIC), Ok(()));
    }
}

#[test]
fn a_bound_secret_goes_to_a_worker_only_by_name() {
    let service = |secret: &str| json!({"binding": "PAY", "body": format!("${{secret.{secret}}}")});
    let pay = Reach::Binding("PAY");
    assert_eq!(
        checked("service_call", service("STRIPE"), "http://service/", pay),
        Ok(())
    );
    let other = Reach::Binding("OTHER");
    // The host in the URL is not where the request goes.
    for address in ["http://service/", "http://api.stripe.com/"] {
        let message = checked("service_call", service("STRIPE"), address, other).expect_err("another Worker");
        assert!(
            message.contains("may not be sent to the binding \"OTHER\"")
                && message.ends_with("add \"binding:OTHER\" to them"),
            "{message}"
        );
    }
    assert_eq!(
        checked("service_call", service("ANY"), "http://service/", other),
        Ok(())
    );
}

#[test]
fn every_kind_of_call_is_bound() {
    let key = json!({"authorization": "${secret.STRIPE}"});
    for (kind, implementation) in [
        (
            "mcp_tool",
            json!({"server_url": "https://a.example", "tool": "t", "headers": key}),
        ),
        (
            "shell",
            json!({"url": "https://a.example", "command": "make", "env": {"KEY": "${secret.STRIPE}"}}),
        ),
        (
            "llm_call",
            json!({"provider": "openai", "model": "m", "prompt": "p", "api_key": "${secret.STRIPE}"}),
        ),
    ] {
        let message =
            checked(kind, implementation.clone(), "https://a.example/", PUBLIC).expect_err("not its host");
        assert!(
            message.starts_with("secret_not_allowed Permanent"),
            "{kind}: {message}"
        );
        assert_eq!(
            checked(kind, implementation, "https://api.stripe.com/", PUBLIC),
            Ok(()),
            "{kind}"
        );
    }
}

/// Also where the secret itself would not be sent: what a redirect leads to is chosen by the peer.
#[test]
fn a_redirect_leads_a_bound_secret_to_no_other_host() {
    let mut request = sent("GET", None);
    request.url = url("https://api.stripe.com/");
    for (location, expected) in [
        ("/v2", "GET https://api.stripe.com/v2"),
        ("https://files.stripe.dev/x", "GET https://files.stripe.dev/x"),
        (
            "https://evil.example/x",
            "secret_not_allowed Permanent: the secret \"STRIPE\" may not be sent to \"evil.example\"",
        ),
    ] {
        let action = ("http_request", sending("STRIPE"));
        let line = follow_in(&bound(), action, &request, (302, location), PUBLIC);
        assert!(line.starts_with(expected), "{line}");
    }
    let free = ("http_request", sending("ANY"));
    let line = follow_in(&bound(), free, &request, (302, "https://evil.example/x"), PUBLIC);
    assert!(line.starts_with("GET https://evil.example/x"), "{line}");
}

/// Documents of earlier builds may write a secret into the context of the task, where any step may send it.
#[test]
fn a_secret_in_the_context_of_a_task_is_bound_for_all_its_steps() {
    let copying = json!({"ref": "copy", "action": {"kind": "update_context", "implementation": {"set": {"state.k": "${secret.STRIPE}"}}}});
    let calling = json!({"ref": "a", "action": {"kind": "http_request", "implementation": {"url": "https://x.example/${state.k}"}}});
    let store = bound();
    for (steps, is_refused) in [
        (json!([copying, calling.clone()]), true),
        (json!([calling]), false),
    ] {
        let text = with(json!({"id": "t"}), json!({"steps": steps})).to_string();
        let task = TaskCache::default().task(&text).expect("the task can be read");
        let StepAction::Inline(action) = &task.steps[task.steps.len() - 1].action else {
            panic!("it is written inline");
        };
        let secrets = CallSecrets {
            store: &store,
            action,
            task: &task,
        };
        let to = |address: &str| secrets.check(Destination::Url(&url(address)));
        assert_eq!(to("https://x.example/").is_err(), is_refused);
        assert_eq!(to("https://api.stripe.com/"), Ok(()));
    }
}
