//! Cloudflare Access: who its assertions are about, and the roles that `CURFEW_ACCESS_ROLES` gives them.

pub mod assertion;
pub mod keys;

use url::{Host, Url};

use crate::api::auth::credentials::{sha256, to_hex};
use crate::api::auth::grant::{Entries, Grant};
use crate::api::auth::request::RequestHead;
use crate::api::auth::{Identity, InvalidCredential, Role, Roles};
use crate::api::error::Error;
use crate::base::time::Millis;
use crate::protocol::caller::{Caller, WorkflowScope};
use assertion::{Assertion, Member, MemberKind};

pub const TEAM_SETTING: &str = "CURFEW_ACCESS_TEAM";
pub const AUDIENCE_SETTING: &str = "CURFEW_ACCESS_AUD";
pub const ROLES_SETTING: &str = "CURFEW_ACCESS_ROLES";

const HEADER: &str = "cf-access-jwt-assertion";
const COOKIE: &str = "CF_Authorization";
const ENTRIES_MAX: usize = 1_000;

#[derive(Debug)]
pub struct Access {
    /// The issuer of the assertions, without a slash at its end.
    team_url: String,
    audience: String,
    rules: Vec<(Subject, Grant)>,
}

/// Whom an entry of `CURFEW_ACCESS_ROLES` is about. Addresses and domains are in lower case.
#[derive(Debug, PartialEq)]
enum Subject {
    Email(String),
    Domain(String),
    Group(String),
    ServiceToken(String),
}

impl Access {
    /// `None` if none of the settings is there.
    pub fn parse(
        team: Option<&str>,
        audience: Option<&str>,
        roles: Option<&str>,
    ) -> Result<Option<Access>, String> {
        let (team, audience, roles) = match (team, audience, roles) {
            (None, None, None) => return Ok(None),
            (Some(team), Some(audience), Some(roles)) => (team, audience, roles),
            (team, audience, roles) => {
                let settings = [
                    (TEAM_SETTING, team),
                    (AUDIENCE_SETTING, audience),
                    (ROLES_SETTING, roles),
                ];
                let missing = settings.into_iter().filter(|(_, value)| value.is_none());
                let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
                return Err(format!(
                    "Access is configured in part: set {}, too",
                    missing.join(" and ")
                ));
            }
        };
        Ok(Some(Access {
            team_url: team_url(team)?,
            audience: audience.to_string(),
            rules: rules(roles)?,
        }))
    }

    /// Where the team publishes its keys.
    pub fn keys_url(&self) -> String {
        format!("{}/cdn-cgi/access/certs", self.team_url)
    }

    /// The parts of an assertion whose claims hold. Its signature is not verified.
    pub fn read(&self, jwt: &str, now: Millis) -> Result<Assertion, InvalidCredential> {
        let assertion = Assertion::parse(jwt)?;
        assertion.claims.check(&self.team_url, &self.audience, now)?;
        Ok(assertion)
    }

    /// The identity of a member whose assertion is verified, for a route that needs a role.
    pub fn identity(&self, member: &Member, needed: Role) -> Result<Identity, Error> {
        let grants: Vec<&Grant> = self
            .rules
            .iter()
            .filter(|(subject, _)| subject.is_about(member))
            .map(|(_, grant)| grant)
            .collect();
        if grants.is_empty() {
            let message = format!(
                "Access knows {}, but no entry of {ROLES_SETTING} gives a role",
                member.name()
            );
            return Err(Error::forbidden(message));
        }
        // A role that is limited to some workflows stays limited, even if another entry gives a lesser one for all.
        let scopes = grants.iter().filter(|grant| grant.roles.contains(needed));
        let workflows = scopes
            .map(|grant| grant.workflows.clone())
            .reduce(WorkflowScope::union);
        let identity = Identity {
            roles: grants
                .iter()
                .fold(Roles::NONE, |roles, grant| roles.union(grant.roles)),
            caller: Caller {
                name: Some(member.name().to_string()),
                workflows: workflows.unwrap_or_default(),
            },
        };
        identity.require(needed)?;
        Ok(identity)
    }
}

/// A name for a JWT that is no credential.
pub fn fingerprint(jwt: &str) -> String {
    to_hex(&sha256(jwt))
}

/// The assertion that a request carries: Access adds the header to requests it lets through, and its cookie to browsers.
pub fn assertion_of(head: &RequestHead) -> Option<String> {
    let is_set = |text: &String| !text.is_empty();
    if let Some(assertion) = head.header(HEADER).filter(is_set) {
        return Some(assertion);
    }
    let cookies = head.header("cookie")?;
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE)?;
    Some(value.to_string()).filter(is_set)
}

/// A name is short for its address at Cloudflare.
fn team_url(team: &str) -> Result<String, String> {
    let is_name = team
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_name && (1..=63).contains(&team.len()) {
        return Ok(format!("https://{team}.cloudflareaccess.com"));
    }
    let wrong =
        || format!("{TEAM_SETTING} is neither the name of a team (a-z, 0-9, -) nor its URL (https://...)");
    let url = Url::parse(team).map_err(|_| wrong())?;
    // Keys that come over an open connection could be anyone's.
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    let is_origin =
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    match is_safe && is_origin {
        true => Ok(url.origin().ascii_serialization()),
        false => Err(wrong()),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn rules(setting: &str) -> Result<Vec<(Subject, Grant)>, String> {
    let mut rules: Vec<(Subject, Grant)> = Vec::new();
    for (position, (key, value)) in (1..).zip(Entries::parse(ROLES_SETTING, setting)?) {
        let wrong = |message: String| format!("entry {position} of {ROLES_SETTING} is wrong: {message}");
        let subject = Subject::parse(&key).map_err(wrong)?;
        let grant = Grant::read(&value).map_err(wrong)?;
        if let Some(other) = rules.iter().position(|(other, _)| *other == subject) {
            return Err(wrong(format!("it is about the same as entry {}", other + 1)));
        }
        rules.push((subject, grant));
        if position > ENTRIES_MAX {
            return Err(format!("{ROLES_SETTING} has more than {ENTRIES_MAX} entries"));
        }
    }
    Ok(rules)
}

impl Subject {
    fn parse(key: &str) -> Result<Subject, String> {
        if let Some(group) = key.strip_prefix("group:") {
            return match group.is_empty() {
                true => Err("the name of its group is empty".into()),
                false => Ok(Subject::Group(group.to_string())),
            };
        }
        match key.rsplit_once('@') {
            Some((_, "")) => Err("its address ends with @".into()),
            Some(("", domain)) => Ok(Subject::Domain(domain.to_lowercase())),
            Some(_) => Ok(Subject::Email(key.to_lowercase())),
            None if key.is_empty() => Err("its key is empty".into()),
            None => Ok(Subject::ServiceToken(key.to_string())),
        }
    }

    fn is_about(&self, member: &Member) -> bool {
        match (self, &member.kind) {
            (Subject::Email(address), MemberKind::Person { email }) => *address == email.to_lowercase(),
            (Subject::Domain(domain), MemberKind::Person { email }) => email
                .rsplit_once('@')
                .is_some_and(|(_, other)| *domain == other.to_lowercase()),
            (Subject::ServiceToken(name), MemberKind::ServiceToken { common_name }) => name == common_name,
            (Subject::Group(group), _) => member.groups.contains(group),
            (Subject::Email(_) | Subject::Domain(_), MemberKind::ServiceToken { .. })
            | (Subject::ServiceToken(_), MemberKind::Person { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(roles: &str) -> Access {
        let parsed = Access::parse(Some("team"), Some("app"), Some(roles));
        parsed.expect("valid settings").expect("all are set")
    }

    fn person(email: &str, groups: &[&str]) -> Member {
        Member {
            kind: MemberKind::Person { email: email.into() },
            groups: groups.iter().map(|group| group.to_string()).collect(),
        }
    }

    fn service(name: &str) -> Member {
        Member {
            kind: MemberKind::ServiceToken {
                common_name: name.into(),
            },
            groups: Vec::new(),
        }
    }

    #[test]
    fn roles_are_the_union_of_what_matches() {
        let access = access(
            r#"{"ada@x.com": "admin", "@x.com": "read", "group:ops": "operate", "group:legal": {"roles": ["decide"]}, "ci.access": "start"}"#,
        );
        let roles = |member: &Member| match access.identity(member, Role::Read) {
            Ok(identity) => identity.roles.to_string(),
            Err(error) => error.status.to_string(),
        };
        for (member, expected) in [
            (person("ada@x.com", &[]), "admin"),
            (person("Ada@X.com", &[]), "admin"),
            (person("bob@x.com", &[]), "read"),
            (person("bob@x.com", &["ops"]), "operate"),
            (person("eve@y.com", &["legal"]), "decide"),
            (person("eve@y.com", &["Ops"]), "403"),
            (person("ada@x.com.evil.example", &[]), "403"),
            (person("eve@sub.x.com", &[]), "403"),
            (person("x.com", &[]), "403"),
            (person("ci.access", &[]), "403"),
            (service("ci.access"), "start"),
            (service("ada@x.com"), "403"),
            (service("@x.com"), "403"),
        ] {
            assert_eq!(roles(&member), expected, "{member:?}");
        }
        let identity = access
            .identity(&person("Ada@x.com", &[]), Role::Admin)
            .expect("admin");
        assert_eq!(identity.caller.name.as_deref(), Some("Ada@x.com"));
    }

    #[test]
    fn a_role_for_some_workflows_stays_with_them() {
        let access = access(
            r#"{"ada@x.com": {"roles": "operate", "workflows": ["order-*"]}, "@x.com": "read", "group:eu": {"roles": "start", "workflows": ["eu"]}}"#,
        );
        let scope = |needed: Role| {
            let identity = access
                .identity(&person("ada@x.com", &["eu"]), needed)
                .expect("allowed");
            identity.caller.workflows
        };
        assert!(scope(Role::Read).is_unlimited());
        assert!(scope(Role::Operate).contains("order-1") && !scope(Role::Operate).contains("eu"));
        assert!(scope(Role::Start).contains("order-1") && scope(Role::Start).contains("eu"));
        assert!(!scope(Role::Start).contains("refund"));
    }

    #[test]
    fn settings_that_are_refused() {
        let message = |team: Option<&str>, audience: Option<&str>, roles: Option<&str>| {
            Access::parse(team, audience, roles).expect_err("refused")
        };
        let roles = Some(r#"{"@x.com": "read"}"#);
        assert!(matches!(Access::parse(None, None, None), Ok(None)));
        assert_eq!(
            message(Some("team"), None, None),
            "Access is configured in part: set CURFEW_ACCESS_AUD and CURFEW_ACCESS_ROLES, too"
        );
        assert_eq!(
            message(None, None, roles),
            "Access is configured in part: set CURFEW_ACCESS_TEAM and CURFEW_ACCESS_AUD, too"
        );
        for team in [
            "Team",
            "a.b",
            "http://example.com",
            "https://example.com/path",
            "https://a@example.com",
            "ftp://localhost",
            &"a".repeat(64),
        ] {
            let text = message(Some(team), Some("app"), roles);
            assert!(
                text.starts_with("CURFEW_ACCESS_TEAM is neither"),
                "{team}: {text}"
            );
        }
        for (roles, expected) in [
            (
                r#"{"@x.com": "root"}"#,
                "entry 1 of CURFEW_ACCESS_ROLES is wrong: its role is unknown; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"a@x.com": "read", "A@x.com": "admin"}"#,
                "entry 2 of CURFEW_ACCESS_ROLES is wrong: it is about the same as entry 1",
            ),
            (
                r#"{"group:": "read"}"#,
                "entry 1 of CURFEW_ACCESS_ROLES is wrong: the name of its group is empty",
            ),
            (
                r#"{"a@": "read"}"#,
                "entry 1 of CURFEW_ACCESS_ROLES is wrong: its address ends with @",
            ),
            (
                r#"{"": "read"}"#,
                "entry 1 of CURFEW_ACCESS_ROLES is wrong: its key is empty",
            ),
            (
                r#"{"@x.com": {"roles": "read", "name": "x"}}"#,
                "entry 1 of CURFEW_ACCESS_ROLES is wrong: it has an unknown field; the known ones are roles, workflows",
            ),
            ("{}", "CURFEW_ACCESS_ROLES has no entry"),
            ("{", "CURFEW_ACCESS_ROLES is not JSON: line 1, column 1"),
        ] {
            assert_eq!(message(Some("team"), Some("app"), Some(roles)), expected);
        }
    }

    #[test]
    fn teams_are_names_or_urls() {
        for (team, expected) in [
            ("acme", "https://acme.cloudflareaccess.com"),
            ("https://login.acme.com", "https://login.acme.com"),
            ("https://login.acme.com/", "https://login.acme.com"),
            ("http://127.0.0.1:4000", "http://127.0.0.1:4000"),
            ("http://[::1]:4000/", "http://[::1]:4000"),
        ] {
            assert_eq!(team_url(team).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn the_header_comes_before_the_cookie() {
        let url = Url::parse("https://curfew.example.com/v1/runs").expect("a URL");
        let found = |headers: &[(&str, &str)]| {
            let header = |name: &str| {
                let found = headers.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| value.to_string())
            };
            assertion_of(&RequestHead {
                method: "GET",
                url: &url,
                header: &header,
            })
        };
        let cookies = ("cookie", "a=b; CF_Authorization=c.o.k=; x=y");
        assert_eq!(found(&[cookies]).as_deref(), Some("c.o.k="));
        assert_eq!(found(&[cookies, (HEADER, "h.e.a")]).as_deref(), Some("h.e.a"));
        assert_eq!(found(&[cookies, (HEADER, "")]).as_deref(), Some("c.o.k="));
        for other in [
            "",
            "CF_Authorization",
            "CF_Authorization=",
            "xCF_Authorization=a",
            "a=CF_Authorization=b",
        ] {
            assert_eq!(found(&[("cookie", other)]), None, "{other}");
        }
    }
}
