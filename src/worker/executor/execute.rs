//! The executor Worker: runs the task of an order and reports its result. Between orders it keeps only caches.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use worker::Env;

use crate::base::failure::{Failure, FailureClass};
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::breaker::machine::CallOutcome;
use crate::definition::action::ActionKind;
use crate::definition::shell::Runner;
use crate::definition::task::Task;
use crate::protocol::task::{PROGRESS_LINE, RetryReport, TaskOrder, TaskProgress, TaskReport};
use crate::task::address::ALLOW_PRIVATE;
use crate::task::breaker::{Admission, Permit};
use crate::task::progress::ProgressCell;
use crate::task::redirect::Reach;
use crate::task::run_task::{Assignment, run_task};
use crate::task::runtime::{ActionCall, Runtime, Stopped};
use crate::task::secret_hosts::SECRETS;
use crate::task::secrets::SecretStore;
use crate::task::task_cache::TaskCache;
use crate::task::task_result::TaskResult;
use crate::task::trace::TaskTrace;
use crate::worker::executor::breaker_client;
use crate::worker::executor::http;
use crate::worker::executor::llm::llm_call;
use crate::worker::executor::mcp_client;
use crate::worker::executor::shell_client;
use crate::worker::platform;
use crate::worker::platform::http_client::{self, Clock, Peer};
use crate::worker::platform::inline_executor;

thread_local! {
    static TASKS: RefCell<TaskCache> = RefCell::default();
    /// The bindings of a deployment, and its secrets, do not change while an isolate runs.
    static SERVICES: RefCell<BTreeMap<String, Peer>> = RefCell::default();
    static SECRET_STORE: RefCell<Option<Rc<SecretStore>>> = RefCell::default();
    /// The tasks under way, by the id they were given.
    static RUNNING: RefCell<BTreeMap<u32, Rc<RunningTask>>> = RefCell::default();
}

#[wasm_bindgen]
extern "C" {
    /// Where reports go, in `executor_server.mjs`.
    pub type ReportSink;

    #[wasm_bindgen(method)]
    pub(super) fn report(this: &ReportSink, id: u32, report: &str);

    #[wasm_bindgen(method)]
    pub(super) fn fail(this: &ReportSink, message: &str);

    #[wasm_bindgen(method, getter)]
    fn clock(this: &ReportSink) -> Clock;
}

/// Runs an order. Order and report are text, so that no request and no response crosses into wasm. A task that waits for
/// nothing reports before this returns.
#[wasm_bindgen]
pub fn execute(id: u32, order: String, env: Env, sink: ReportSink) {
    inline_executor::run(id, async move {
        match report(id, &order, &env, &sink.clock()).await {
            Ok(report) => sink.report(id, &report),
            Err(error) => sink.fail(&error.to_string()),
        }
    });
}

/// Ends the task of an order: its report is not needed any more.
#[wasm_bindgen]
pub fn cancel(id: u32) {
    inline_executor::cancel(id);
}

/// The line to send for a task whose progress has changed since the last call.
#[wasm_bindgen]
pub fn progress(id: u32) -> Option<String> {
    let task = RUNNING.with_borrow(|tasks| tasks.get(&id).cloned())?;
    let line = TaskProgress {
        progress: task.progress.take_change(task.secrets.redactor())?,
        token_id: task.token_id.clone(),
        epoch: task.epoch,
    };
    let json = serde_json::to_string(&line).expect("strings and numbers are JSON");
    Some(format!("{PROGRESS_LINE}{json}"))
}

/// A task whose progress may be asked for.
struct RunningTask {
    token_id: String,
    epoch: u64,
    progress: ProgressCell,
    secrets: Rc<SecretStore>,
}

/// Lists a task until it has ended or was cancelled.
struct Listed(u32, Rc<RunningTask>);

impl Listed {
    fn new(id: u32, order: &TaskOrder<'_>, secrets: Rc<SecretStore>) -> Listed {
        let task = Rc::new(RunningTask {
            token_id: order.token_id.to_string(),
            epoch: order.epoch,
            progress: ProgressCell::default(),
            secrets,
        });
        RUNNING.with_borrow_mut(|tasks| tasks.insert(id, Rc::clone(&task)));
        Listed(id, task)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|tasks| tasks.remove(&self.0));
    }
}

async fn report(id: u32, order: &str, env: &Env, clock: &Clock) -> serde_json::Result<String> {
    let order: TaskOrder = from_json(order)?;
    serde_json::to_string(&run(id, &order, env, clock).await)
}

async fn run(id: u32, order: &TaskOrder<'_>, env: &Env, clock: &Clock) -> TaskReport {
    let result = match parse(order) {
        Ok((task, input)) => {
            let listed = Listed::new(id, order, secret_store(env));
            let runtime = WorkerRuntime {
                env,
                order,
                clock,
                task: &listed.1,
            };
            run_task(&runtime, assignment(order, &task, &input)).await
        }
        Err(message) => TaskResult::failed(Failure::permanent("invalid_order", message)),
    };
    result.into_report(order.token_id.to_string(), order.epoch)
}

fn parse(order: &TaskOrder) -> Result<(Rc<Task>, Value), String> {
    let task = TASKS.with_borrow_mut(|tasks| tasks.task(order.task.get()))?;
    let input = serde_json::from_str(order.input.get());
    Ok((task, input.map_err(|error| error.to_string())?))
}

fn assignment<'a>(order: &TaskOrder, task: &'a Task, input: &'a Value) -> Assignment<'a> {
    Assignment {
        task,
        input,
        deadline_at: order.deadline_at,
        run_ends_at: order.run_ends_at,
        resume_from: order.checkpoint(),
        trace: TaskTrace::of(order),
        callback: match order.callback_url {
            Some(url) => json!({"url": url}),
            None => Value::Null,
        },
        action_timeouts: order.action_timeouts.unwrap_or_default(),
    }
}

/// The platform as a task sees it.
struct WorkerRuntime<'a> {
    env: &'a Env,
    order: &'a TaskOrder<'a>,
    clock: &'a Clock,
    task: &'a RunningTask,
}

/// All listed secrets, read once.
pub(super) fn secret_store(env: &Env) -> Rc<SecretStore> {
    SECRET_STORE.with_borrow_mut(|store| {
        let read = || {
            let setting = platform::json_variable(env, SECRETS).unwrap_or_default();
            let store = SecretStore::new(&setting, |name| platform::variable(env, name));
            if let Some(message) = store.invalid() {
                platform::log_error("invalid_setting", &format!("{SECRETS} is invalid: {message}"));
            }
            Rc::new(store)
        };
        store.get_or_insert_with(read).clone()
    })
}

pub(super) fn may_call_private(env: &Env) -> bool {
    platform::variable(env, ALLOW_PRIVATE).as_deref() == Some("on")
}

impl WorkerRuntime<'_> {
    fn may_call_private(&self) -> bool {
        may_call_private(self.env)
    }

    fn service(&self, binding: &str) -> Result<Peer, Failure> {
        if let Some(peer) = SERVICES.with_borrow(|services| services.get(binding).cloned()) {
            return Ok(peer);
        }
        let peer = http_client::service(self.env, binding).ok_or_else(|| {
            Failure::permanent(
                "no_binding",
                format!("the executor has no service binding \"{binding}\"; add it to its wrangler file"),
            )
        })?;
        SERVICES.with_borrow_mut(|services| services.insert(binding.to_string(), peer.clone()));
        Ok(peer)
    }
}

impl Runtime for WorkerRuntime<'_> {
    fn now(&self) -> Millis {
        platform::now()
    }

    async fn sleep(&self, millis: u64) {
        platform::deadline::sleep(millis).await;
    }

    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped> {
        let key = call.idempotency_key(self.order.idempotency_key);
        match &call.action.kind {
            ActionKind::HttpRequest(request) => {
                http::http_request(request, self.may_call_private(), self.clock, &call, &key).await
            }
            ActionKind::LlmCall(llm) => {
                let progress = &self.task.progress;
                llm_call(llm, self.env, self.may_call_private(), &call, &key, progress).await
            }
            ActionKind::McpTool(tool) => {
                mcp_client::mcp_tool(tool, self.may_call_private(), &call, &key).await
            }
            ActionKind::ServiceCall(service) => {
                let peer = self.service(&service.binding)?;
                http::service_call(service, &peer, self.clock, &call, &key).await
            }
            ActionKind::Shell(shell) => {
                let (peer, reach) = match &shell.runner {
                    Runner::Binding(name) => (self.service(name)?, Reach::Binding(name)),
                    Runner::Url(_) => {
                        let private = self.may_call_private();
                        (http_client::internet(), Reach::Internet { private })
                    }
                };
                shell_client::shell(shell, &peer, self.clock, reach, &call, &key).await
            }
            ActionKind::UpdateContext(_)
            | ActionKind::Assert(_)
            | ActionKind::EmitEvent(_)
            | ActionKind::WorkflowCall(_) => {
                unreachable!("the task performs these itself")
            }
        }
    }

    fn random(&self) -> f64 {
        platform::random()
    }

    fn secrets(&self) -> &SecretStore {
        &self.task.secrets
    }

    fn progress(&self) -> Option<&ProgressCell> {
        Some(&self.task.progress)
    }

    async fn admit(&self, key: &str, deadline_at: Option<Millis>) -> Admission {
        breaker_client::admit(self.env, key, deadline_at).await
    }

    async fn report_to_breaker(&self, key: &str, permit: Permit, outcome: CallOutcome) {
        breaker_client::report(self.env, key, permit, outcome).await;
    }

    fn note_retry(&self, step_ref: &str, retry: &RetryReport) {
        let mut line = json!({
            "level": "warn",
            "event": "action_retried",
            "run_id": self.order.run_id,
            "token_id": self.order.token_id,
            "epoch": self.order.epoch,
            "step_ref": step_ref,
            "class": retry.class,
            "code": retry.code,
            "delay_ms": retry.delay_ms,
        });
        if retry.class == FailureClass::RateLimited {
            line["event"] = json!("rate_limited");
        }
        platform::log(line);
    }
}
