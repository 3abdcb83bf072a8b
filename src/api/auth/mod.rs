//! Authorization: who sends a request, and whether the sender may use a route. Pure: settings, headers and the time in, an
//! identity or a refusal out.

mod credentials;
mod grant;
mod role;

use crate::api::error::Error;
use crate::base::time::Millis;
use crate::protocol::caller::Caller;

pub use credentials::Credentials;
pub use grant::is_caller_name;
pub use role::{Role, Roles};

/// Who sends a request, and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub caller: Caller,
    pub roles: Roles,
}

impl Identity {
    /// For requests that need no credential: they get no role.
    pub const ANONYMOUS: Identity = Identity {
        caller: Caller::ANONYMOUS,
        roles: Roles::NONE,
    };

    fn development() -> Identity {
        Identity {
            caller: Caller::ANONYMOUS,
            roles: Roles::of(Role::Admin),
        }
    }

    /// A 403 unless the identity has the role.
    pub fn require(&self, role: Role) -> Result<(), Error> {
        if self.roles.contains(role) {
            return Ok(());
        }
        let message = format!(
            "the credential has the role {}; this needs {}",
            self.roles,
            role.name()
        );
        Err(Error::new(403, "forbidden", message))
    }
}

/// The settings of a deployment, parsed.
#[derive(Debug)]
pub struct Settings {
    /// `None`: `CURFEW_TOKENS` is not set.
    credentials: Option<Credentials>,
}

impl Settings {
    /// `tokens` is `CURFEW_TOKENS`.
    pub fn parse(tokens: Option<&str>) -> Result<Settings, Error> {
        let set = |text: Option<&'_ str>| {
            text.map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_string)
        };
        let credentials = match set(tokens) {
            None => None,
            Some(text) => Some(Credentials::parse(&text).map_err(not_configured)?),
        };
        Ok(Settings { credentials })
    }
}

/// What a request says about its sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    pub authorization: Option<&'a str>,
    /// The host of the request's URL.
    pub url_host: &'a str,
}

/// The identity of the sender, if it has the role that the route needs.
pub fn authorize(
    settings: &Settings,
    head: &RequestHead,
    needed: Role,
    now: Millis,
) -> Result<Identity, Error> {
    let identity = authenticate(settings, head, now)?;
    identity.require(needed)?;
    Ok(identity)
}

fn authenticate(settings: &Settings, head: &RequestHead, now: Millis) -> Result<Identity, Error> {
    let Some(credentials) = &settings.credentials else {
        if is_loopback(head.url_host) {
            return Ok(Identity::development());
        }
        return Err(not_configured(
            "no tokens are configured, so only loopback development works; set the secret CURFEW_TOKENS",
        ));
    };
    let Some(token) = head.authorization.and_then(credentials::bearer) else {
        return Err(Error::new(
            401,
            "unauthorized",
            "send a token: Authorization: Bearer <token>",
        ));
    };
    credentials.identify(token, now).cloned()
}

fn not_configured(message: impl Into<String>) -> Error {
    Error::new(503, "auth_not_configured", message)
}

pub fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Option<&str> = Some(r#"{"r": "read", "o": "operate", "a": "admin"}"#);

    fn status(setting: Option<&str>, header: Option<&str>, host: &str, needed: Role) -> u16 {
        let head = RequestHead {
            authorization: header,
            url_host: host,
        };
        Settings::parse(setting)
            .and_then(|settings| authorize(&settings, &head, needed, 0))
            .map_or_else(|error| error.status, |_| 200)
    }

    #[test]
    fn roles_include_the_lesser_ones() {
        for (token, role, expected) in [
            ("r", Role::Read, 200),
            ("r", Role::Operate, 403),
            ("o", Role::Operate, 200),
            ("o", Role::Admin, 403),
            ("a", Role::Admin, 200),
            ("x", Role::Read, 401),
            ("", Role::Read, 401),
        ] {
            let header = format!("Bearer {token}");
            assert_eq!(
                status(TOKENS, Some(&header), "localhost", role),
                expected,
                "{token}"
            );
        }
        assert_eq!(status(TOKENS, None, "localhost", Role::Read), 401);
        assert_eq!(status(TOKENS, Some("Basic r"), "localhost", Role::Read), 401);
    }

    #[test]
    fn without_tokens_only_loopback_works() {
        assert_eq!(status(None, None, "localhost", Role::Admin), 200);
        assert_eq!(status(Some(" "), None, "127.0.0.1", Role::Admin), 200);
        assert_eq!(status(None, None, "curfew.example.com", Role::Read), 503);
        assert_eq!(
            status(Some("nonsense"), Some("Bearer r"), "localhost", Role::Read),
            503
        );
    }
}
