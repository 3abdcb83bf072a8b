//! Verifies assertions of Cloudflare Access: fetches the keys of the team, and lets the platform check the signature.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;

use crate::api::auth::InvalidCredential;
use crate::api::auth::access::assertion::{Assertion, Claims};
use crate::api::auth::access::keys::{ANSWER_BYTES_MAX, FETCH_TIMEOUT_MS, Key, Keys, Lookup};
use crate::api::auth::access::{Access, fingerprint};
use crate::api::error::Error;
use crate::base::lru_cache::LruCache;
use crate::base::time::Millis;
use crate::worker::platform::http_client::{Request, internet};
use crate::worker::platform::{self, deadline, rs256};

/// The approximate size of the claims of an assertion in memory.
const CLAIMS_BYTES: usize = 1_024;

/// What an isolate knows of a team.
#[derive(Default)]
pub struct Verifier {
    keys: RefCell<Keys>,
    /// Claims of verified assertions. Most requests of a person carry the same one.
    verified: RefCell<LruCache<Claims>>,
}

pub enum AccessError {
    Invalid(InvalidCredential),
    Unavailable(Error),
}

impl From<InvalidCredential> for AccessError {
    fn from(invalid: InvalidCredential) -> AccessError {
        AccessError::Invalid(invalid)
    }
}

impl Verifier {
    /// The claims of the assertion, if they hold and its signature is right.
    pub async fn verify(&self, access: &Access, jwt: &str, now: Millis) -> Result<Rc<Claims>, AccessError> {
        let fingerprint = fingerprint(jwt);
        let known = self.verified.borrow_mut().get(&fingerprint);
        if let Some(claims) = known {
            claims.check_time(now)?;
            return Ok(claims);
        }
        let assertion = access.read(jwt, now)?;
        let key = self.key(access, &assertion.key_id, now).await?;
        if !is_signed(&assertion, &key).await? {
            return Err(InvalidCredential::wrong("the signature of the assertion of Access is wrong").into());
        }
        let claims = Rc::new(assertion.claims);
        let mut verified = self.verified.borrow_mut();
        verified.insert(&fingerprint, &claims, CLAIMS_BYTES);
        Ok(claims)
    }

    async fn key(&self, access: &Access, id: &str, now: Millis) -> Result<Rc<Key>, AccessError> {
        let mut lookup = self.keys.borrow().find(id, now);
        let mut is_current = true;
        if lookup == Lookup::Fetch {
            is_current = self.fetch(access).await;
            lookup = self.keys.borrow().find(id, platform::now());
        }
        match lookup {
            Lookup::Found(key) => Ok(key),
            Lookup::Unknown if is_current => Err(InvalidCredential::wrong(
                "the assertion of Access is signed with a key that the team does not have",
            )
            .into()),
            Lookup::Unknown | Lookup::Fetch | Lookup::Unavailable => {
                Err(AccessError::Unavailable(unavailable()))
            }
        }
    }

    /// Whether it succeeded. Requests cannot wait for what another one fetches, so that several may fetch at once after a start.
    async fn fetch(&self, access: &Access) -> bool {
        let url = access.keys_url();
        let answer = deadline::within(FETCH_TIMEOUT_MS, get(&url)).await;
        let answer = answer.unwrap_or_else(|| Err("no answer in time".into()));
        let mut keys = self.keys.borrow_mut();
        let is_usable = keys.receive(answer.as_deref().ok(), platform::now());
        if is_usable {
            // What a withdrawn key has signed is verified again.
            *self.verified.borrow_mut() = LruCache::default();
            return true;
        }
        let message = answer
            .err()
            .unwrap_or_else(|| "the answer has no keys for RS256".into());
        platform::log(
            json!({"level": "error", "event": "access_unavailable", "url": url, "message": message}),
        );
        false
    }
}

async fn get(url: &str) -> Result<Vec<u8>, String> {
    let request = Request {
        url,
        method: "GET",
        headers: &[],
        body: None,
    };
    let response = request.send(&internet()).await?;
    if response.status() != 200 {
        return Err(format!("the answer has status {}", response.status()));
    }
    let mut bytes = Vec::new();
    response.read_into(&mut bytes, ANSWER_BYTES_MAX).await?;
    Ok(bytes)
}

async fn is_signed(assertion: &Assertion, key: &Key) -> Result<bool, AccessError> {
    let verified = rs256::verify(&key.jwk, &assertion.signed, &assertion.signature).await;
    verified.map_err(|error| {
        platform::log_error("access_unavailable", &platform::message_of(&error));
        AccessError::Unavailable(unavailable())
    })
}

fn unavailable() -> Error {
    Error::new(
        503,
        "access_unavailable",
        "the keys of Cloudflare Access could not be fetched, so that no assertion can be checked; repeat the request, and look at \
         CURFEW_ACCESS_TEAM if it fails again",
    )
}
