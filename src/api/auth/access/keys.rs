//! The public keys of a team of Cloudflare Access, and when they are fetched.
//!
//! Access replaces its keys every few weeks. An assertion that names an unknown key may be signed with a new one, or be made up:
//! the keys are fetched again, but not for every such request.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::base::base64url;
use crate::base::time::Millis;

/// An answer of Access has two keys and their certificates, a few KB.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
pub const FETCH_TIMEOUT_MS: u64 = 5_000;
/// How often an unknown key, or keys that are old, lead to a request.
const FETCH_AGAIN_MS: Millis = 60_000;
/// How long no request is made after one that failed, where no keys are known.
const FAILED_MS: Millis = 5_000;
/// Keys that Access has withdrawn are no longer used after this.
const FRESH_MS: Millis = 3_600_000;
const KEYS_MAX: usize = 20;
/// 2048 bits.
const MODULUS_BYTES_MIN: usize = 256;

#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<Rc<Key>>,
    /// When they were last received.
    received_at: Option<Millis>,
    /// When they were last fetched although some were known.
    fetched_again_at: Option<Millis>,
    /// When they could not be fetched while none were known.
    failed_at: Option<Millis>,
}

#[derive(Debug, PartialEq)]
pub struct Key {
    pub id: String,
    /// The key as a JWK with nothing but what it needs.
    pub jwk: String,
}

#[derive(Debug, PartialEq)]
pub enum Lookup {
    Found(Rc<Key>),
    /// Fetch them and look again.
    Fetch,
    /// The team has no such key.
    Unknown,
    /// They could not be fetched a moment ago.
    Unavailable,
}

impl Keys {
    pub fn find(&self, id: &str, now: Millis) -> Lookup {
        let since = |moment: Option<Millis>| moment.map(|moment| now.saturating_sub(moment));
        let may_fetch_again = since(self.fetched_again_at).is_none_or(|passed| passed >= FETCH_AGAIN_MS);
        let Some(age) = since(self.received_at) else {
            return match since(self.failed_at).is_some_and(|passed| passed < FAILED_MS) {
                true => Lookup::Unavailable,
                false => Lookup::Fetch,
            };
        };
        match self.keys.iter().find(|key| key.id == id) {
            Some(_) | None if age >= FRESH_MS && may_fetch_again => Lookup::Fetch,
            None if may_fetch_again => Lookup::Fetch,
            Some(key) => Lookup::Found(Rc::clone(key)),
            None => Lookup::Unknown,
        }
    }

    /// Takes the answer of the team, and returns whether it has keys. If it has none, those that are known stay.
    pub fn receive(&mut self, answer: Option<&[u8]>, now: Millis) -> bool {
        if self.received_at.is_some() {
            self.fetched_again_at = Some(now);
        }
        let Some(keys) = answer.and_then(parse) else {
            self.failed_at = Some(now);
            return false;
        };
        self.keys = keys;
        self.received_at = Some(now);
        true
    }
}

/// The keys of a JWK set that can verify RS256. `None` if there is none.
fn parse(answer: &[u8]) -> Option<Vec<Rc<Key>>> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let keys = answer["keys"].as_array()?.iter().filter_map(read_key);
    let keys: Vec<Rc<Key>> = keys.take(KEYS_MAX).map(Rc::new).collect();
    (!keys.is_empty()).then_some(keys)
}

fn read_key(key: &Value) -> Option<Key> {
    let is_absent_or = |field: &str, expected: &str| key.get(field).is_none_or(|value| value == expected);
    if key["kty"] != "RSA" || !is_absent_or("alg", "RS256") || !is_absent_or("use", "sig") {
        return None;
    }
    let (id, modulus, exponent) = (key["kid"].as_str()?, key["n"].as_str()?, key["e"].as_str()?);
    if base64url::decode(modulus)?.len() < MODULUS_BYTES_MIN {
        return None;
    }
    let jwk = json!({"kty": "RSA", "alg": "RS256", "n": modulus, "e": exponent, "ext": true});
    Some(Key {
        id: id.to_string(),
        jwk: jwk.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Millis = 1_800_000_000_000;

    /// 256 bytes.
    fn modulus() -> String {
        "u".repeat(341) + "g"
    }

    fn answer(ids: &[&str]) -> Vec<u8> {
        let modulus = modulus();
        let keys: Vec<Value> = ids
            .iter()
            .map(|id| json!({"kid": id, "kty": "RSA", "alg": "RS256", "use": "sig", "n": modulus, "e": "AQAB"}))
            .collect();
        json!({"keys": keys, "public_cert": {}}).to_string().into_bytes()
    }

    fn outcome(keys: &Keys, id: &str, now: Millis) -> String {
        match keys.find(id, now) {
            Lookup::Found(key) => key.id.clone(),
            Lookup::Fetch => "fetch".into(),
            Lookup::Unknown => "unknown".into(),
            Lookup::Unavailable => "unavailable".into(),
        }
    }

    #[test]
    fn the_first_request_fetches_and_later_ones_do_not() {
        let mut keys = Keys::default();
        assert_eq!(outcome(&keys, "a", T), "fetch");
        keys.receive(Some(&answer(&["a", "b"])), T);
        assert_eq!(outcome(&keys, "a", T), "a");
        assert_eq!(outcome(&keys, "b", T + FRESH_MS - 1), "b");
    }

    #[test]
    fn an_unknown_key_is_looked_for_once_a_minute() {
        let mut keys = Keys::default();
        keys.receive(Some(&answer(&["a"])), T);
        assert_eq!(outcome(&keys, "new", T + 1), "fetch");
        keys.receive(Some(&answer(&["a"])), T + 1);
        assert_eq!(outcome(&keys, "new", T + 1), "unknown");
        assert_eq!(outcome(&keys, "new", T + FETCH_AGAIN_MS), "unknown");
        assert_eq!(outcome(&keys, "new", T + 1 + FETCH_AGAIN_MS), "fetch");
        keys.receive(Some(&answer(&["a", "new"])), T + 1 + FETCH_AGAIN_MS);
        assert_eq!(outcome(&keys, "new", T + 1 + FETCH_AGAIN_MS), "new");
        assert_eq!(outcome(&keys, "other", T + 2 + FETCH_AGAIN_MS), "unknown");
    }

    #[test]
    fn withdrawn_keys_are_forgotten_within_an_hour() {
        let mut keys = Keys::default();
        keys.receive(Some(&answer(&["a"])), T);
        assert_eq!(outcome(&keys, "a", T + FRESH_MS), "fetch");
        keys.receive(Some(&answer(&["b"])), T + FRESH_MS);
        assert_eq!(outcome(&keys, "a", T + FRESH_MS), "unknown");
    }

    #[test]
    fn known_keys_outlast_an_outage() {
        let mut keys = Keys::default();
        keys.receive(Some(&answer(&["a"])), T);
        keys.receive(None, T + FRESH_MS);
        assert_eq!(outcome(&keys, "a", T + FRESH_MS), "a");
        assert_eq!(outcome(&keys, "a", T + FRESH_MS + FETCH_AGAIN_MS), "fetch");
    }

    #[test]
    fn without_keys_a_failed_request_is_not_repeated_at_once() {
        let mut keys = Keys::default();
        keys.receive(None, T);
        assert_eq!(outcome(&keys, "a", T + FAILED_MS - 1), "unavailable");
        assert_eq!(outcome(&keys, "a", T + FAILED_MS), "fetch");
    }

    #[test]
    fn only_keys_for_rs256_are_taken() {
        let modulus = modulus();
        let valid = json!({"kid": "a", "kty": "RSA", "n": modulus, "e": "AQAB"});
        let key = |field: &str, value: Value| {
            let mut key = valid.clone();
            key[field] = value;
            read_key(&key)
        };
        assert!(read_key(&valid).is_some());
        for (field, value) in [
            ("kty", json!("oct")),
            ("kty", json!("EC")),
            ("alg", json!("RS512")),
            ("use", json!("enc")),
            ("n", json!("short")),
            ("n", json!("u".repeat(300))),
            ("n", json!(7)),
            ("e", json!(null)),
            ("kid", json!(null)),
        ] {
            assert_eq!(key(field, value.clone()), None, "{field} {value}");
        }
        for answer in [
            "",
            "[]",
            "{}",
            r#"{"keys": []}"#,
            r#"{"keys": [{}]}"#,
            r#"{"keys": 5}"#,
        ] {
            assert!(parse(answer.as_bytes()).is_none(), "{answer}");
        }
    }
}
