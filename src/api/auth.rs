//! Authorization: which role a bearer token has, and whether that role may use a route. Pure: headers and settings in,
//! a decision out. Without configured tokens only requests to a loopback host are allowed.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::api::error::Error;
use crate::base::constant_time;

/// Ordered: each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Read,
    Operate,
    Admin,
}

/// `setting` is `CURFEW_TOKENS`: a JSON object from token to role. `host` is the host of the request's URL.
pub fn authorize(
    setting: Option<&str>,
    authorization: Option<&str>,
    host: &str,
    needed: Role,
) -> Result<(), Error> {
    let setting = setting.map(str::trim).filter(|text| !text.is_empty());
    let Some(setting) = setting else {
        if is_loopback(host) {
            return Ok(());
        }
        return Err(Error::new(
            503,
            "auth_not_configured",
            "no tokens are configured, so only loopback development works; set the secret CURFEW_TOKENS",
        ));
    };
    let Ok(tokens) = serde_json::from_str::<BTreeMap<String, Role>>(setting) else {
        return Err(Error::new(
            503,
            "auth_not_configured",
            "CURFEW_TOKENS is not a JSON object from token to \"read\", \"operate\" or \"admin\"",
        ));
    };
    let given = authorization
        .and_then(|value| {
            value
                .strip_prefix("Bearer ")
                .or_else(|| value.strip_prefix("bearer "))
        })
        .map(str::trim);
    let Some(given) = given else {
        return Err(Error::new(
            401,
            "unauthorized",
            "send a token: Authorization: Bearer <token>",
        ));
    };
    // Compares every token, each in a time that depends on the lengths only: response times reveal nothing about a token.
    let mut role = None;
    for (token, granted) in &tokens {
        if constant_time::eq(token.as_bytes(), given.as_bytes()) && !token.is_empty() {
            role = Some(*granted);
        }
    }
    match role {
        None => Err(Error::new(401, "unauthorized", "the token is not known")),
        Some(role) if role < needed => Err(Error::new(
            403,
            "forbidden",
            format!("the token may {role:?}; this needs {needed:?}").to_lowercase(),
        )),
        Some(_) => Ok(()),
    }
}

pub fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Option<&str> = Some(r#"{"r": "read", "o": "operate", "a": "admin"}"#);

    fn status(setting: Option<&str>, header: Option<&str>, host: &str, needed: Role) -> u16 {
        authorize(setting, header, host, needed).map_or_else(|error| error.status, |()| 200)
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
        assert_eq!(
            status(Some(r#"{"": "admin"}"#), Some("Bearer "), "x", Role::Read),
            401
        );
    }
}
