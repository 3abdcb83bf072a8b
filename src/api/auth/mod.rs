//! Authorization: who sends a request, and whether the sender may use a route. Pure: settings, headers and the time in, an
//! identity or a refusal out. `src/worker/api/authorize.rs` has the steps in their order, because one of them waits: the keys of
//! Access are fetched.

pub mod access;
mod browser;
mod credentials;
mod development;
mod grant;
pub mod lockout;
pub mod refusal_log;
mod request;
mod role;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::time::Millis;
use crate::protocol::caller::{Caller, WorkflowScope};
use access::Access;
use credentials::Credentials;

pub use grant::is_caller_name;
pub use request::RequestHead;
pub use role::{Role, Roles};

/// Who sends a request, and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// With the workflows that the role of the route extends to.
    pub caller: Caller,
    pub roles: Roles,
}

impl Identity {
    /// For requests that need no credential: they get no role.
    pub const ANONYMOUS: Identity = Identity {
        caller: Caller::ANONYMOUS,
        roles: Roles::NONE,
    };

    pub fn development() -> Identity {
        Identity {
            caller: Caller::ANONYMOUS,
            roles: Roles::of(Role::Admin),
        }
    }

    /// A Worker that calls over a service binding: the account's own configuration let it in. Its name has a prefix, so that it is
    /// never that of a person or a token. One without a valid name is `worker`.
    pub fn bound_worker(name: &str) -> Identity {
        let name = match is_caller_name(name) {
            true => format!("worker:{name}"),
            false => "worker".to_string(),
        };
        Identity {
            caller: Caller {
                name: Some(name),
                workflows: WorkflowScope::UNLIMITED,
            },
            roles: Roles::of(Role::Admin),
        }
    }

    /// As `GET /v1/me` shows it.
    pub fn view(&self) -> Value {
        let roles = Role::ALL.into_iter().filter(|role| self.roles.contains(*role));
        json!({
            "name": self.caller.name,
            "roles": roles.map(Role::name).collect::<Vec<_>>(),
            "workflows": self.caller.workflows,
        })
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
        Err(Error::forbidden(message))
    }
}

/// The texts of the settings, as the deployment has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingTexts {
    /// `CURFEW_TOKENS`.
    pub tokens: Option<String>,
    /// `CURFEW_DEV`.
    pub development: Option<String>,
    /// `CURFEW_ACCESS_TEAM`.
    pub access_team: Option<String>,
    /// `CURFEW_ACCESS_AUD`.
    pub access_audience: Option<String>,
    /// `CURFEW_ACCESS_ROLES`.
    pub access_roles: Option<String>,
}

/// The settings, parsed.
#[derive(Debug)]
pub struct Settings {
    credentials: Option<Credentials>,
    access: Option<Access>,
    is_development: bool,
}

/// What a request presents to be let in.
#[derive(Debug, PartialEq)]
pub enum Credential {
    Token(String),
    /// A JWT of Cloudflare Access.
    Assertion(String),
}

/// Why a credential is refused, as a 401.
#[derive(Debug, PartialEq)]
pub enum InvalidCredential {
    /// No such credential was ever valid: it may be a guess.
    Wrong(String),
    /// It was valid, or will be.
    Untimely(String),
}

impl Settings {
    pub fn parse(texts: &SettingTexts) -> Result<Settings, Error> {
        let credentials = set(&texts.tokens).map(Credentials::parse).transpose();
        let access = Access::parse(
            set(&texts.access_team),
            set(&texts.access_audience),
            set(&texts.access_roles),
        );
        Ok(Settings {
            credentials: credentials.map_err(not_configured)?,
            access: access.map_err(not_configured)?,
            is_development: is_development(texts.development.as_deref()),
        })
    }

    pub fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Whether requests need no credential. Where credentials are configured, they are needed in development, too.
    fn is_open(&self) -> bool {
        self.is_development && self.credentials.is_none() && self.access.is_none()
    }

    /// What the request presents; `None` if it needs nothing. A refusal if it presents nothing, or a page of another origin
    /// has sent it.
    pub fn credential(&self, head: &RequestHead) -> Result<Option<Credential>, Error> {
        if self.is_open() {
            development::check(head)?;
            return Ok(None);
        }
        if self.credentials.is_none() && self.access.is_none() {
            return Err(not_configured(
                "nothing says who may use this API: set the secret CURFEW_TOKENS, or CURFEW_ACCESS_TEAM, CURFEW_ACCESS_AUD and \
                 CURFEW_ACCESS_ROLES; for development on this machine set CURFEW_DEV to on",
            ));
        }
        if self.credentials.is_some()
            && let Some(token) = head
                .header("authorization")
                .as_deref()
                .and_then(credentials::bearer)
        {
            return Ok(Some(Credential::Token(token.to_string())));
        }
        if self.access.is_some()
            && let Some(assertion) = access::assertion_of(head)
        {
            // The browser sends the cookie of Access with the requests of any page.
            if head.changes() || head.has("upgrade") {
                browser::check(head)?;
            }
            return Ok(Some(Credential::Assertion(assertion)));
        }
        Err(Error::unauthorized(match (&self.credentials, &self.access) {
            (Some(_), None) => "send a token: Authorization: Bearer <token>",
            (None, Some(_)) => "sign in with Cloudflare Access",
            (Some(_), Some(_)) | (None, None) => {
                "send a token (Authorization: Bearer <token>), or sign in with Cloudflare Access"
            }
        }))
    }

    /// The identity of a bearer token.
    pub fn identify(&self, token: &str, now: Millis) -> Result<Identity, InvalidCredential> {
        match &self.credentials {
            Some(credentials) => credentials.identify(token, now).cloned(),
            None => Err(InvalidCredential::wrong("no tokens are configured")),
        }
    }
}

impl InvalidCredential {
    pub fn wrong(message: impl Into<String>) -> InvalidCredential {
        InvalidCredential::Wrong(message.into())
    }

    fn untimely(message: impl Into<String>) -> InvalidCredential {
        InvalidCredential::Untimely(message.into())
    }

    pub fn message(&self) -> &str {
        match self {
            InvalidCredential::Wrong(message) | InvalidCredential::Untimely(message) => message,
        }
    }
}

impl From<InvalidCredential> for Error {
    fn from(invalid: InvalidCredential) -> Error {
        Error::unauthorized(invalid.message())
    }
}

/// `setting` is `CURFEW_DEV`.
pub fn is_development(setting: Option<&str>) -> bool {
    setting.is_some_and(|text| text.trim() == "on")
}

fn set(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

fn not_configured(message: impl Into<String>) -> Error {
    Error::new(503, "auth_not_configured", message)
}

#[cfg(test)]
mod tests;
