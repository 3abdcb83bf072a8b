//! Consumer of the task queue: each message names an attempt, which is claimed from its run's object, run by an executor and
//! reported back. Heartbeats tell the object that the attempt is still worked on and how far it is, and the consumer that it
//! still counts.

use std::pin::pin;

use futures_util::future::{Either, join_all, select};
use serde_json::json;
use worker::{Env, MessageBatch, MessageExt};

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::protocol::run::{HeartbeatResponse, RunRequest, RunResponse};
use crate::protocol::task::{PROGRESS_LINE, StepProgress, TaskMessage, TaskProgress, TaskReport};
use crate::worker::platform::executor_client::Intervals;
use crate::worker::platform::executor_stream::{ExecutorStream, Incoming};
use crate::worker::platform::http_client;
use crate::worker::platform::{deadline, log_error, now, number};
use crate::worker::run_client::{CallError, RunClient};

/// How long a run's object may take to answer.
const OBJECT_MS: u64 = 10_000;
/// How often a report is sent before the attempt is left to the object's watch.
const REPORTS: u32 = 5;
const HEARTBEAT_MS: u64 = 30_000;
const PROGRESS_MS: u64 = 1_000;
/// When to send the next heartbeat to an object that should know by now that its run is over, and answers otherwise or not at
/// all: its clock may be behind ours.
const RECHECK_MS: u64 = 250;

/// How often the holder of an attempt sends a heartbeat, and an executor on its connection.
pub fn heartbeat_ms(env: &Env) -> u64 {
    number(env, "CURFEW_HEARTBEAT_MS").unwrap_or(HEARTBEAT_MS)
}

/// How often an executor shall send a heartbeat, and may send progress.
pub fn intervals(env: &Env) -> Intervals {
    Intervals {
        heartbeat_ms: heartbeat_ms(env),
        progress_ms: number(env, "CURFEW_PROGRESS_MS").unwrap_or(PROGRESS_MS),
    }
}

/// Whether the queue delivers the message again.
enum AckDecision {
    Ack,
    /// The object could not be reached.
    Retry,
}

pub async fn consume(batch: MessageBatch<()>, env: &Env) {
    let messages: Vec<_> = batch.raw_iter().collect();
    join_all(messages.iter().map(|message| async move {
        let text = message.body().as_string().unwrap_or_default();
        match from_json::<TaskMessage>(&text) {
            Ok(task) => match run_attempt(&task, message.id(), env).await {
                AckDecision::Ack => message.ack(),
                AckDecision::Retry => message.retry(),
            },
            Err(error) => {
                log_error("ring_unreadable", &error.to_string());
                message.ack();
            }
        }
    }))
    .await;
}

/// `claimant` is the id of the message, which is the same at every delivery: the object recognises a claim that is repeated
/// because its response was lost.
async fn run_attempt(task: &TaskMessage, claimant: String, env: &Env) -> AckDecision {
    let object = RunClient::new(env, &task.run_id, OBJECT_MS);
    let claim = RunRequest::Claim {
        token_id: task.token_id.clone(),
        epoch: task.epoch,
        claimant: Some(claimant),
    };
    let order = match send(&object, &claim).await {
        Some(RunResponse::Done(order)) => order,
        // The attempt was claimed by another message or is not needed any more.
        Some(RunResponse::NotFound(_) | RunResponse::Conflict(_)) => return AckDecision::Ack,
        Some(RunResponse::Created(_) | RunResponse::TooLarge(_) | RunResponse::Refused { .. }) | None => {
            return AckDecision::Retry;
        }
    };
    let lost = |message: String| RunRequest::ReportLost {
        token_id: task.token_id.clone(),
        epoch: task.epoch,
        message,
    };
    let outcome = match execute_with_heartbeats(&object, task, &order, env).await {
        Some(Ok(text)) => match report_of(&text, task) {
            Some(report) => RunRequest::Report(report),
            None => lost("the executor's answer is no report of this attempt".into()),
        },
        Some(Err(message)) => lost(message),
        None => return AckDecision::Ack,
    };
    for attempt in 0..REPORTS {
        let response = send(&object, &outcome).await;
        if let Some(RunResponse::Done(_) | RunResponse::NotFound(_) | RunResponse::Conflict(_)) = response {
            return AckDecision::Ack;
        }
        deadline::sleep(1_000 << attempt).await;
    }
    // The object's watch over the attempt finds out.
    let attempt = json!({"token_id": task.token_id, "epoch": task.epoch});
    log_error("report_failed", &attempt.to_string());
    AckDecision::Ack
}

/// The object would refuse any other report without recording why the attempt is silent.
fn report_of(text: &str, task: &TaskMessage) -> Option<TaskReport> {
    let report: TaskReport = from_json(text).ok()?;
    (report.token_id == task.token_id && report.epoch == task.epoch).then_some(report)
}

/// The executor's report, or why there is none; `None` when the object answered that the attempt does not count any more.
async fn execute_with_heartbeats(
    object: &RunClient<'_>,
    task: &TaskMessage,
    order: &str,
    env: &Env,
) -> Option<Result<String, String>> {
    let intervals = intervals(env);
    let heartbeat = |progress: Option<StepProgress>| RunRequest::Heartbeat {
        token_id: task.token_id.clone(),
        epoch: task.epoch,
        progress,
    };
    // The executor does not stop when the run ends, because the run may be extended. A heartbeat at that moment finds out.
    let mut run_ends_at = run_ends_at(order);
    let Some(executor) = http_client::service(env, "EXECUTOR") else {
        return Some(Err("no service binding EXECUTOR is configured".into()));
    };
    let mut stream = ExecutorStream::open(&executor, intervals, order);
    let mut latest = StepProgress::default();
    let mut heartbeat_at = now().saturating_add(intervals.heartbeat_ms);
    loop {
        let until_end = run_ends_at.map(|at| at.saturating_sub(now()).max(RECHECK_MS));
        let until_heartbeat = heartbeat_at.saturating_sub(now());
        let pause_ms = until_end.map_or(until_heartbeat, |millis| millis.min(until_heartbeat));
        let progress = match select(pin!(stream.next()), deadline::sleep(pause_ms)).await {
            Either::Left((Incoming::Lines(lines), _)) => {
                let (progress, report) = read_lines(&lines, std::mem::take(&mut latest));
                latest = progress;
                if let Some(report) = report {
                    return Some(Ok(report));
                }
                // The whole of it: the object may have left memory since the last one.
                Some(latest.clone())
            }
            Either::Left((Incoming::Closed(reason), _)) => {
                return Some(Err(
                    reason.unwrap_or_else(|| "the executor ended without an answer".into())
                ));
            }
            Either::Right(_) => None,
        };
        heartbeat_at = now().saturating_add(intervals.heartbeat_ms);
        match send(object, &heartbeat(progress)).await {
            Some(RunResponse::NotFound(_) | RunResponse::Conflict(_)) => return None,
            Some(RunResponse::Done(body)) => run_ends_at = self::run_ends_at(&body),
            Some(RunResponse::Created(_) | RunResponse::TooLarge(_) | RunResponse::Refused { .. }) | None => {
            }
        }
    }
}

/// The progress after these lines, and the report if one of them is it.
fn read_lines(lines: &str, mut latest: StepProgress) -> (StepProgress, Option<String>) {
    for line in lines.split('\n') {
        let Some(json) = line.strip_prefix(PROGRESS_LINE) else {
            return (latest, Some(line.to_string()));
        };
        // Progress that cannot be read changes nothing: the report still counts.
        if let Ok(read) = from_json::<TaskProgress>(json) {
            latest = read.progress.after(latest.partial);
        }
    }
    (latest, None)
}

/// Of an order, or of the response to a heartbeat.
fn run_ends_at(text: &str) -> Option<Millis> {
    let read: HeartbeatResponse = from_json(text).unwrap_or_default();
    read.run_ends_at
}

/// `None` if there was no response.
async fn send(object: &RunClient<'_>, request: &RunRequest) -> Option<RunResponse> {
    match object.send(request).await {
        Ok(response) => Some(response),
        Err(CallError::TimedOut) => None,
        Err(error) => {
            log_error("object_unreachable", &String::from(error));
            None
        }
    }
}
