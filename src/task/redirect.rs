//! Where the requests of an action may go. Redirects are followed in place of the platform: each target is checked first, and
//! neither credentials nor a body are sent to another origin.

use crate::base::failure::Failure;
use crate::definition::action::ActionKind;
use crate::task::address;
use crate::task::request::{CALLBACK_HEADER, Outgoing, parse_url};
use crate::task::runtime::ActionCall;
use crate::task::secret_hosts::Destination;

pub const REDIRECTS_MAX: u32 = 5;

/// The kind of peer, and whether its address is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// The Worker that is bound under this name, whatever the address is.
    Binding(&'a str),
    Internet {
        private: bool,
    },
}

impl Reach<'_> {
    /// Refuses a request before it is made: a private address, or a place where a secret of the call may not go.
    pub fn check(self, request: &Outgoing, call: &ActionCall) -> Result<(), Failure> {
        let destination = match self {
            Reach::Binding(name) => Destination::Binding(name),
            Reach::Internet { private } => {
                if !private {
                    address::check(&request.url)?;
                }
                Destination::Url(&request.url)
            }
        };
        call.secrets.check(destination)
    }
}

/// Headers that are not sent to another origin.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "cookie",
    "cookie2",
    "proxy-authorization",
    CALLBACK_HEADER,
];

/// The request that follows `sent`, if its response is a redirect with a location.
pub fn next(
    sent: &Outgoing,
    status: u16,
    location: Option<&str>,
    reach: Reach,
    call: &ActionCall,
) -> Result<Option<Outgoing>, Failure> {
    let Some(location) = location.filter(|_| is_redirect(status)) else {
        return Ok(None);
    };
    let target = sent.url.join(location).map_err(|error| {
        Failure::permanent(
            "invalid_redirect",
            format!("the answer redirects to no URL: {error}"),
        )
    })?;
    let url = parse_url(target.as_str()).map_err(|wrong| {
        Failure::permanent(
            "invalid_redirect",
            format!("the answer redirects: {}", wrong.message),
        )
    })?;
    let mut request = Outgoing { url, ..sent.clone() };
    let becomes_get = match status {
        301 | 302 => sent.method == "POST",
        303 => sent.method != "GET" && sent.method != "HEAD",
        _ => false,
    };
    if becomes_get {
        request.method = "GET".into();
        request.body = None;
        request.headers.retain(|(name, _)| !name.starts_with("content-"));
    }
    reach.check(&request, call)?;
    if request.url.origin() != sent.url.origin() {
        check_other_origin(&request, call)?;
        // Any header may hold a secret.
        let redactor = call.secrets.redactor();
        let stays = |name: &str, value: &str| !CREDENTIALS.contains(&name) && !redactor.finds(value);
        request.headers.retain(|(name, value)| stays(name, value));
    }
    Ok(Some(request))
}

/// A body may hold anything, and was written for the peer that the action names. So was a command, which the redirect may have
/// dropped.
fn check_other_origin(request: &Outgoing, call: &ActionCall) -> Result<(), Failure> {
    let is_command = matches!(call.action.kind, ActionKind::Shell(_));
    let why = match request.body {
        _ if is_command => "a command goes to the runner that the action names and to no other",
        Some(_) => "the request has a body, which is not sent to another origin",
        None => return Ok(()),
    };
    let origin = request.url.origin().ascii_serialization();
    Err(Failure::permanent(
        "redirected",
        format!("the answer redirects to {origin}: {why}; write the address it leads to into the action"),
    ))
}

/// Statuses that are redirects if they have a location.
pub const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

pub fn is_redirect(status: u16) -> bool {
    STATUSES.contains(&status)
}

pub fn too_many() -> Failure {
    Failure::permanent(
        "too_many_redirects",
        format!("the answer redirects more than {REDIRECTS_MAX} times"),
    )
}
