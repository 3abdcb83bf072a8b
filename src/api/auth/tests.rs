use url::Url;

use super::*;

const NOW: Millis = 1_800_000_000_000;

fn texts(tokens: Option<&str>, development: Option<&str>, access: bool) -> SettingTexts {
    let access = |text: &str| access.then(|| text.to_string());
    SettingTexts {
        tokens: tokens.map(str::to_string),
        development: development.map(str::to_string),
        access_team: access("acme"),
        access_audience: access("app"),
        access_roles: access(r#"{"@x.com": "read"}"#),
    }
}

/// The credential, or the status and the code of the refusal.
fn presented(texts: &SettingTexts, method: &str, headers: &[(&str, &str)]) -> String {
    let url = Url::parse("http://localhost:8787/v1/runs").expect("a URL");
    let header = |name: &str| {
        let found = headers.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.to_string())
    };
    let head = RequestHead {
        method,
        url: &url,
        header: &header,
    };
    match Settings::parse(texts).and_then(|settings| settings.credential(&head)) {
        Ok(Some(credential)) => format!("{credential:?}"),
        Ok(None) => "none is needed".into(),
        Err(error) => format!("{} {}", error.status, error.code),
    }
}

const TOKENS: Option<&str> = Some(r#"{"t": "read"}"#);
const LOCAL: (&str, &str) = ("host", "localhost:8787");
const BEARER: (&str, &str) = ("authorization", "Bearer t");
const JWT: (&str, &str) = ("cf-access-jwt-assertion", "a.b.c");

#[test]
fn without_a_setting_nothing_is_answered() {
    for development in [None, Some(""), Some("off"), Some("ON"), Some("true")] {
        for headers in [&[LOCAL][..], &[LOCAL, BEARER, JWT]] {
            let outcome = presented(&texts(None, development, false), "GET", headers);
            assert_eq!(outcome, "503 auth_not_configured");
        }
    }
    let blank = texts(Some(" "), None, false);
    assert_eq!(presented(&blank, "GET", &[LOCAL]), "503 auth_not_configured");
}

#[test]
fn an_invalid_setting_admits_no_request() {
    for development in [None, Some("on")] {
        let invalid = texts(Some("nonsense"), development, false);
        assert_eq!(
            presented(&invalid, "GET", &[LOCAL, BEARER]),
            "503 auth_not_configured"
        );
        let invalid = SettingTexts {
            access_team: Some("acme".into()),
            ..texts(TOKENS, development, false)
        };
        assert_eq!(
            presented(&invalid, "GET", &[LOCAL, BEARER]),
            "503 auth_not_configured"
        );
    }
}

#[test]
fn development_needs_no_credential_until_some_are_configured() {
    let on = Some("on");
    assert_eq!(
        presented(&texts(None, on, false), "POST", &[LOCAL]),
        "none is needed"
    );
    assert_eq!(presented(&texts(None, on, false), "POST", &[]), "403 not_local");
    assert_eq!(
        presented(&texts(TOKENS, on, false), "POST", &[LOCAL]),
        "401 unauthorized"
    );
    assert_eq!(
        presented(&texts(None, on, true), "POST", &[LOCAL]),
        "401 unauthorized"
    );
}

#[test]
fn a_token_comes_before_an_assertion() {
    let both = texts(TOKENS, None, true);
    assert_eq!(presented(&both, "GET", &[BEARER, JWT]), r#"Token("t")"#);
    assert_eq!(presented(&both, "GET", &[JWT]), r#"Assertion("a.b.c")"#);
    assert_eq!(presented(&both, "GET", &[]), "401 unauthorized");
    // A setting that is not there takes no credential.
    assert_eq!(
        presented(&texts(TOKENS, None, false), "GET", &[JWT]),
        "401 unauthorized"
    );
    assert_eq!(
        presented(&texts(None, None, true), "GET", &[BEARER, JWT]),
        r#"Assertion("a.b.c")"#
    );
    assert_eq!(
        presented(&texts(None, None, true), "GET", &[BEARER]),
        "401 unauthorized"
    );
}

#[test]
fn a_page_of_another_origin_cannot_use_the_cookie_of_access() {
    let access = texts(TOKENS, None, true);
    let foreign = ("origin", "https://evil.example");
    assert_eq!(presented(&access, "POST", &[JWT, foreign]), "403 cross_origin");
    assert_eq!(
        presented(&access, "GET", &[JWT, foreign]),
        r#"Assertion("a.b.c")"#
    );
    let upgrade = ("upgrade", "websocket");
    assert_eq!(
        presented(&access, "GET", &[JWT, foreign, upgrade]),
        "403 cross_origin"
    );
    let text = ("content-type", "text/plain");
    let own = ("origin", "http://localhost:8787");
    assert_eq!(
        presented(&access, "POST", &[JWT, own, text]),
        "415 unsupported_media_type"
    );
    assert_eq!(presented(&access, "POST", &[JWT, text]), r#"Assertion("a.b.c")"#);
    // A page must know a token to send it.
    assert_eq!(
        presented(&access, "POST", &[JWT, BEARER, foreign, text]),
        r#"Token("t")"#
    );
}

#[test]
fn roles_include_the_lesser_ones() {
    let tokens = Some(r#"{"r": "read", "o": "operate", "a": "admin"}"#);
    let settings = Settings::parse(&texts(tokens, None, false)).expect("valid");
    for (token, role, expected) in [
        ("r", Role::Read, 200),
        ("r", Role::Start, 403),
        ("r", Role::Operate, 403),
        ("o", Role::Decide, 200),
        ("o", Role::Operate, 200),
        ("o", Role::Admin, 403),
        ("a", Role::Admin, 200),
        ("x", Role::Read, 401),
        ("", Role::Read, 401),
    ] {
        let identity = settings.identify(token, NOW).map_err(Error::from);
        let outcome = identity.and_then(|identity| identity.require(role));
        let status = outcome.map_or_else(|error| error.status, |()| 200);
        assert_eq!(status, expected, "{token} {}", role.name());
    }
}

#[test]
fn an_identity_shows_its_roles_and_workflows() {
    let tokens =
        Some(r#"{"r": {"name": "ada", "roles": ["start"], "workflows": ["order-*"]}, "a": "admin"}"#);
    let settings = Settings::parse(&texts(tokens, None, false)).expect("valid");
    let shown = |token: &str| settings.identify(token, NOW).map(|identity| identity.view());
    assert_eq!(
        shown("r"),
        Ok(json!({"name": "ada", "roles": ["read", "start"], "workflows": ["order-*"]}))
    );
    let admin = shown("a").expect("known");
    assert_eq!(
        admin["roles"],
        json!(["read", "start", "decide", "operate", "admin"])
    );
    assert_eq!(admin["workflows"], Value::Null);
    assert_eq!(Identity::development().view()["name"], Value::Null);
}

#[test]
fn a_401_names_the_scheme() {
    let error = Error::from(InvalidCredential::wrong("no"));
    assert_eq!(error.headers, [("www-authenticate", "Bearer".to_string())]);
}
