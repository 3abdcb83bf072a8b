//! The bearer tokens of `CURFEW_TOKENS`: a JSON object from a token, or `sha256:<hex>` of one, to what it grants.
//!
//! Only hashes are kept and compared. A hash has one length, so the time of a comparison shows neither the length of a token
//! nor how much of it was right, and every entry is compared, so it does not show which entry matched.

use sha2::{Digest, Sha256};

use crate::api::auth::grant::{Entries, TokenGrant};
use crate::api::auth::{Identity, InvalidCredential};
use crate::base::constant_time;
use crate::base::time::{Millis, format_moment};
use crate::protocol::caller::Caller;

pub const SETTING: &str = "CURFEW_TOKENS";

const HASH_PREFIX: &str = "sha256:";
/// The name of a credential without one: enough of its hash to find its entry, too little to find its token.
const NAME_HEX_DIGITS: usize = 8;
/// A setting of the platform holds 5 KB. The limit bounds the time of a comparison.
const ENTRIES_MAX: usize = 200;

pub type TokenHash = [u8; 32];

#[derive(Debug)]
pub struct Credentials {
    entries: Vec<Credential>,
}

#[derive(Debug)]
struct Credential {
    hash: TokenHash,
    identity: Identity,
    expires_at: Option<Millis>,
}

impl Credentials {
    /// The message of an error names an entry by its position, counted from 1, and quotes nothing of it.
    pub fn parse(setting: &str) -> Result<Credentials, String> {
        let mut entries: Vec<Credential> = Vec::new();
        for (position, (key, value)) in (1..).zip(Entries::parse(SETTING, setting)?) {
            let credential = Credential::read(&key, &value)
                .map_err(|message| format!("entry {position} of {SETTING} is wrong: {message}"))?;
            if let Some(other) = entries.iter().position(|other| other.hash == credential.hash) {
                return Err(format!(
                    "entry {position} of {SETTING} is wrong: it has the token of entry {}",
                    other + 1
                ));
            }
            entries.push(credential);
        }
        match entries.len() <= ENTRIES_MAX {
            true => Ok(Credentials { entries }),
            false => Err(format!("{SETTING} has more than {ENTRIES_MAX} entries")),
        }
    }

    pub fn identify(&self, token: &str, now: Millis) -> Result<&Identity, InvalidCredential> {
        let hash = sha256(token);
        let mut found = None;
        for credential in &self.entries {
            if constant_time::eq(&credential.hash, &hash) {
                found = Some(credential);
            }
        }
        let Some(credential) = found else {
            return Err(InvalidCredential::wrong("the token is not known"));
        };
        match credential.expires_at {
            Some(moment) if moment <= now => {
                let message = format!("the token expired at {}", format_moment(moment));
                Err(InvalidCredential::untimely(message))
            }
            Some(_) | None => Ok(&credential.identity),
        }
    }
}

impl Credential {
    fn read(key: &str, value: &serde_json::Value) -> Result<Credential, String> {
        let hash = match key.strip_prefix(HASH_PREFIX) {
            Some(hex) => parse_hash(hex).ok_or("after sha256: come the 64 hex digits of the token's hash")?,
            None if key.trim().is_empty() => return Err("its token is empty".into()),
            None if key.trim() != key => return Err("its token begins or ends with a space".into()),
            None => sha256(key),
        };
        let TokenGrant {
            grant,
            name,
            expires_at,
        } = TokenGrant::read(value)?;
        let name = name.unwrap_or_else(|| format!("token:{}", &to_hex(&hash)[..NAME_HEX_DIGITS]));
        Ok(Credential {
            hash,
            identity: Identity {
                caller: Caller {
                    name: Some(name),
                    workflows: grant.workflows,
                },
                roles: grant.roles,
            },
            expires_at,
        })
    }
}

/// The token of an `Authorization` header of the scheme `Bearer`.
pub fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

pub fn sha256(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

pub fn to_hex(hash: &TokenHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hash(hex: &str) -> Option<TokenHash> {
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::auth::role::Role;

    const NOW: Millis = 1_800_000_000_000;
    /// The SHA-256 of `abc`.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn identity(setting: &str, token: &str) -> Result<Identity, InvalidCredential> {
        let credentials = Credentials::parse(setting).expect("a valid setting");
        credentials.identify(token, NOW).cloned()
    }

    fn message(setting: &str) -> String {
        Credentials::parse(setting).expect_err(setting)
    }

    #[test]
    fn a_token_in_clear_and_its_hash_are_the_same_credential() {
        let hashed = format!(r#"{{"sha256:{}": "start"}}"#, ABC.to_uppercase());
        for setting in [r#"{"abc": "start"}"#, &hashed] {
            let known = identity(setting, "abc").expect("known");
            assert_eq!(known.caller.name.as_deref(), Some("token:ba7816bf"));
            assert!(known.caller.workflows.is_unlimited());
            assert!(known.roles.contains(Role::Start) && !known.roles.contains(Role::Decide));
        }
        for wrong in ["ab", "abcd", "ABC", "", ABC, &format!("sha256:{ABC}")] {
            let error = identity(&hashed, wrong).expect_err(wrong);
            assert_eq!(error, InvalidCredential::wrong("the token is not known"));
        }
    }

    #[test]
    fn names_roles_and_workflows() {
        let setting = r#"{"t": {"name": "billing", "roles": ["start", "decide"], "workflows": ["order-*"]}, "u": {"roles": "admin"}}"#;
        let known = identity(setting, "t").expect("known");
        assert_eq!(known.caller.name.as_deref(), Some("billing"));
        assert!(known.caller.workflows.contains("order-eu") && !known.caller.workflows.contains("refund"));
        assert_eq!(known.roles.to_string(), "start and decide");
        assert!(identity(setting, "u").expect("known").roles.contains(Role::Admin));
    }

    #[test]
    fn an_expired_token_is_refused_and_says_so() {
        let at = |expires_at: Millis| {
            let setting = format!(r#"{{"t": {{"roles": "read", "expires_at": {expires_at}}}}}"#);
            identity(&setting, "t")
        };
        assert!(at(NOW + 1).is_ok());
        for moment in [0, NOW - 1, NOW] {
            let error = at(moment).expect_err("expired");
            assert!(matches!(error, InvalidCredential::Untimely(_)));
            let expected = format!("the token expired at {}", format_moment(moment));
            assert_eq!(error.message(), expected);
        }
    }

    #[test]
    fn a_wrong_entry_is_named_by_its_position_and_not_quoted() {
        let not_a_hash = format!(r#"{{"sha256:{}": "read"}}"#, &ABC[1..]);
        let twice = format!(r#"{{"abc": "read", "x": "read", "sha256:{ABC}": "admin"}}"#);
        for (setting, expected) in [
            (
                r#"{"good": "read", "geheim": "root"}"#,
                "entry 2 of CURFEW_TOKENS is wrong: its role is unknown; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"admin": "geheim"}"#,
                "entry 1 of CURFEW_TOKENS is wrong: its role is unknown; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"geheim": 5}"#,
                "entry 1 of CURFEW_TOKENS is wrong: its value is neither a role nor an object with \"roles\"; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"": "read"}"#,
                "entry 1 of CURFEW_TOKENS is wrong: its token is empty",
            ),
            (
                r#"{" geheim": "read"}"#,
                "entry 1 of CURFEW_TOKENS is wrong: its token begins or ends with a space",
            ),
            (
                r#"{"geheim": {}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"roles\" is missing: a list of read, start, decide, operate, admin",
            ),
            (
                r#"{"geheim": {"roles": []}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"roles\" is a role or a list of at least one; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"geheim": {"roles": ["read", 1]}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: its role is unknown; the roles are read, start, decide, operate, admin",
            ),
            (
                r#"{"tokens": {"geheim": "read"}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: it has an unknown field; the known ones are name, roles, workflows, expires_at",
            ),
            (
                r#"{"geheim": {"roles": "read", "name": ""}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"name\" is not a string of 1-256 characters without control characters",
            ),
            (
                r#"{"geheim": {"roles": "read", "expires_at": "2027-01-01"}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"expires_at\" is not a number of Unix milliseconds",
            ),
            (
                r#"{"geheim": {"roles": "read", "workflows": ["Order"]}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"workflows\" is not a list of 1-100 workflow ids, in which * stands for any characters",
            ),
            (
                r#"{"geheim": {"roles": "read", "workflows": []}}"#,
                "entry 1 of CURFEW_TOKENS is wrong: \"workflows\" is not a list of 1-100 workflow ids, in which * stands for any characters",
            ),
            (
                &not_a_hash,
                "entry 1 of CURFEW_TOKENS is wrong: after sha256: come the 64 hex digits of the token's hash",
            ),
            (
                &twice,
                "entry 3 of CURFEW_TOKENS is wrong: it has the token of entry 1",
            ),
            ("geheim", "CURFEW_TOKENS is not JSON: line 1, column 1"),
            (r#""geheim""#, "CURFEW_TOKENS is not a JSON object"),
            (r#"["geheim"]"#, "CURFEW_TOKENS is not a JSON object"),
            ("{}", "CURFEW_TOKENS has no entry"),
        ] {
            assert_eq!(message(setting), expected);
            assert!(!message(setting).contains("geheim"));
        }
        let many: Vec<String> = (0..=ENTRIES_MAX)
            .map(|number| format!(r#""token-{number}": "read""#))
            .collect();
        assert_eq!(
            message(&format!("{{{}}}", many.join(","))),
            "CURFEW_TOKENS has more than 200 entries"
        );
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("BEARER  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearerabc", None),
            ("Basic abc", None),
            ("", None),
        ] {
            assert_eq!(bearer(header), expected, "{header}");
        }
    }
}
