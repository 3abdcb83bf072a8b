//! The capability of a callback: the part of its URL that proves the right to deliver the result of one attempt.
//!
//! The proof is made with the secret of the run. Secrets are derived: the first run's from the deployment's key and the run's
//! id, a child's from its parent's secret and the child's id, which begins with the parent's id. So the API computes any run's
//! secret from the key and the id alone and refuses a wrong capability without waking an object, while an object knows no
//! secrets but its own and its descendants'. The object checks the proof itself, with the secret in its header.

use crate::base::hmac::{hex_128, hmac_sha256};
use crate::base::time::Millis;
use crate::base::{constant_time, ids};
use crate::run::token::TokenId;
use sha2::{Digest, Sha256};

/// The right to deliver the result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    pub run_id: String,
    pub token_id: String,
    pub epoch: u64,
    pub proof: String,
}

impl Capability {
    /// `None` if no run ever issued it.
    pub fn parse(text: &str) -> Option<Capability> {
        // From the right: the id of a child run contains the separator.
        let mut parts = text.rsplitn(4, '~');
        let (proof, epoch) = (parts.next()?, parts.next()?.parse().ok()?);
        let (token_id, run_id) = (parts.next()?, parts.next()?);
        let is_ours = ids::is_any_run_id(run_id) && TokenId::parse(token_id).is_some();
        let capability = Capability {
            run_id: run_id.to_string(),
            token_id: token_id.to_string(),
            epoch,
            proof: proof.to_string(),
        };
        // Each capability has one spelling: an epoch has no sign and no leading zeros.
        (is_ours && capability.text() == text).then_some(capability)
    }

    pub fn text(&self) -> String {
        format!("{}~{}~{}~{}", self.run_id, self.token_id, self.epoch, self.proof)
    }
}

/// The secret that proves the capabilities of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackSecret {
    /// From the deployment's key, as `CallbackKey::secret_of` has it.
    Derived(String),
    /// Of a run whose start came without a secret, from an earlier build or from a run that has a random one. Only the run's
    /// object can check its proofs.
    Random(String),
}

impl CallbackSecret {
    /// The secret for the start of a child.
    pub fn of_child(&self, run_id: &str) -> Option<String> {
        match self {
            CallbackSecret::Derived(secret) => Some(derive(secret, "child", run_id)),
            CallbackSecret::Random(_) => None,
        }
    }

    /// The proof of an attempt's capability. A run id may be used again once its run is deleted, and has the same secret
    /// then: the moment of the start tells the two runs apart.
    pub(in crate::run) fn proof(&self, started_at: Millis, token_id: &str, epoch: u64) -> String {
        match self {
            CallbackSecret::Derived(secret) => {
                let mac = derive(secret, "proof", &format!("{started_at:x}:{token_id}:{epoch}"));
                format!("{started_at:x}-{mac}")
            }
            CallbackSecret::Random(secret) => proof_of_earlier_builds(secret, token_id, epoch),
        }
    }

    pub(in crate::run) fn proves(&self, started_at: Millis, capability: &Capability) -> bool {
        let expected = self.proof(started_at, &capability.token_id, capability.epoch);
        constant_time::eq(expected.as_bytes(), capability.proof.as_bytes())
    }
}

/// Hashed twice, so that the proof of a longer message cannot be computed from it. It is not HMAC: capabilities that earlier
/// builds issued would not verify.
fn proof_of_earlier_builds(secret: &str, token_id: &str, epoch: u64) -> String {
    let inner = Sha256::digest(format!("{secret}:{token_id}:{epoch}"));
    let outer = Sha256::new().chain_update(secret).chain_update(inner);
    hex_128(&outer.finalize().into())
}

/// `purpose` keeps the uses of one secret apart: no proof is ever the secret of a child.
fn derive(secret: &str, purpose: &str, text: &str) -> String {
    hex_128(&hmac_sha256(
        secret.as_bytes(),
        format!("{purpose}:{text}").as_bytes(),
    ))
}

/// The deployment's key, from which the secrets of all runs are derived.
#[derive(Clone)]
pub struct CallbackKey(String);

impl CallbackKey {
    /// 256 bits as hex digits. Anything shorter could be guessed.
    pub fn parse(text: &str) -> Option<CallbackKey> {
        let is_key = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| CallbackKey(text.to_ascii_lowercase()))
    }

    /// The secret of a run, with or without ancestors.
    pub fn secret_of(&self, run_id: &str) -> String {
        // `run~t3~2~t1`: the second attempt of token t3 called a run whose token t1 called this one.
        let mut ancestors = run_id.match_indices("~t").map(|(end, _)| &run_id[..end]);
        let Some(root) = ancestors.next() else {
            return derive(&self.0, "run", run_id);
        };
        ancestors
            .chain([run_id])
            .fold(derive(&self.0, "run", root), |secret, id| {
                derive(&secret, "child", id)
            })
    }

    /// Whether a run whose secret is derived from this key issued the capability.
    pub fn proves(&self, capability: &Capability) -> bool {
        let started_at = capability.proof.split_once('-').map(|(at, _)| at);
        let Some(Ok(started_at)) = started_at.map(|at| Millis::from_str_radix(at, 16)) else {
            return false;
        };
        let secret = CallbackSecret::Derived(self.secret_of(&capability.run_id));
        secret.proves(started_at, capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: &str) -> CallbackKey {
        CallbackKey::parse(&digit.repeat(64)).expect("64 hex digits")
    }

    fn issued(secret: &CallbackSecret, run_id: &str, started_at: Millis) -> Capability {
        Capability {
            run_id: run_id.into(),
            token_id: "t3".into(),
            epoch: 2,
            proof: secret.proof(started_at, "t3", 2),
        }
    }

    /// Persisted in headers and known to peers: both may not change between builds.
    #[test]
    fn secrets_and_proofs_stay_as_they_are() {
        let secret = CallbackSecret::Derived(key("a").secret_of("run-1"));
        assert_eq!(
            secret,
            CallbackSecret::Derived("fcd5fddd248eab6cfaa933d2825f2c60".into())
        );
        assert_eq!(
            issued(&secret, "run-1", 1_700_000_000_000).text(),
            "run-1~t3~2~18bcfe56800-8ff6aa003885677de7bf62e6c0e9c572"
        );
        let random = CallbackSecret::Random("nobody guesses this".into());
        assert_eq!(
            issued(&random, "run-1", 1_700_000_000_000).proof,
            "7a9ada99336f7b3070fb4b49028bd6df"
        );
    }

    #[test]
    fn every_run_below_a_start_has_the_secret_that_the_key_gives_its_id() {
        let mut secret = CallbackSecret::Derived(key("a").secret_of("a.t9-t1"));
        // Second attempts have their number in the id.
        for id in ["a.t9-t1~t3~2", "a.t9-t1~t3~2~t1", "a.t9-t1~t3~2~t1~t11~10"] {
            secret = CallbackSecret::Derived(secret.of_child(id).expect("it is derived"));
            assert_eq!(secret, CallbackSecret::Derived(key("a").secret_of(id)), "{id}");
            assert!(key("a").proves(&issued(&secret, id, 1_000)), "{id}");
        }
    }

    #[test]
    fn a_proof_is_right_for_its_own_attempt_of_its_own_run_alone() {
        let secret = CallbackSecret::Derived(key("a").secret_of("run-1"));
        let right = issued(&secret, "run-1", 1_000);
        let with = |change: fn(&mut Capability)| {
            let mut changed = right.clone();
            change(&mut changed);
            changed
        };
        assert!(key("A").proves(&right));
        assert!(!key("b").proves(&right));
        for wrong in [
            with(|it| it.run_id = "run-2".into()),
            with(|it| it.run_id = "run-1~t1".into()),
            with(|it| it.token_id = "t4".into()),
            with(|it| it.epoch = 3),
            with(|it| it.proof.replace_range(..3, "3e9")),
            with(|it| it.proof.insert(0, '0')),
            with(|it| it.proof = it.proof.to_ascii_uppercase()),
            with(|it| it.proof.truncate(20)),
            with(|it| it.proof = "-".into()),
            with(|it| it.proof = "x-y".into()),
            with(|it| it.proof = format!("{}-0", "f".repeat(17))),
        ] {
            assert!(!key("a").proves(&wrong), "{wrong:?}");
        }
        // The object of a later run with the same id refuses it.
        assert!(secret.proves(1_000, &right));
        assert!(!secret.proves(1_001, &right));
    }

    #[test]
    fn a_random_secret_is_for_the_object_alone() {
        let secret = CallbackSecret::Random("nobody guesses this".into());
        let capability = issued(&secret, "run-1", 1_000);
        assert!(!key("a").proves(&capability));
        assert!(secret.proves(1_000, &capability));
        assert_eq!(secret.of_child("run-1~t1"), None);
    }

    #[test]
    fn a_key_has_256_bits() {
        for text in ["", "a", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64)] {
            assert!(CallbackKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_capability_has_one_spelling() {
        for text in ["r~t1~1~p", "a.b~t1~2~t7~10~1-f", "r~t1~1~"] {
            let capability = Capability::parse(text).expect(text);
            assert_eq!(capability.text(), text);
        }
        for text in [
            "",
            "~~~",
            "r~t1~1",
            "r~t1~+1~p",
            "r~t1~01~p",
            "r~t01~1~p",
            "~t1~1~p",
            "r~x~1~p",
        ] {
            assert_eq!(Capability::parse(text), None, "{text}");
        }
    }
}
