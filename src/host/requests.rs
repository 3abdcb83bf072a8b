//! Requests to the object: the event that each becomes, and the response to it.

use serde_json::{Value, json};

use crate::api::callback;
use crate::api::error::Error as ApiError;
use crate::api::recovery;
use crate::api::rejection;
use crate::api::scope;
use crate::api::views;
use crate::base::from_json::from_json;
use crate::base::text;
use crate::host::object::{Accepted, Host, Started};
use crate::host::platform::{Platform, Result, Storage};
use crate::host::subrequests::SubrequestBudget;
use crate::protocol::caller::Caller;
use crate::protocol::run::{
    AbandonResponse, HeartbeatResponse, RunCall, RunRequest, RunResponse, WorkflowResponse,
};
use crate::protocol::start::StartRun;
use crate::run::{CallbackResult, Capability, Event, GateDecision, Run, TokenId};

pub(super) fn refused(error: &ApiError) -> RunResponse {
    RunResponse::from_parts(error.status, text::json_text(&error.body()))
}

/// For senders that do not read the body.
fn accepted() -> RunResponse {
    RunResponse::Done("{}".into())
}

pub(super) fn done(body: &impl serde::Serialize) -> Result<RunResponse> {
    Ok(RunResponse::Done(text::to_json(body)?))
}

fn name_of(caller: Option<&Caller>) -> Option<String> {
    caller.and_then(|caller| caller.name.clone())
}

/// What an accepted event is answered with.
#[derive(Clone, Copy)]
enum ResponseBody {
    View,
    Empty,
    Order,
    Heartbeat,
}

impl<P: Platform> Host<P> {
    /// `call` is the JSON of a `RunCall`.
    pub async fn respond(&self, budget: &SubrequestBudget, call: &str) -> RunResponse {
        let response = match from_json(call) {
            Ok(call) => self.handle_call(budget, call).await,
            Err(error) => {
                let message = format!("the body is no request to a run: {error}");
                Ok(refused(&ApiError::new(400, "invalid_request", message)))
            }
        };
        response.unwrap_or_else(|error| {
            self.report("request_failed", &error);
            refused(&ApiError::internal())
        })
    }

    async fn handle_call(&self, budget: &SubrequestBudget, call: RunCall) -> Result<RunResponse> {
        let RunCall {
            caller,
            operation,
            request,
        } = call;
        let action = request.audited_action();
        let is_start = matches!(request, RunRequest::Start { .. });
        let response = self
            .handle_request(budget, caller.as_ref(), operation, request)
            .await?;
        let has_changed = match &response {
            RunResponse::Created(_) => true,
            // The run was started before.
            RunResponse::Done(_) => !is_start,
            RunResponse::NotFound(_)
            | RunResponse::Conflict(_)
            | RunResponse::TooLarge(_)
            | RunResponse::Refused { .. } => false,
        };
        if let (true, Some(caller), Some(action)) = (has_changed, caller, action) {
            self.platform.log(json!({
                "level": "info", "event": "audit", "action": action, "run_id": self.run_id(), "by": caller.name,
            }));
        }
        Ok(response)
    }

    async fn handle_request(
        &self,
        budget: &SubrequestBudget,
        caller: Option<&Caller>,
        operation: Option<String>,
        request: RunRequest,
    ) -> Result<RunResponse> {
        match request {
            RunRequest::Start { command, wait_ms } => {
                self.respond_to_start(budget, caller, command, wait_ms).await
            }
            RunRequest::Probe => done(&self.probe(budget).await?),
            RunRequest::Abandon => {
                let abandoned = self.feed_first(budget, |_| Ok::<_, ApiError>(()), Event::Abandoned);
                let abandoned = abandoned.await?.is_some();
                done(&AbandonResponse { abandoned })
            }
            RunRequest::Cancel { reason } => {
                let by = name_of(caller);
                let event = Event::CancelRequested { reason, by };
                self.respond_to_cancel(budget, caller, event, ResponseBody::View)
                    .await
            }
            RunRequest::CancelChild { sender, reason } => {
                let event = Box::new(Event::CancelRequested { reason, by: None });
                let event = Event::FromParent { sender, event };
                self.respond_to_cancel(budget, caller, event, ResponseBody::Empty)
                    .await
            }
            other => match self.load_for(budget, caller).await? {
                Ok(()) => self.respond_loaded(budget, caller, operation, other).await,
                Err(refusal) => Ok(refused(&refusal)),
            },
        }
    }

    /// The run is in memory, and the caller may reach its workflow.
    async fn load_for(
        &self,
        budget: &SubrequestBudget,
        caller: Option<&Caller>,
    ) -> Result<std::result::Result<(), ApiError>> {
        match self.load(budget).await? {
            true => self.check_scope(caller),
            false => Ok(Err(ApiError::not_found("the run"))),
        }
    }

    fn check_scope(&self, caller: Option<&Caller>) -> Result<std::result::Result<(), ApiError>> {
        self.with_run(|run| scope::check_run(caller, &run.header.workflow_id))
    }

    async fn respond_loaded(
        &self,
        budget: &SubrequestBudget,
        caller: Option<&Caller>,
        operation: Option<String>,
        request: RunRequest,
    ) -> Result<RunResponse> {
        let by = name_of(caller);
        let (event, body) = match request {
            RunRequest::Read { wait_ms } => {
                self.wait_for_end(wait_ms).await?;
                // The run may have left memory during the wait.
                return match self.load_for(budget, caller).await? {
                    Ok(()) => done(&self.view()?),
                    Err(refusal) => Ok(refused(&refusal)),
                };
            }
            RunRequest::ListTokens(page) => return self.tokens(page),
            RunRequest::ListEvents(page) => return self.events(page),
            RunRequest::ReadLive { after } => return self.live_page(after),
            RunRequest::ListTimeouts(page) => return self.timeouts(page),
            RunRequest::ListNotifications(page) => return self.notifications(page),
            RunRequest::ReadTimeoutLines => return self.timeout_lines(),
            RunRequest::ReadTimeout { id } => return self.timeout(id),
            RunRequest::ReadResumeOptions => return self.resume_options(),
            RunRequest::ReadDeliverable => return self.deliverable(),
            RunRequest::ReadRecording => return self.recording(),
            RunRequest::ReadTrace { end, cursor } => return self.trace_page(end, cursor),
            RunRequest::ReadWorkflow => {
                let workflow_id = self.with_run(|run| run.header.workflow_id.clone())?;
                return done(&WorkflowResponse { workflow_id });
            }
            RunRequest::Restart {
                from_node_id,
                version,
            } => {
                let fed = self.feed_restart(budget, by, from_node_id.as_deref(), version)?;
                return self.respond_to_fed(fed, ResponseBody::View);
            }
            RunRequest::Retry {
                mode,
                token_id,
                version,
            } => {
                let fed = self.feed_retry(budget, by, mode, token_id.as_deref(), version)?;
                return self.respond_to_fed(fed, ResponseBody::View);
            }
            RunRequest::Report(report) => {
                let event = Event::TaskReported(Box::new(report));
                let fed = self.feed(budget, event)?;
                if let Err(rejection) = &fed {
                    // The event log of the run keeps only the first late results.
                    self.platform.log(json!({
                        "level": "info", "event": "late_result_discarded", "run_id": self.run_id(),
                        "reason": format!("{rejection:?}"),
                    }));
                }
                return self.respond_to_fed(Ok(fed), ResponseBody::Empty);
            }
            RunRequest::Pause => (Event::PauseRequested { by }, ResponseBody::View),
            RunRequest::Resume => (Event::ResumeRequested { by }, ResponseBody::View),
            RunRequest::Extend(extension) => {
                let event = Event::ExtendRequested {
                    extension,
                    by,
                    operation,
                };
                (event, ResponseBody::View)
            }
            RunRequest::Signal { name, payload } => {
                (Event::SignalReceived { name, payload, by }, ResponseBody::View)
            }
            RunRequest::DecideGate { gate_id, decision } => {
                let event = Event::GateDecided {
                    gate: gate_id,
                    decision: GateDecision { by, ..decision },
                };
                (event, ResponseBody::View)
            }
            RunRequest::Callback { capability, body } => {
                let Some(capability) = Capability::parse(&capability) else {
                    return Ok(refused(&callback::unknown()));
                };
                let event = Event::CallbackReceived {
                    capability: Box::new(capability),
                    result: Box::new(CallbackResult::read(body)),
                };
                (event, ResponseBody::Empty)
            }
            RunRequest::HoldChild {
                sender,
                number,
                held,
                budget_ms,
            } => {
                let event = Box::new(Event::ParentHolds {
                    number,
                    held,
                    budget_ms,
                });
                (Event::FromParent { sender, event }, ResponseBody::Empty)
            }
            RunRequest::ChildStatusUpdate(news) => {
                (Event::ChildStatusUpdate(Box::new(news)), ResponseBody::Empty)
            }
            RunRequest::ChildEnded(report) => (Event::ChildEnded(Box::new(report)), ResponseBody::Empty),
            RunRequest::Claim {
                token_id,
                epoch,
                claimant,
            } => {
                let event = Event::Claimed {
                    token: token_id,
                    epoch,
                    claimant,
                };
                (event, ResponseBody::Order)
            }
            RunRequest::Heartbeat {
                token_id,
                epoch,
                progress,
            } => {
                let event = Event::Heartbeat {
                    token: token_id,
                    epoch,
                    progress: progress.map(Box::new),
                };
                (event, ResponseBody::Heartbeat)
            }
            RunRequest::ReportLost {
                token_id,
                epoch,
                message,
            } => {
                let Some(token) = TokenId::parse(&token_id) else {
                    return Ok(refused(&ApiError::not_found("the token")));
                };
                let event = Event::CallLost {
                    token,
                    epoch,
                    message,
                };
                (event, ResponseBody::Empty)
            }
            RunRequest::Start { .. }
            | RunRequest::Probe
            | RunRequest::Abandon
            | RunRequest::Cancel { .. }
            | RunRequest::CancelChild { .. } => {
                unreachable!("`respond` handles them before the run is loaded")
            }
        };
        let fed = self.feed(budget, event)?;
        self.respond_to_fed(Ok(fed), body)
    }

    fn respond_to_fed(
        &self,
        fed: std::result::Result<Accepted, ApiError>,
        body: ResponseBody,
    ) -> Result<RunResponse> {
        match fed {
            Ok(Ok(())) => match body {
                ResponseBody::View => done(&self.view()?),
                ResponseBody::Empty => Ok(accepted()),
                ResponseBody::Order => self.claim_response(),
                ResponseBody::Heartbeat => done(&HeartbeatResponse {
                    run_ends_at: self.with_run(Run::work_ends_at)?,
                }),
            },
            Ok(Err(rejection)) => Ok(refused(&rejection::response(&rejection))),
            Err(error) => Ok(refused(&error)),
        }
    }

    async fn respond_to_start(
        &self,
        budget: &SubrequestBudget,
        caller: Option<&Caller>,
        mut command: StartRun,
        wait_ms: Option<u64>,
    ) -> Result<RunResponse> {
        let id = command.run_id.clone();
        if caller.is_some() {
            command.started_by = name_of(caller);
        }
        let is_new = match self.start(budget, command).await? {
            Started::TooLarge(too_large) => return Ok(refused(&ApiError::too_large(&too_large))),
            Started::New => true,
            Started::Same => false,
            Started::Other => {
                // Whose run has the id is shown to those who may reach it.
                if let Err(refusal) = self.check_scope(caller)? {
                    return Ok(refused(&refusal));
                }
                let message = format!(
                    "run \"{id}\" exists and was started with another request; choose another run_id"
                );
                return Ok(refused(&ApiError::new(409, "run_exists", message)));
            }
        };
        let body = match wait_ms {
            None => "{}".to_string(),
            Some(wait_ms) => {
                self.wait_for_end(wait_ms).await?;
                self.load(budget).await?;
                text::json_text(&self.view()?)
            }
        };
        Ok(match is_new {
            true => RunResponse::Created(body),
            false => RunResponse::Done(body),
        })
    }

    async fn respond_to_cancel(
        &self,
        budget: &SubrequestBudget,
        caller: Option<&Caller>,
        event: Event,
        body: ResponseBody,
    ) -> Result<RunResponse> {
        let check = |run: &Run| scope::check_run(caller, &run.header.workflow_id);
        match self.feed_first(budget, check, event).await? {
            None => Ok(refused(&ApiError::not_found("the run"))),
            Some(fed) => self.respond_to_fed(fed, body),
        }
    }

    /// The order of the attempt that was claimed. There is none if the token could not begin; its failure is recorded.
    fn claim_response(&self) -> Result<RunResponse> {
        let Some(order) = self.take_claimed() else {
            let error = ApiError::new(409, "stale_attempt", "the attempt did not begin");
            return Ok(refused(&error));
        };
        self.log_limit(&order);
        let order = self.order_text(&order)?;
        Ok(RunResponse::Done(order))
    }

    async fn wait_for_end(&self, millis: u64) -> Result<()> {
        if millis > 0 && !self.with_run(|run| run.header.status.is_terminal())? {
            self.platform.wait_for_end(millis).await;
        }
        Ok(())
    }

    fn view(&self) -> Result<Value> {
        let mut view = self.with_run(|run| views::run(run, self.platform.now()))?;
        if self.with_run(Run::has_events)? {
            let lateness = self.platform.storage().lateness()?;
            if !lateness.is_empty() {
                view["timeout_enforcement_latency_seconds"] = recovery::lateness(&lateness);
            }
        }
        Ok(view)
    }
}
