//! A simulation that stops and goes on: a test lets time pass, decides, looks, and lets more time pass. Nothing is simulated
//! twice.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::control::Control;
use crate::api::error::Error;
use crate::api::views;
use crate::base::time::{Millis, format_duration, parse_length};
use crate::definition::timeouts::TimeoutRules;
use crate::protocol::caller::Caller;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::run::RunStatus;
use crate::simulate::answer;
use crate::simulate::mocked_world::name_of;
use crate::simulate::resolve::read_alone;
use crate::simulate::simulation::{Deployment, RUN_ID, Simulation, Until};

/// How many sessions an engine keeps. The one that was not used for the longest time is closed first.
pub const SESSIONS_MAX: usize = 100;

/// How much time may pass in all: a thousand years. Much later moments have no ISO 8601 form.
const PASSED_MAX_MS: u64 = 1_000 * 365 * 86_400_000;

pub struct Session {
    simulation: Simulation,
    /// Why it cannot go on.
    error: Option<Error>,
}

impl Session {
    /// Starts a run. What takes no time has happened afterwards. `body` is that of a simulation.
    pub fn open(body: &Value, rules: &TimeoutRules, deployment: &Deployment) -> Result<Session, Error> {
        if !body["until"].is_null() {
            let message = "a session does not stop by itself: leave \"until\" out, and let it advance";
            return Err(Error::invalid_request("/until", message));
        }
        let (body, workflow) = read_alone(body, rules)?;
        let mut session = Session {
            simulation: Simulation::new(body, &workflow, deployment, &Rc::default())?,
            error: None,
        };
        session.go_on(Until::Moment(session.now()))?;
        Ok(session)
    }

    /// Lets time pass: `{by}` a length, or `{until: "change" | "end"}`.
    pub fn advance(&mut self, how: &Value) -> Result<(), Error> {
        let until = match (&how["by"], how["until"].as_str()) {
            (Value::Null, Some("end")) => Until::End,
            (Value::Null, Some("change")) => Until::Change,
            (by, None) if !by.is_null() => {
                let millis = parse_length(by).map_err(|message| Error::invalid_request("/by", message))?;
                if self.at_ms().saturating_add(millis) > PASSED_MAX_MS {
                    let message = "more than a thousand years would have passed since the start";
                    return Err(Error::invalid_request("/by", message));
                }
                Until::Moment(self.now().saturating_add(millis))
            }
            _both_or_neither => {
                let message = "write how far: \"by\", a duration, or \"until\": \"change\" or \"end\"";
                return Err(Error::bad_request(message));
            }
        };
        self.go_on(until)
    }

    /// What a caller asks of the run now. The run may refuse it: then this is its answer.
    pub fn control(&mut self, control: Control, body: Value) -> Result<Option<Value>, Error> {
        let caller = Caller {
            name: control.name_in(&body),
            ..Caller::default()
        };
        let (run, control) = match control {
            Control::Gate { id } => {
                let (run, id) = self.open_gate(&id)?;
                (run, Control::Gate { id })
            }
            other => (RUN_ID.to_string(), other),
        };
        let request = control.request(body)?;
        match self.simulation.answer_to(&run, Some(&caller), &request) {
            Some(RunResponse::Created(_) | RunResponse::Done(_)) => {
                self.go_on(Until::Moment(self.now()))?;
                Ok(None)
            }
            Some(refused) => Ok(Some(refusal(refused))),
            None => {
                let message = "every request met a fault; lower the odds of \"faults\"";
                Err(Error::new(422, "limit_exceeded", message))
            }
        }
    }

    /// The run as a simulation answers it, with the gates that are open and the time that has passed.
    pub fn view(&mut self) -> Result<Value, Error> {
        // Nothing happens while a test looks at it, and looking costs nothing.
        let faults = self.simulation.environment().faults.take();
        let runs = self.simulation.simulator.runs.values();
        let requests: Vec<u64> = runs.map(|run| run.durable.requests.get()).collect();
        let view = answer::of(&mut self.simulation);
        for (run, count) in self.simulation.simulator.runs.values().zip(requests) {
            run.durable.requests.set(count);
        }
        *self.simulation.environment().faults.borrow_mut() = faults;
        let mut view = view?;
        view["gates"] = self.open_gates();
        view["at_ms"] = json!(self.at_ms());
        Ok(view)
    }

    /// The record of a timeout, by its number, with why it came to it.
    pub fn timeout(&mut self, id: u64) -> Result<Value, Error> {
        let (record, _) = self.simulation.ask(RUN_ID, RunRequest::ReadTimeout { id })?;
        Ok(record)
    }

    /// What is shown after each step.
    pub fn summary(&self) -> Value {
        let status = self.simulation.simulator.runs[RUN_ID].store().status();
        json!({"at_ms": self.at_ms(), "status": status.map(|status| status.name())})
    }

    fn ended_as(&self) -> Option<RunStatus> {
        let status = self.simulation.simulator.runs[RUN_ID].store().status();
        status.filter(|status| status.is_terminal())
    }

    fn now(&self) -> Millis {
        self.simulation.simulator.now()
    }

    fn at_ms(&self) -> u64 {
        self.now() - self.simulation.started_at
    }

    fn go_on(&mut self, until: Until) -> Result<(), Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.simulation.go_on(until).inspect_err(|error| {
            self.error = Some(error.clone());
        })?;
        // Also where nothing was left to happen.
        if let Until::Moment(moment) = until {
            self.simulation.environment().advance(moment);
        }
        Ok(())
    }

    fn open_gates(&self) -> Value {
        let runs = self.simulation.simulator.runs.iter();
        let gates = runs.flat_map(|(id, run)| {
            let gates = run.open_gates().into_iter();
            gates.map(move |gate| {
                let mut view = views::gate(id, &gate);
                view["gate"] = json!(name_of(&gate));
                view
            })
        });
        gates.collect()
    }

    /// The run and the id of an open gate, by the id of its node, `timeout`, or its own id.
    fn open_gate(&self, name: &str) -> Result<(String, String), Error> {
        let runs = self.simulation.simulator.runs.iter();
        let open = runs.flat_map(|(id, run)| run.open_gates().into_iter().map(move |gate| (id, gate)));
        let open: Vec<_> = open.collect();
        let is_it = |wanted: &str, found: &str| wanted == found;
        let found = open
            .iter()
            .find(|(_, gate)| is_it(name, name_of(gate)) || is_it(name, &gate.id));
        if let Some((run, gate)) = found {
            return Ok((run.to_string(), gate.id.clone()));
        }
        let names: Vec<String> = open
            .iter()
            .map(|(_, gate)| format!("\"{}\"", name_of(gate)))
            .collect();
        let others = match names.is_empty() {
            true => match self.ended_as() {
                Some(status) => format!("the run has ended as {}", status.name()),
                None => "no gate is open; advance the run to it first".to_string(),
            },
            false => format!("open are {}", names.join(", ")),
        };
        let name: String = name.chars().take(100).collect();
        let message = format!(
            "gate \"{name}\" is not open {} after the start: {others}",
            format_duration(self.at_ms())
        );
        Err(Error::new(409, "gate_closed", message))
    }
}

/// The run's own error, as the API would answer it.
fn refusal(response: RunResponse) -> Value {
    let (status, body) = response.into_parts();
    let mut body: Value = serde_json::from_str(&body).unwrap_or_default();
    let mut error = body["error"].take();
    error["status"] = json!(status);
    error
}
