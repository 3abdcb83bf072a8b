//! The executor's variable `CURFEW_SECRETS`: which secrets actions may use, and to which hosts and Workers each may be sent.
//!
//! No message quotes what the variable holds besides names: a value that was written there by mistake must not be reported.

use serde_json::Value;
use url::{Host, Url};

/// The executor's variable that lists the secrets it may read.
pub const SECRETS: &str = "CURFEW_SECRETS";

/// Before the name of a service binding in a list of hosts.
const BINDING: &str = "binding:";

/// A secret that the variable lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSecret {
    pub name: String,
    /// Where it may be sent; empty: anywhere.
    pub hosts: Vec<AllowedHost>,
}

/// A place to which a secret may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    Host {
        /// As the URL parser writes it, without the dot at the end.
        name: String,
        /// None: every port.
        port: Option<u16>,
        /// The names below it, and not itself.
        is_wildcard: bool,
    },
    /// A Worker that is bound to the executor.
    Binding(String),
}

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    Url(&'a Url),
    Binding(&'a str),
}

/// A list of names, separated by commas or as a JSON array, or a JSON object from name to hosts. The error says what is wrong.
pub fn parse_setting(variable: &str) -> Result<Vec<ListedSecret>, String> {
    let variable = variable.trim();
    if !variable.starts_with(['[', '{']) {
        let names = variable.split(',').map(str::trim).filter(|name| !name.is_empty());
        return Ok(names.map(anywhere).collect());
    }
    let parsed = serde_json::from_str(variable).map_err(|error| format!("it is not JSON: {error}"))?;
    match parsed {
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().map(anywhere).ok_or_else(no_name))
            .collect(),
        Value::Object(secrets) => secrets
            .iter()
            .map(|(name, hosts)| {
                let hosts = parse_hosts(name, hosts)?;
                Ok(ListedSecret {
                    name: name.clone(),
                    hosts,
                })
            })
            .collect(),
        _other => unreachable!("JSON that begins with a bracket is an array or an object"),
    }
}

/// The names in a variable, also in one that is invalid: what may be a secret is redacted.
pub fn names_in(variable: &str) -> Vec<String> {
    if let Ok(listed) = parse_setting(variable) {
        return listed.into_iter().map(|secret| secret.name).collect();
    }
    match serde_json::from_str(variable) {
        Ok(Value::Object(secrets)) => secrets.into_iter().map(|(name, _)| name).collect(),
        Ok(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(str::to_string).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn anywhere(name: &str) -> ListedSecret {
    ListedSecret {
        name: name.to_string(),
        hosts: Vec::new(),
    }
}

fn no_name() -> String {
    "the list holds something that is no name".to_string()
}

fn parse_hosts(name: &str, hosts: &Value) -> Result<Vec<AllowedHost>, String> {
    let hosts = match hosts {
        Value::Null => return Ok(Vec::new()),
        Value::Array(hosts) => hosts.iter(),
        _other => {
            return Err(format!(
                "\"{name}\" needs a list of hosts, like [\"api.example.com\"]; an empty list means every host"
            ));
        }
    };
    let mut allowed = Vec::new();
    for (index, host) in hosts.enumerate() {
        let parsed = host.as_str().and_then(AllowedHost::parse).ok_or_else(|| {
            format!(
                "entry {} in the list of \"{name}\" is no host: write api.example.com, api.example.com:8443, *.example.com or \
                 {BINDING}NAME",
                index + 1
            )
        })?;
        allowed.push(parsed);
    }
    Ok(allowed)
}

impl AllowedHost {
    fn parse(text: &str) -> Option<AllowedHost> {
        if let Some(name) = text.strip_prefix(BINDING) {
            return (!name.is_empty()).then(|| AllowedHost::Binding(name.to_string()));
        }
        let (rest, is_wildcard) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        // A colon inside brackets belongs to the address.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            Some(_) | None => (rest, None),
        };
        let port = match port {
            None => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        };
        let host = Host::parse(host).ok().filter(|_| !host.contains('*'))?;
        let is_domain = matches!(host, Host::Domain(_));
        let name = without_dot(&host.to_string());
        (!name.is_empty() && (is_domain || !is_wildcard)).then_some(AllowedHost::Host {
            name,
            port,
            is_wildcard,
        })
    }

    fn allows(&self, destination: Destination) -> bool {
        match (self, destination) {
            (AllowedHost::Binding(name), Destination::Binding(other)) => name == other,
            (
                AllowedHost::Host {
                    name,
                    port,
                    is_wildcard,
                },
                Destination::Url(url),
            ) => {
                let host = without_dot(url.host_str().unwrap_or_default());
                let fits_name = match is_wildcard {
                    false => host == *name,
                    true => host
                        .strip_suffix(name.as_str())
                        .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                };
                fits_name && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
            (AllowedHost::Binding(_), Destination::Url(_))
            | (AllowedHost::Host { .. }, Destination::Binding(_)) => false,
        }
    }
}

impl ListedSecret {
    pub fn may_go_to(&self, destination: Destination) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|host| host.allows(destination))
    }
}

/// A name with a dot at the end is the same host.
fn without_dot(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variable: &str) -> String {
        match parse_setting(variable) {
            Ok(listed) => {
                let names: Vec<_> = listed.iter().map(|secret| secret.name.as_str()).collect();
                names.join(" ")
            }
            Err(message) => format!("invalid: {message}"),
        }
    }

    #[test]
    fn secrets_are_listed_in_three_ways() {
        for (variable, expected) in [
            ("", ""),
            ("A", "A"),
            (" A, B_2 ,,C ", "A B_2 C"),
            (r#" ["A", "B"] "#, "A B"),
            (r#"{"B": [], "A": null, "C": ["a.example"]}"#, "A B C"),
            ("{}", ""),
        ] {
            assert_eq!(names(variable), expected, "{variable}");
        }
    }

    #[test]
    fn an_invalid_setting_says_what_is_wrong_and_quotes_no_value() {
        for (variable, expected) in [
            (r#"["A", 1]"#, "the list holds something that is no name"),
            ("[A", "it is not JSON: "),
            (r#"{"A": ["a.example"]"#, "it is not JSON: "),
            (r#"{"A": "sk-value"}"#, "\"A\" needs a list of hosts"),
            (r#"{"A": {"sk-value": 1}}"#, "\"A\" needs a list of hosts"),
            (
                r#"{"A": ["a.example", 7]}"#,
                "entry 2 in the list of \"A\" is no host",
            ),
            (
                r#"{"A": ["https://sk-value/"]}"#,
                "entry 1 in the list of \"A\" is no host",
            ),
        ] {
            let message = names(variable);
            assert!(
                message.starts_with(&format!("invalid: {expected}")),
                "{variable}: {message}"
            );
            assert!(!message.contains("sk-value"), "{message}");
        }
        for host in [
            "",
            " ",
            "*",
            "*.",
            "a.*.example",
            "*a.example",
            "a.example/",
            "a.example/x",
            "u@a.example",
            "a.example:",
            "a.example:0",
            "a.example:99999",
            "a.example:https",
            "a b",
            "::1",
            "[::1",
            "*.127.0.0.1",
            "*.[::1]",
            "binding:",
            "a?b",
            "a#b",
        ] {
            let variable = serde_json::json!({"A": [host]}).to_string();
            assert!(names(&variable).starts_with("invalid: entry 1"), "{host}");
        }
    }

    #[test]
    fn what_an_invalid_setting_names_is_still_redacted() {
        for (variable, expected) in [
            (r#"{"A": "a.example", "B": ["*"]}"#, "A B"),
            (r#"["A", 1]"#, "A"),
            ("[A", ""),
            ("A, B", "A B"),
        ] {
            assert_eq!(names_in(variable).join(" "), expected, "{variable}");
        }
    }

    #[test]
    fn a_bound_secret_goes_to_its_hosts() {
        for (host, url, allowed) in [
            ("api.stripe.com", "https://api.stripe.com/v1", true),
            ("api.stripe.com", "http://API.Stripe.com:8080/v1", true),
            ("API.stripe.COM.", "https://api.stripe.com/", true),
            ("api.stripe.com", "https://api.stripe.com./", true),
            ("api.stripe.com", "https://api%2Estripe.com/", true),
            ("api.stripe.com", "https://xapi.stripe.com/", false),
            ("api.stripe.com", "https://a.api.stripe.com/", false),
            ("api.stripe.com", "https://api.stripe.com.evil.example/", false),
            ("api.stripe.com", "https://evil.example/api.stripe.com", false),
            ("api.stripe.com", "https://evil.example/?@api.stripe.com", false),
            ("api.stripe.com", "https://stripe.com/", false),
            ("a.example:8443", "https://a.example:8443/", true),
            ("a.example:8443", "https://a.example/", false),
            ("a.example:443", "https://a.example/", true),
            ("a.example:443", "http://a.example/", false),
            ("a.example:80", "http://a.example/", true),
            ("*.example.com", "https://a.example.com/", true),
            ("*.example.com", "https://a.b.EXAMPLE.com./", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://.example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
            ("*.example.com", "https://a.example.com.evil.example/", false),
            ("*.example.com:8443", "https://a.example.com:8443/", true),
            ("*.example.com:8443", "https://a.example.com/", false),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("xn--bcher-kva.example", "https://BÜCHER.example/", true),
            ("127.0.0.1", "http://0x7f.1:99/", true),
            ("[::1]", "http://[0:0::1]:99/", true),
            ("[::1]:99", "http://[::1]:98/", false),
        ] {
            let host_parsed = AllowedHost::parse(host).unwrap_or_else(|| panic!("{host} is no host"));
            let parsed = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(
                host_parsed.allows(Destination::Url(&parsed)),
                allowed,
                "{url} for {host}"
            );
            assert!(!host_parsed.allows(Destination::Binding(host)), "{host}");
        }
        let bound = AllowedHost::parse("binding:RUNNER").expect("a binding");
        assert!(bound.allows(Destination::Binding("RUNNER")));
        for other in ["runner", "RUNNER2", "binding:RUNNER", ""] {
            assert!(!bound.allows(Destination::Binding(other)), "{other}");
        }
        let url = Url::parse("http://runner/").expect("a URL");
        assert!(!bound.allows(Destination::Url(&url)));
        assert!(anywhere("A").may_go_to(Destination::Url(&url)));
        assert!(anywhere("A").may_go_to(Destination::Binding("X")));
    }
}
