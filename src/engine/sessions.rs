//! Sessions: simulations that stop and go on. They are the only thing that the engine keeps between two requests.

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::api::control::Control;
use crate::api::error::Error;
use crate::base::ids;
use crate::definition::timeouts::TimeoutRules;
use crate::simulate::{Deployment, SESSIONS_MAX, Session};

thread_local! {
    static SESSIONS: RefCell<Sessions> = RefCell::default();
}

#[derive(Default)]
struct Sessions {
    /// With their numbers. The most recently used one is last.
    open: Vec<(u64, Session)>,
    last: u64,
}

/// Answers `open`, `advance`, `control`, `view` and `close`. `None` for other operations.
pub fn answer(operation: &str, request: &Value) -> Option<Result<Value, Error>> {
    SESSIONS.with_borrow_mut(|sessions| {
        Some(match operation {
            "open" => sessions.open(request),
            "advance" => sessions.advance(request),
            "control" => sessions.control(request),
            "view" => sessions.find(request).and_then(Session::view),
            "close" => sessions.close(request),
            _ => return None,
        })
    })
}

impl Sessions {
    /// `{op: "open", ...}`, with the fields of a simulation: starts a run.
    fn open(&mut self, request: &Value) -> Result<Value, Error> {
        let session = Session::open(request, &TimeoutRules::default(), &Deployment::default())?;
        if self.open.len() == SESSIONS_MAX {
            self.open.remove(0);
        }
        self.last += 1;
        let mut summary = session.summary();
        summary["session"] = json!(self.last);
        self.open.push((self.last, session));
        Ok(summary)
    }

    fn advance(&mut self, request: &Value) -> Result<Value, Error> {
        let session = self.find(request)?;
        session.advance(request)?;
        Ok(session.summary())
    }

    /// What the run refuses is an answer, with the error of the API as `refused`.
    fn control(&mut self, request: &Value) -> Result<Value, Error> {
        let session = self.find(request)?;
        let (control, body) = read_control(request)?;
        let refused = session.control(control, body)?;
        let mut summary = session.summary();
        if let Some(refused) = refused {
            summary["refused"] = refused;
        }
        Ok(summary)
    }

    fn close(&mut self, request: &Value) -> Result<Value, Error> {
        self.find(request)?;
        self.open.pop();
        Ok(json!({}))
    }

    /// The session of a request, which is the last one then.
    fn find(&mut self, request: &Value) -> Result<&mut Session, Error> {
        let number = request["session"].as_u64();
        let index = self.open.iter().position(|(open, _)| Some(*open) == number);
        if let Some(index) = index {
            self.open[index..].rotate_left(1);
        }
        match (index, self.open.last_mut()) {
            (Some(_), Some((_, session))) => Ok(session),
            (Some(_) | None, _) => Err(unknown(&request["session"])),
        }
    }
}

/// `{op: "control", session, control, id?, body?}`: what the API does at `POST /v1/runs/{id}/{control}`.
fn read_control(request: &Value) -> Result<(Control, Value), Error> {
    let id = request["id"].as_str();
    let control = match (request["control"].as_str(), id) {
        (Some("gate"), Some(id)) => Some(Control::Gate { id: id.to_string() }),
        (Some("signal"), Some(name)) if !ids::is_name(name) => {
            return Err(Error::invalid_request("/id", ids::NAME_RULE));
        }
        (Some("signal"), Some(name)) => Some(Control::Signal {
            name: name.to_string(),
        }),
        (Some(name), None) => Control::named(name),
        (Some(_) | None, _) => None,
    };
    let control = control.ok_or_else(|| {
        let message = "write \"control\": \"cancel\", \"pause\", \"resume\", \"extend\", \"retry\" or \"restart\", or \"gate\" or \
             \"signal\" with its \"id\"";
        Error::invalid_request("/control", message)
    })?;
    let body = match &request["body"] {
        Value::Null if !matches!(control, Control::Signal { .. }) => json!({}),
        body => body.clone(),
    };
    Ok((control, body))
}

fn unknown(number: &Value) -> Error {
    let shown: String = number.to_string().chars().take(40).collect();
    let message = format!(
        "there is no session {shown}: it was closed, or {SESSIONS_MAX} others were used since; start the run again"
    );
    Error::new(404, "not_found", message)
}
