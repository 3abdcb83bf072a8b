//! Credentials and the settings that decide about them. Nothing that is made up may be accepted, and no message may quote a
//! token.

use curfew::api::auth::access::keys::Keys;
use curfew::api::auth::access::{Access, assertion_of};
use curfew::api::auth::lockout::{Address, Lockout};
use curfew::api::auth::{Credential, RequestHead, Role, SettingTexts, Settings};
use serde_json::Value;
use url::Url;

use super::fuzz;

const NOW: u64 = 1_800_000_000_000;
/// The hash of a token that no corpus contains. All tokens of the corpus contain `s3cr3t`.
const TOKENS: &str =
    r#"{"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "admin"}"#;
const MARK: &str = "s3cr3t";

/// Lines `name: value`.
struct Input(Vec<(String, String)>);

impl Input {
    fn parse(bytes: &[u8]) -> Input {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        Input(
            lines
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.clone())
    }

    fn settings(&self) -> SettingTexts {
        SettingTexts {
            tokens: self.get("tokens"),
            development: self.get("dev"),
            access_team: self.get("team"),
            access_audience: self.get("aud"),
            access_roles: self.get("roles"),
        }
    }

    /// A JWT of the JSON texts `header` and `claims`, so that mutations reach what is inside of it.
    fn jwt(&self) -> Option<String> {
        let part = |name| Some(encode(self.get(name)?.as_bytes()));
        Some(format!("{}.{}.c2lnbmF0dXJl", part("header")?, part("claims")?))
    }
}

fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |index: usize| ALPHABET[(bits >> (18 - 6 * index) & 63) as usize] as char;
        text.extend((0..=group.len()).map(digit));
    }
    text
}

#[test]
fn credentials() {
    let fixed = Settings::parse(&SettingTexts {
        tokens: Some(TOKENS.into()),
        ..SettingTexts::default()
    });
    let fixed = fixed.expect("valid");
    fuzz("credentials", |bytes| {
        let input = Input::parse(bytes);
        let texts = input.settings();
        let settings = Settings::parse(&texts);
        if let Err(error) = &settings {
            assert_eq!((error.status, error.code), (503, "auth_not_configured"));
            assert!(!error.message.contains(MARK), "{}", error.message);
        }
        for settings in [&fixed].into_iter().chain(&settings) {
            check_request(&input, settings);
        }
        let access = Access::parse(
            texts.access_team.as_deref(),
            texts.access_audience.as_deref(),
            texts.access_roles.as_deref(),
        );
        if let Ok(Some(access)) = access {
            let assertions = [input.jwt(), input.get("assertion")];
            assertions
                .iter()
                .flatten()
                .for_each(|jwt| check_assertion(&access, jwt));
        }
        let mut keys = Keys::default();
        keys.receive(input.get("keys").as_deref().map(str::as_bytes), NOW);
        let _ = keys.find("k1", NOW);
        if let Some(address) = input.get("address").as_deref().and_then(Address::parse) {
            let mut lockout = Lockout::default();
            (0..10).for_each(|_| lockout.count_wrong(address, NOW));
            assert!(lockout.check(address, NOW).is_err());
        }
    });
}

/// No made-up token is known; without a setting nothing passes.
fn check_request(input: &Input, settings: &Settings) {
    let url = input.get("url").and_then(|url| Url::parse(&url).ok());
    let url = url.unwrap_or_else(|| Url::parse("http://localhost:8787/v1/runs").expect("a URL"));
    let method = input.get("method").unwrap_or_else(|| "GET".into());
    let head = RequestHead {
        method: &method,
        url: &url,
        header: &|name| input.get(name),
    };
    match settings.credential(&head) {
        Ok(None) => {
            assert_eq!(input.get("dev").as_deref().map(str::trim), Some("on"));
            let origin = input
                .get("origin")
                .unwrap_or_else(|| url.origin().ascii_serialization());
            assert_eq!(origin, url.origin().ascii_serialization());
            assert!(["localhost", "127.0.0.1", "[::1]"].contains(&url.host_str().unwrap_or_default()));
        }
        Ok(Some(Credential::Token(token))) => {
            let known = input
                .get("tokens")
                .is_some_and(|setting| setting.contains(&token));
            if let Ok(identity) = settings.identify(&token, NOW) {
                assert!(known, "the token {token} is not in the setting");
                assert!(identity.roles.contains(Role::Read));
            }
        }
        Ok(Some(Credential::Assertion(jwt))) => {
            assert_eq!(assertion_of(&head), Some(jwt));
        }
        Err(error) => assert!([401, 403, 415, 503].contains(&error.status), "{error:?}"),
    }
}

/// The claims that are used are those that are signed, and the algorithm is RS256.
fn check_assertion(access: &Access, jwt: &str) {
    let Ok(assertion) = access.read(jwt, NOW) else {
        return;
    };
    assert!(jwt.starts_with(&format!("{}.", assertion.signed)));
    let (header, claims) = assertion.signed.split_once('.').expect("two parts");
    let decoded = |text: &str| -> Value {
        let bytes = curfew::base::base64url::decode(text).expect("it was decoded before");
        serde_json::from_slice(&bytes).expect("it was parsed before")
    };
    assert_eq!(decoded(header)["alg"], "RS256");
    let claims = decoded(claims);
    let name = assertion.claims.member.name();
    assert!(claims["email"] == name || claims["common_name"] == name);
    assert!(
        claims["exp"]
            .as_f64()
            .is_some_and(|exp| exp * 1_000.0 + 60_000.0 > NOW as f64)
    );
    for role in Role::ALL {
        if let Ok(identity) = access.identity(&assertion.claims.member, role) {
            assert!(identity.roles.contains(role) && identity.caller.name.as_deref() == Some(name));
        }
    }
}

/// The target would find little if no input passed the first checks.
#[test]
fn assertions_of_the_corpus_are_read() {
    let read = super::files("credentials").into_iter().filter(|(_, bytes)| {
        let input = Input::parse(bytes);
        let texts = input.settings();
        let access = Access::parse(
            texts.access_team.as_deref(),
            texts.access_audience.as_deref(),
            texts.access_roles.as_deref(),
        );
        match (access, input.jwt()) {
            (Ok(Some(access)), Some(jwt)) => access.read(&jwt, NOW).is_ok(),
            _ => false,
        }
    });
    let names: Vec<String> = read.map(|(name, _)| name).collect();
    assert_eq!(names, ["access", "service_token"]);
}
