//! The object's doors: requests from the API, and its alarm. Answers are final; the API passes them on as they are.

use std::rc::Rc;

use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use crate::api::control::{read_decision, read_extension, read_restart, read_retry};
use crate::api::error::Error;
use crate::api::recovery;
use crate::api::start::StartRun;
use crate::api::views;
use crate::base::limits::{BUFFERED_SIGNALS, BUFFERED_SIGNALS_BYTES};
use crate::base::text::shorten;

use crate::run::{Capability, Event, Outcome, PauseReason, Rejection, Run, RunStatus, TokenId};
use crate::worker::api::respond::{self, ApiResult};
use crate::worker::platform::{self, inline_executor};
use crate::worker::run_object::object::{Object, Started};
use crate::worker::run_object::subrequests::Turn;

#[wasm_bindgen]
extern "C" {
    /// Who waits for an answer: `knock.mjs` has what it is.
    pub type Caller;

    #[wasm_bindgen(method)]
    fn answer(this: &Caller, status: u16, body: &str, bill: &str);
}

#[durable_object]
pub struct RunObject {
    doors: Doors,
}

impl DurableObject for RunObject {
    fn new(state: State, env: Env) -> Self {
        RunObject {
            doors: Doors {
                object: Object::new(state, env),
            },
        }
    }

    /// Nothing comes this way: what `worker` makes of a request and of a response costs more than most answers.
    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("requests come in by knock", 500)
    }

    /// An error goes to `entry.mjs`, which records it and sets the alarm again: the platform gives up on an alarm
    /// that fails.
    async fn alarm(&self) -> Result<Response> {
        let object = &self.doors.object;
        let turn = Turn::default();
        object.count_request();
        if object.load(&turn).await? {
            object.alarm_rang(&turn)?;
        }
        Response::empty()
    }
}

#[wasm_bindgen]
impl RunObject {
    /// A request, which is answered before this returns if nothing has to be waited for.
    pub fn knock(&self, number: u32, method: String, path: String, body: String, caller: Caller) {
        let doors = self.doors.clone();
        inline_executor::run(number, async move {
            doors.object.count_request();
            let answer = doors.answer(&method, &path, &body).await.unwrap_or_else(|error| {
                platform::log(
                    json!({"level": "error", "event": "request_failed", "message": error.to_string()}),
                );
                Err(Error::internal())
            });
            let (status, body) = respond::status_and_body(answer);
            caller.answer(status, &body.to_string(), &doors.object.bill());
        });
    }
}

#[derive(Clone)]
struct Doors {
    object: Rc<Object>,
}

impl Doors {
    async fn answer(&self, method: &str, path: &str, body: &str) -> Result<ApiResult> {
        let turn = Turn::default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let number = |name: &str, default: u64| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(key, _)| *key == name);
            value.and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
        };
        match (method, path) {
            ("POST", "/start") => {
                return self
                    .start(&turn, serde_json::from_str(body)?, number("wait_ms", 0))
                    .await;
            }
            ("POST", "/ring") => return Ok(Ok((200, json!(self.object.rung(&turn).await?)))),
            ("POST", "/abandon") => {
                let abandoned = self.object.feed_first(&turn, Event::Abandoned).await?.is_some();
                return Ok(Ok((200, json!({"abandoned": abandoned}))));
            }
            ("POST", "/cancel") => {
                return match read_cancel(serde_json::from_str(body)?) {
                    Ok(event) => self.cancel(&turn, event).await,
                    Err(error) => Ok(Err(error)),
                };
            }
            _others => {}
        }
        if !self.object.load(&turn).await? {
            return Ok(Err(Error::not_found("the run")));
        }
        match (method, path) {
            ("GET", "/run") => {
                self.object.ended(number("wait_ms", 0)).await?;
                // It may have left memory while this waited.
                match self.object.load(&turn).await? {
                    true => Ok(Ok((200, self.view()?))),
                    false => Ok(Err(Error::not_found("the run"))),
                }
            }
            ("GET", "/tokens") => self.object.tokens(number("after", 0), number("limit", 1_000)),
            ("GET", "/events") => self.object.events(number("after", 0), number("limit", 1_000)),
            ("GET", "/timeouts") => self.object.timeouts(number("after", 0), number("limit", 1_000)),
            ("GET", "/timeout-lines") => self.object.timeout_lines(),
            ("GET", "/timeout") => self.object.timeout(number("id", 0)),
            ("GET", "/resume") => self.object.ways_back(),
            ("GET", "/deliverable") => self.object.deliverable(),
            ("POST", path) => {
                let body: Value = serde_json::from_str(body)?;
                let fed = match path {
                    "/restart" => Some(self.object.feed_from_rows(&turn, || self.restart(&body))?),
                    "/retry" => Some(self.object.feed_from_rows(&turn, || self.retry(&body))?),
                    other => match command(other, body) {
                        Some(Ok(event)) => Some(Ok(self.object.feed(&turn, event)?)),
                        Some(Err(error)) => Some(Err(error)),
                        None => None,
                    },
                };
                match fed {
                    Some(Ok(answer)) => match answer {
                        Ok(()) if path == "/claim" => self.hand(),
                        // When to ask again whether the attempt is still needed.
                        Ok(()) if path == "/heartbeat" => {
                            let ends_at = self.object.with_run(Run::work_ends_at)?;
                            Ok(Ok((200, json!({"run_ends_at": ends_at}))))
                        }
                        // Whoever knocks here for an attempt does not look at the run.
                        Ok(()) if ATTEMPT_DOORS.contains(&path) => Ok(Ok((200, json!({})))),
                        Ok(()) => Ok(Ok((200, self.view()?))),
                        Err(rejection) => {
                            if path == "/report" {
                                // Its row may have been written before, or be one too many.
                                platform::log(json!({
                                    "level": "info", "event": "late_result_discarded", "run_id": self.object.run_id(),
                                    "reason": format!("{rejection:?}"),
                                }));
                            }
                            Ok(Err(refusal(&rejection)))
                        }
                    },
                    Some(Err(error)) => Ok(Err(error)),
                    None => Ok(Err(Error::not_found("this"))),
                }
            }
            _ => Ok(Err(Error::not_found("this"))),
        }
    }

    async fn start(&self, turn: &Turn, command: StartRun, wait_ms: u64) -> Result<ApiResult> {
        let id = command.run_id.clone();
        let status = match self.object.start(turn, command).await? {
            Started::TooLarge(too_large) => return Ok(Err(Error::too_large(&too_large))),
            Started::New => 201,
            Started::Same => 200,
            Started::Other => {
                let message = format!(
                    "run \"{id}\" exists and was started with another request; choose another run_id"
                );
                return Ok(Err(Error::new(409, "run_exists", message)));
            }
        };
        self.object.ended(wait_ms).await?;
        self.object.load(turn).await?;
        Ok(Ok((status, self.view()?)))
    }

    async fn cancel(&self, turn: &Turn, event: Event) -> Result<ApiResult> {
        match self.object.feed_first(turn, event).await? {
            None => Ok(Err(Error::not_found("the run"))),
            Some(Ok(())) => Ok(Ok((200, self.view()?))),
            Some(Err(rejection)) => Ok(Err(refusal(&rejection))),
        }
    }

    fn restart(&self, body: &Value) -> Result<std::result::Result<Event, Error>> {
        let from = match read_restart(body) {
            Ok(None) => None,
            Ok(Some(node)) => match self.object.restart_point(&node)? {
                Some(Ok(point)) => Some(point),
                Some(Err(rejection)) => return Ok(Err(refusal(&rejection))),
                None => {
                    let message = format!("no node is named \"{}\"", shorten(&node));
                    return Ok(Err(Error::invalid_request("/from_node_id", message)));
                }
            },
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(Event::RestartRequested { from }))
    }

    /// The order that was claimed. None: the token could not begin, and has said why.
    fn hand(&self) -> Result<ApiResult> {
        let Some(order) = self.object.take_handed() else {
            return Ok(Err(Error::new(409, "stale_attempt", "the attempt did not begin")));
        };
        let text = self.object.order_text(&order).map_err(worker::Error::RustError)?;
        Ok(Ok((200, serde_json::from_str(&text)?)))
    }

    fn retry(&self, body: &Value) -> Result<std::result::Result<Event, Error>> {
        let (mode, token) = match read_retry(body) {
            Ok(read) => read,
            Err(error) => return Ok(Err(error)),
        };
        let past = Box::new(self.object.past()?);
        let plan = self.object.with_run(|run| run.resume_plan(&past))?;
        let rows = Box::new(self.object.rows_to_go_on(&plan)?);
        Ok(Ok(Event::RetryRequested {
            mode,
            token,
            past,
            rows,
        }))
    }

    fn view(&self) -> Result<Value> {
        let mut view = self.object.with_run(|run| views::run(run, platform::now()))?;
        if self.object.with_run(Run::has_events)? {
            let lateness = self.object.sqlite().lateness()?;
            if !lateness.is_empty() {
                view["timeout_enforcement_latency_seconds"] = recovery::lateness(&lateness);
            }
        }
        Ok(view)
    }
}

/// Doors of whoever has an attempt, or brings what came of one.
const ATTEMPT_DOORS: [&str; 3] = ["/report", "/lost", "/callback"];

fn attempt(body: &Value) -> (String, u64) {
    let token = body["token_id"].as_str().unwrap_or_default().to_string();
    (token, body["epoch"].as_u64().unwrap_or_default())
}

/// A message without a sender is not a conflict but an error: an object of an older build that sent it keeps it, and sends
/// it again when it is of this build.
fn from_parent(sender: &Value, event: Event) -> std::result::Result<Event, Error> {
    match serde_json::from_value(sender.clone()) {
        Ok(sender) => Ok(Event::FromParent {
            sender,
            event: Box::new(event),
        }),
        Err(_) => Err(Error::new(
            400,
            "invalid_request",
            "a parent's message names its sender",
        )),
    }
}

/// By a person, or by the run that called this one.
fn read_cancel(body: Value) -> std::result::Result<Event, Error> {
    let cancel = Event::CancelRequested {
        reason: body["reason"].as_str().map(str::to_string),
    };
    match body.get("sender") {
        // The API refuses a sender from callers.
        Some(sender) => from_parent(sender, cancel),
        None => Ok(cancel),
    }
}

/// What a request to the object's doors means. The API has checked who asks; this checks what is asked.
fn command(path: &str, body: Value) -> Option<std::result::Result<Event, Error>> {
    let event = match path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path.trim_start_matches('/'), ""))
    {
        ("pause", "") => Event::PauseRequested,
        ("resume", "") => Event::ResumeRequested,
        ("extend", "") => match read_extension(&body) {
            Ok(by) => Event::ExtendRequested(by),
            Err(error) => return Some(Err(error)),
        },
        ("hold", "") => {
            let hold = Event::ParentHolds {
                number: body["number"].as_u64().unwrap_or_default(),
                held: body["held"].as_bool().unwrap_or_default(),
                budget_ms: body["budget_ms"].as_u64(),
            };
            match from_parent(&body["sender"], hold) {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            }
        }
        ("child-news", "") => match serde_json::from_value(body) {
            Ok(news) => Event::ChildNews(Box::new(news)),
            Err(error) => return Some(Err(Error::invalid_json(&error))),
        },
        ("report", "") => match serde_json::from_value(body) {
            Ok(report) => Event::TaskReported(Box::new(report)),
            Err(error) => return Some(Err(Error::invalid_json(&error))),
        },
        ("callback", "") => {
            let capability = body["capability"].as_str().and_then(Capability::parse);
            let mut body = body;
            Event::CallbackReceived {
                capability: Box::new(capability?),
                outcome: Box::new(Outcome::read(body["body"].take())),
            }
        }
        ("claim", "") => {
            let (token, epoch) = attempt(&body);
            Event::Claimed {
                token,
                epoch,
                claimant: body["claimant"].as_str().map(str::to_string),
            }
        }
        ("heartbeat", "") => {
            let (token, epoch) = attempt(&body);
            Event::Heartbeat { token, epoch }
        }
        ("lost", "") => {
            let (token, epoch) = attempt(&body);
            Event::CallLost {
                token: TokenId::parse(&token)?,
                epoch,
                message: body["message"].as_str().unwrap_or_default().to_string(),
            }
        }
        ("child", "") => match serde_json::from_value(body) {
            Ok(report) => Event::ChildEnded(Box::new(report)),
            Err(error) => return Some(Err(Error::invalid_json(&error))),
        },
        ("signals", name) => Event::SignalReceived {
            name: name.to_string(),
            payload: body,
        },
        ("gates", gate) => match read_decision(&body) {
            Ok(decision) => Event::GateDecided {
                gate: gate.to_string(),
                decision,
            },
            Err(error) => return Some(Err(error)),
        },
        _ => return None,
    };
    Some(Ok(event))
}

fn refusal(rejection: &Rejection) -> Error {
    match rejection {
        Rejection::RunFinished => Error::new(409, "run_finished", "the run has ended and cannot be changed"),
        Rejection::StaleAttempt { token, epoch } => Error::new(
            409,
            "stale_attempt",
            format!("attempt {epoch} of token {token} is not the current one"),
        ),
        Rejection::NotParent { run_id } => Error::new(
            409,
            "not_the_parent",
            format!("run \"{run_id}\" did not start this run and cannot hold or cancel it as its parent"),
        ),
        Rejection::NotChild { run_id } => Error::new(
            409,
            "not_the_child",
            format!("run \"{run_id}\" is not the child that the token waits for"),
        ),
        Rejection::PausedFor { holder, gate } => held_otherwise(*holder, gate.as_deref()),
        Rejection::CannotExtend(status) => cannot_extend(*status),
        Rejection::LimitOfParent => Error::new(
            409,
            "limit_of_parent",
            "the limit is that of the node that called this run; give that node more time, or none, in its workflow",
        ),
        Rejection::NoDeadline => Error::new(409, "no_timeout", "the run has no limit that could be extended"),
        Rejection::InvalidExtension { pointer, message } => Error::invalid_request(pointer, message.as_str()),
        Rejection::NotEnded => Error::new(
            409,
            "run_not_ended",
            "the run has not ended; extend, pause, cancel or restart it instead",
        ),
        Rejection::NotResumable(message) => Error::new(409, "not_resumable", message.as_str()),
        Rejection::Paused => Error::new(409, "paused", "the run is paused: nothing new begins"),
        Rejection::NotPaused => Error::new(409, "not_paused", "the run is not paused"),
        Rejection::UnknownCallback => Error::not_found("the callback"),
        Rejection::UnknownGate => Error::not_found("the gate"),
        Rejection::GateClosed(gate) => {
            let mut error = Error::new(409, "gate_closed", "the gate was decided before");
            error.details = Some(json!({"status": gate.status, "decision": gate.decision}));
            error
        }
        Rejection::InvalidDecision { pointer, message } => Error::invalid_request(pointer, message.as_str()),
        Rejection::NoWayBack(message) => Error::new(409, "no_way_back", message.as_str()),
        Rejection::TooManySignals => Error::new(
            429,
            "too_many_signals",
            format!(
                "the run keeps {BUFFERED_SIGNALS} signals, and {BUFFERED_SIGNALS_BYTES} bytes of them, until one of its waits hears \
                 them; send it again later"
            ),
        ),
        Rejection::TooLarge(too_large) => Error::too_large(too_large),
    }
}

fn held_otherwise(holder: PauseReason, gate: Option<&str>) -> Error {
    match (holder, gate) {
        (PauseReason::Parent, _) => Error::new(
            409,
            "paused_by_parent",
            "the run stands still with the run that called it; resume that one",
        ),
        (PauseReason::WorkflowTimeout | PauseReason::Escalation | PauseReason::Person, gate) => {
            let mut error = Error::new(
                409,
                "decision_needed",
                "the run waits for a decision: decide its gate, or extend it",
            );
            error.details = Some(json!({"gate_id": gate}));
            error
        }
    }
}

/// What helps instead.
fn cannot_extend(status: RunStatus) -> Error {
    match status {
        RunStatus::Failed | RunStatus::TimedOut => Error::new(
            409,
            "run_finished",
            "the run has ended; POST .../retry {\"mode\": \"retry_step\"} lets it go on with a new deadline, \
             GET .../resume says which ways are open",
        ),
        RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Completed
        | RunStatus::Cancelled => Error::new(
            409,
            "run_finished",
            "the run has ended; POST .../restart begins it again",
        ),
    }
}
