//! Decides whether a request is let in, step by step: what it presents, the lock-out of its address, its credential, its role,
//! the rate limit. The decisions are in `api::auth`; the state that they need is in the memory of the isolate.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::json;
use web_sys::Request;
use worker::{Env, Url};

use crate::api::auth::lockout::{Address, Lockout};
use crate::api::auth::refusal_log::{Refusal, RefusalLog};
use crate::api::auth::{Credential, Identity, InvalidCredential, RequestHead, Role, SettingTexts, Settings};
use crate::api::error::Error;
use crate::api::routes::Route;
use crate::api::scope;
use crate::base::time::Millis;
use crate::worker::api::access::{AccessError, Verifier};
use crate::worker::api::request::header;
use crate::worker::platform::{self, rate_limit};

/// The binding does not say when its period ends. The shortest is ten seconds.
const RATE_LIMIT_RETRY_S: u64 = 10;

thread_local! {
    static CONFIGURED: RefCell<Option<Rc<Configured>>> = const { RefCell::new(None) };
    static LOCKOUT: RefCell<Lockout> = RefCell::default();
    static REFUSAL_LOG: RefCell<RefusalLog> = RefCell::default();
    static LOGGED_DEVELOPMENT: Cell<bool> = const { Cell::new(false) };
}

/// The settings, parsed once per isolate.
struct Configured {
    texts: SettingTexts,
    settings: Settings,
    access: Verifier,
}

/// A refusal, and whose it is, if the credential is known.
struct Refused {
    error: Error,
    by: Option<String>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { error, by: None }
    }
}

/// The identity of the sender, if it may use the route. Refusals are logged.
pub async fn authorize(request: &Request, url: &Url, env: &Env, route: &Route) -> Result<Identity, Error> {
    let admitted = admit(request, url, env, route).await;
    let path = route.path_without_secrets(url.path());
    admitted.map_err(|Refused { error, by }| {
        log_refusal(error.status, error.code, request, path, by.as_deref());
        error
    })
}

/// `path` has no secrets in it.
pub fn log_refusal(status: u16, code: &str, request: &Request, path: &str, by: Option<&str>) {
    let refusal = Refusal {
        status,
        code,
        method: &request.method(),
        path,
        by,
    };
    let line = REFUSAL_LOG.with_borrow_mut(|log| log.line(&refusal, platform::now()));
    if let Some(line) = line {
        platform::log(line);
    }
}

async fn admit(request: &Request, url: &Url, env: &Env, route: &Route) -> Result<Identity, Refused> {
    let identity = match route.rules().role {
        None => Identity::ANONYMOUS,
        Some(role) => identify(request, url, env, role).await?,
    };
    if *route != Route::Health {
        limit_rate(request, env, &identity).await?;
    }
    match scope::check_route(route, &identity.caller.workflows) {
        Ok(()) => Ok(identity),
        Err(error) => Err(Refused {
            error,
            by: identity.caller.name,
        }),
    }
}

async fn identify(request: &Request, url: &Url, env: &Env, role: Role) -> Result<Identity, Refused> {
    let configured = configured(env)?;
    let head = RequestHead {
        method: &request.method(),
        url,
        header: &|name| header(request, name),
    };
    let Some(credential) = configured.settings.credential(&head)? else {
        log_development();
        return Ok(Identity::development());
    };
    let now = platform::now();
    let address = address(request);
    if let Some(address) = address {
        LOCKOUT.with_borrow(|lockout| lockout.check(address, now))?;
    }
    let checked = match credential {
        Credential::Token(token) => check_token(&configured.settings, &token, role, now),
        Credential::Assertion(jwt) => check_assertion(&configured, &jwt, role, now).await,
    };
    checked.map_err(|failed| match failed {
        CredentialError::Invalid(invalid) => {
            if let (InvalidCredential::Wrong(_), Some(address)) = (&invalid, address) {
                LOCKOUT.with_borrow_mut(|lockout| lockout.count_wrong(address, now));
            }
            Error::from(invalid).into()
        }
        CredentialError::Refused(refused) => refused,
    })
}

enum CredentialError {
    Invalid(InvalidCredential),
    Refused(Refused),
}

fn check_token(
    settings: &Settings,
    token: &str,
    role: Role,
    now: Millis,
) -> Result<Identity, CredentialError> {
    let identity = settings.identify(token, now).map_err(CredentialError::Invalid)?;
    match identity.require(role) {
        Ok(()) => Ok(identity),
        Err(error) => Err(CredentialError::Refused(Refused {
            error,
            by: identity.caller.name,
        })),
    }
}

async fn check_assertion(
    configured: &Configured,
    jwt: &str,
    role: Role,
    now: Millis,
) -> Result<Identity, CredentialError> {
    let access = configured.settings.access();
    let access = access.expect("an assertion is a credential only where Access is configured");
    let claims = configured.access.verify(access, jwt, now).await;
    let claims = claims.map_err(|error| match error {
        AccessError::Invalid(invalid) => CredentialError::Invalid(invalid),
        AccessError::Unavailable(error) => CredentialError::Refused(error.into()),
    })?;
    access.identity(&claims.member, role).map_err(|error| {
        CredentialError::Refused(Refused {
            error,
            by: Some(claims.member.name().to_string()),
        })
    })
}

/// By the name of the credential, or by the address of a sender without one. A limit that cannot be asked admits: it must not
/// be the outage.
async fn limit_rate(request: &Request, env: &Env, identity: &Identity) -> Result<(), Refused> {
    let Some(limit) = rate_limit::binding(env) else {
        return Ok(());
    };
    let by = identity.caller.name.clone();
    let key = match &by {
        Some(name) => Some(format!("caller:{name}")),
        None => address(request).map(|address| format!("address:{}", address.key())),
    };
    let Some(key) = key else {
        return Ok(());
    };
    match limit.admits(&key).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refused {
            error: Error::rate_limited("too many requests; repeat this one later", RATE_LIMIT_RETRY_S),
            by,
        }),
        Err(error) => {
            platform::log_error("rate_limit_failed", &platform::message_of(&error));
            Ok(())
        }
    }
}

/// A request over a service binding has none.
fn address(request: &Request) -> Option<Address> {
    Address::parse(&header(request, "cf-connecting-ip")?)
}

fn configured(env: &Env) -> Result<Rc<Configured>, Error> {
    let variable = |name| platform::variable(env, name);
    let texts = SettingTexts {
        tokens: variable("CURFEW_TOKENS"),
        development: variable("CURFEW_DEV"),
        access_team: variable("CURFEW_ACCESS_TEAM"),
        access_audience: variable("CURFEW_ACCESS_AUD"),
        access_roles: variable("CURFEW_ACCESS_ROLES"),
    };
    CONFIGURED.with_borrow_mut(|cached| match cached {
        Some(configured) if configured.texts == texts => Ok(Rc::clone(configured)),
        Some(_) | None => {
            let settings = Settings::parse(&texts)?;
            let configured = Rc::new(Configured {
                texts,
                settings,
                access: Verifier::default(),
            });
            *cached = Some(Rc::clone(&configured));
            Ok(configured)
        }
    })
}

/// Once per isolate.
fn log_development() {
    if !LOGGED_DEVELOPMENT.replace(true) {
        platform::log(json!({
            "level": "warn", "event": "development",
            "message": "CURFEW_DEV is on and no credentials are configured: requests of this machine need none",
        }));
    }
}
