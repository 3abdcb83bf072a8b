//! The JWT of Cloudflare Access: its parts, and which of its claims must hold. The signature is verified by the caller, with
//! the key that `key_id` names.

use serde_json::Value;

use crate::api::auth::InvalidCredential;
use crate::api::auth::grant::is_caller_name;
use crate::base::base64url;
use crate::base::time::Millis;

/// Cookies and headers may be longer; assertions of Access have one to four KB.
pub const BYTES_MAX: usize = 16 << 10;
/// Clocks differ.
const LEEWAY_MS: Millis = 60_000;
const KEY_ID_BYTES_MAX: usize = 256;
/// The signature of a key of 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1024;
const GROUPS_MAX: usize = 1_000;

#[derive(Debug, PartialEq)]
pub struct Assertion {
    pub key_id: String,
    /// What the signature signs.
    pub signed: String,
    pub signature: Vec<u8>,
    pub claims: Claims,
}

#[derive(Debug, PartialEq)]
pub struct Claims {
    issuer: String,
    audiences: Vec<String>,
    expires_at: Millis,
    not_before: Option<Millis>,
    issued_at: Option<Millis>,
    pub member: Member,
}

/// The person or the service that Access has let in.
#[derive(Debug, PartialEq)]
pub struct Member {
    pub kind: MemberKind,
    pub groups: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub enum MemberKind {
    Person { email: String },
    ServiceToken { common_name: String },
}

impl Member {
    pub fn name(&self) -> &str {
        match &self.kind {
            MemberKind::Person { email } => email,
            MemberKind::ServiceToken { common_name } => common_name,
        }
    }
}

impl Assertion {
    pub fn parse(jwt: &str) -> Result<Assertion, InvalidCredential> {
        let malformed = || InvalidCredential::wrong("the assertion of Access is not a JWT");
        if jwt.len() > BYTES_MAX {
            let message = format!("the assertion of Access is longer than {BYTES_MAX} bytes");
            return Err(InvalidCredential::wrong(message));
        }
        let (signed, signature) = jwt.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
        let header = json_part(header).ok_or_else(malformed)?;
        // Checked before anything else is read: the algorithm is ours to choose, never the sender's.
        if header["alg"] != "RS256" {
            return Err(InvalidCredential::wrong(
                "the assertion of Access is not signed with RS256",
            ));
        }
        if header.get("crit").is_some() {
            return Err(InvalidCredential::wrong(
                "the assertion of Access has critical extensions, which are not known",
            ));
        }
        let key_id = header["kid"]
            .as_str()
            .filter(|id| (1..=KEY_ID_BYTES_MAX).contains(&id.len()));
        let key_id =
            key_id.ok_or_else(|| InvalidCredential::wrong("the assertion of Access names no key (kid)"))?;
        let signature = base64url::decode(signature).ok_or_else(malformed)?;
        if signature.is_empty() || signature.len() > SIGNATURE_BYTES_MAX {
            return Err(malformed());
        }
        Ok(Assertion {
            key_id: key_id.to_string(),
            signed: signed.to_string(),
            signature,
            claims: Claims::read(&json_part(claims).ok_or_else(malformed)?)?,
        })
    }
}

fn json_part(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_slice(&base64url::decode(text)?).ok()?;
    value.is_object().then_some(value)
}

impl Claims {
    fn read(claims: &Value) -> Result<Claims, InvalidCredential> {
        let missing = |name: &str| {
            InvalidCredential::wrong(format!("the assertion of Access has no valid claim \"{name}\""))
        };
        Ok(Claims {
            issuer: claims["iss"].as_str().ok_or_else(|| missing("iss"))?.to_string(),
            audiences: texts(&claims["aud"]).ok_or_else(|| missing("aud"))?,
            expires_at: moment(&claims["exp"]).ok_or_else(|| missing("exp"))?,
            not_before: optional_moment(claims, "nbf").ok_or_else(|| missing("nbf"))?,
            issued_at: optional_moment(claims, "iat").ok_or_else(|| missing("iat"))?,
            member: Member::read(claims)?,
        })
    }

    pub fn check(&self, issuer: &str, audience: &str, now: Millis) -> Result<(), InvalidCredential> {
        if self.issuer != issuer {
            return Err(InvalidCredential::wrong(
                "the assertion of Access is of another team",
            ));
        }
        if !self.audiences.iter().any(|other| other == audience) {
            return Err(InvalidCredential::wrong(
                "the assertion of Access is for another application",
            ));
        }
        self.check_time(now)
    }

    pub fn check_time(&self, now: Millis) -> Result<(), InvalidCredential> {
        if self.expires_at.saturating_add(LEEWAY_MS) <= now {
            return Err(InvalidCredential::untimely(
                "the assertion of Access has expired; sign in again",
            ));
        }
        let valid_from = self.not_before.max(self.issued_at);
        match valid_from.is_some_and(|moment| moment > now.saturating_add(LEEWAY_MS)) {
            true => Err(InvalidCredential::untimely(
                "the assertion of Access is not valid yet",
            )),
            false => Ok(()),
        }
    }
}

impl Member {
    fn read(claims: &Value) -> Result<Member, InvalidCredential> {
        let name = |claim: &str| claims[claim].as_str().filter(|name| is_caller_name(name));
        let kind = match (name("email"), name("common_name")) {
            (Some(email), _) => MemberKind::Person {
                email: email.to_string(),
            },
            (None, Some(common_name)) => MemberKind::ServiceToken {
                common_name: common_name.to_string(),
            },
            (None, None) => {
                return Err(InvalidCredential::wrong(
                    "the assertion of Access has neither an email nor the common_name of a service token",
                ));
            }
        };
        let lists = [&claims["groups"], &claims["custom"]["groups"]];
        let groups = lists.into_iter().filter_map(Value::as_array).flatten();
        Ok(Member {
            kind,
            groups: groups.take(GROUPS_MAX).flat_map(group_names).collect(),
        })
    }
}

/// Identity providers send groups as texts or as objects.
fn group_names(group: &Value) -> Vec<String> {
    let texts = match group {
        Value::String(_) => vec![Some(group)],
        _object => ["name", "email", "id"].map(|field| group.get(field)).to_vec(),
    };
    let texts = texts.into_iter().flatten().filter_map(Value::as_str);
    texts
        .filter(|text| !text.is_empty())
        .map(str::to_string)
        .collect()
}

/// One text, or a list of them.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => list
            .iter()
            .map(|text| text.as_str().map(str::to_string))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Seconds, which may have a fraction.
fn moment(value: &Value) -> Option<Millis> {
    let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0)?;
    Some((seconds * 1_000.0) as Millis)
}

fn optional_moment(claims: &Value, name: &str) -> Option<Option<Millis>> {
    match claims.get(name) {
        None => Some(None),
        Some(value) => moment(value).map(Some),
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    const NOW_S: u64 = 1_800_000_000;
    const NOW: Millis = NOW_S * 1_000;

    /// The encoder that the code does not need.
    pub fn encode(bytes: &[u8]) -> String {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for index in 0..=group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * index) & 63) as usize] as char);
            }
        }
        text
    }

    pub fn jwt(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| encode(value.to_string().as_bytes());
        format!("{}.{}.{}", part(header), part(claims), encode(b"signature"))
    }

    fn header() -> Value {
        json!({"alg": "RS256", "kid": "k1", "typ": "JWT"})
    }

    fn claims() -> Value {
        json!({"iss": "https://t.cloudflareaccess.com", "aud": ["app"], "exp": NOW_S + 60, "iat": NOW_S, "nbf": NOW_S, "email": "ada@x.com"})
    }

    fn with(mut value: Value, field: &str, other: Value) -> Value {
        value[field] = other;
        value
    }

    fn without(mut value: Value, field: &str) -> Value {
        value.as_object_mut().expect("an object").remove(field);
        value
    }

    fn check(header: &Value, claims: &Value) -> Result<Member, String> {
        let assertion =
            Assertion::parse(&jwt(header, claims)).map_err(|error| error.message().to_string())?;
        let checked = assertion
            .claims
            .check("https://t.cloudflareaccess.com", "app", NOW);
        checked.map_err(|error| error.message().to_string())?;
        Ok(assertion.claims.member)
    }

    #[test]
    fn parts() {
        let text = jwt(&header(), &claims());
        let assertion = Assertion::parse(&text).expect("valid");
        assert_eq!(assertion.key_id, "k1");
        assert_eq!(assertion.signature, b"signature");
        assert_eq!(format!("{}.{}", assertion.signed, encode(b"signature")), text);
        assert_eq!(check(&header(), &claims()).expect("valid").name(), "ada@x.com");
    }

    #[test]
    fn headers_that_are_refused() {
        for (field, value, expected) in [
            ("alg", json!("none"), "RS256"),
            ("alg", json!("HS256"), "RS256"),
            ("alg", json!("rs256"), "RS256"),
            ("alg", json!(["RS256"]), "RS256"),
            ("alg", json!(null), "RS256"),
            ("kid", json!(null), "kid"),
            ("kid", json!(""), "kid"),
            ("kid", json!(7), "kid"),
            ("kid", json!("k".repeat(257)), "kid"),
            ("crit", json!(["exp"]), "critical"),
        ] {
            let message = check(&with(header(), field, value.clone()), &claims()).expect_err("refused");
            assert!(message.contains(expected), "{field} {value}: {message}");
        }
    }

    #[test]
    fn claims_that_are_refused() {
        for (field, value, expected) in [
            ("iss", json!("https://u.cloudflareaccess.com"), "another team"),
            ("iss", json!("https://t.cloudflareaccess.com/"), "another team"),
            ("aud", json!("other"), "another application"),
            ("aud", json!([]), "another application"),
            ("aud", json!(["app", 7]), "\"aud\""),
            ("exp", json!(NOW_S - 60), "expired"),
            ("exp", json!(-1), "\"exp\""),
            ("exp", json!("2100"), "\"exp\""),
            ("nbf", json!(NOW_S + 61), "not valid yet"),
            ("iat", json!(NOW_S + 61), "not valid yet"),
            ("nbf", json!(1e300), "not valid yet"),
            ("nbf", json!("soon"), "\"nbf\""),
            ("email", json!(""), "neither"),
            ("email", json!("a\nb"), "neither"),
        ] {
            let message = check(&header(), &with(claims(), field, value.clone())).expect_err("refused");
            assert!(message.contains(expected), "{field} {value}: {message}");
        }
        for field in ["iss", "aud", "exp", "email"] {
            assert!(
                check(&header(), &without(claims(), field)).is_err(),
                "without {field}"
            );
        }
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        for (field, value) in [
            ("exp", json!(NOW_S - 59)),
            ("nbf", json!(NOW_S + 60)),
            ("iat", json!(NOW_S + 60)),
            ("exp", json!(1e300)),
            ("exp", json!(NOW_S as f64 + 0.5)),
        ] {
            assert!(
                check(&header(), &with(claims(), field, value.clone())).is_ok(),
                "{field} {value}"
            );
        }
        for field in ["nbf", "iat"] {
            assert!(
                check(&header(), &without(claims(), field)).is_ok(),
                "without {field}"
            );
        }
    }

    #[test]
    fn one_audience_may_be_a_text() {
        assert!(check(&header(), &with(claims(), "aud", json!("app"))).is_ok());
        assert!(check(&header(), &with(claims(), "aud", json!(["other", "app"]))).is_ok());
    }

    #[test]
    fn groups_and_service_tokens() {
        let groups = json!(["ops", {"name": "Dev", "email": "dev@x.com", "id": "7"}, 5, {"other": 1}, ""]);
        let claims_with_groups = with(
            with(claims(), "groups", groups),
            "custom",
            json!({"groups": ["legal"]}),
        );
        let member = check(&header(), &claims_with_groups).expect("valid");
        assert_eq!(member.groups, ["ops", "Dev", "dev@x.com", "7", "legal"]);
        let service = with(without(claims(), "email"), "common_name", json!("abc.access"));
        let member = check(&header(), &service).expect("valid");
        assert_eq!(member.name(), "abc.access");
        assert!(matches!(member.kind, MemberKind::ServiceToken { .. }));
    }

    #[test]
    fn texts_that_are_no_jwt() {
        let valid = jwt(&header(), &claims());
        let long = format!("{valid}{}", "A".repeat(BYTES_MAX));
        for text in [
            "",
            ".",
            "..",
            "a.b",
            "a.b.c",
            "e30.e30.e30",
            &long,
            &valid[1..],
            &format!("{valid}.AAAA"),
            &format!("{valid}="),
        ] {
            assert!(Assertion::parse(text).is_err(), "{text}");
        }
        let unsigned = valid
            .rsplit_once('.')
            .map(|(signed, _)| format!("{signed}."))
            .expect("a dot");
        assert!(Assertion::parse(&unsigned).is_err());
    }
}
