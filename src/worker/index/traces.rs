//! Exports the traces of ended runs to an OpenTelemetry receiver. The index never waits for it: rows are saved before, and a
//! receiver that does not answer is left alone for a while.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use worker::Env;

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::index::run_summary::EndedRun;
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::trace::{TraceCursor, TracePage};
use crate::task::retry::retry_after_ms;
use crate::trace::receiver::{self, ExportOutcome, RecentExports};
use crate::trace::requests::{ExportRequest, ExportRequests};
use crate::trace::trace_builder::TraceBuilder;
use crate::worker::platform;
use crate::worker::platform::deadline;
use crate::worker::platform::http_client::{self, Request, internet};
use crate::worker::run_client::RunClient;

const URL: &str = "CURFEW_OTLP_URL";
const HEADERS: &str = "CURFEW_OTLP_HEADERS";
const SERVICE_NAME: &str = "CURFEW_OTLP_SERVICE";

/// How long a run's object, and the receiver, may take to respond.
const OBJECT_MS: u64 = 5_000;
const RECEIVER_MS: u64 = 5_000;
/// No run is begun later than this after the first one. The rest is retried with its message.
const BATCH_MS: u64 = 10_000;
/// Pages that are read for one batch before its other runs are left to the next.
const READS_MAX: usize = 500;
/// Pages of one run, far more than its limits allow.
const PAGES_MAX: usize = 10_000;
/// The platform lets an invocation wait for this many connections at once.
const CONCURRENT_READS: usize = 6;
const RESPONSE_BYTES: usize = 64 << 10;

/// Where traces go.
struct Receiver {
    url: String,
    headers: Vec<(String, String)>,
    service_name: String,
    /// The first delay before a trace is sent again.
    repeat_ms: u64,
}

thread_local! {
    /// Variables do not change during the life of an isolate.
    static RECEIVER: RefCell<Option<Option<Rc<Receiver>>>> = const { RefCell::new(None) };
    static EXPORTED: RefCell<RecentExports> = RefCell::default();
    /// Until when nothing is sent, because the receiver did not answer or asked for a pause.
    static PAUSED_UNTIL: Cell<Millis> = const { Cell::new(0) };
}

/// Whether the spans of ended runs are exported.
pub fn is_configured(env: &Env) -> bool {
    configured(env).is_some()
}

fn configured(env: &Env) -> Option<Rc<Receiver>> {
    RECEIVER.with_borrow_mut(|receiver| receiver.get_or_insert_with(|| read(env)).clone())
}

/// Errors are logged once per isolate. Traces are off then: without its headers a receiver would refuse them.
fn read(env: &Env) -> Option<Rc<Receiver>> {
    let setting = platform::variable(env, URL).filter(|url| !url.trim().is_empty())?;
    let report = |name: &str, message: String| {
        let message = format!("{name} is invalid, no traces are sent: {message}");
        platform::log_error("invalid_setting", &message);
    };
    let url = receiver::traces_url(&setting)
        .map_err(|message| report(URL, message))
        .ok()?;
    let headers = receiver::headers(platform::json_variable(env, HEADERS).as_deref());
    let headers = headers.map_err(|message| report(HEADERS, message)).ok()?;
    let service_name = platform::variable(env, SERVICE_NAME).filter(|name| !name.trim().is_empty());
    Some(Rc::new(Receiver {
        url,
        headers,
        service_name: service_name.unwrap_or_else(|| "curfew".into()),
        repeat_ms: platform::number(env, "CURFEW_OTLP_REPEAT_MS").unwrap_or(receiver::REPEAT_MS),
    }))
}

/// How long to wait before the traces of a message are sent again. `None`: they are dropped.
pub fn retry_delay_seconds(env: &Env, age_ms: u64, asked_ms: Option<u64>) -> Option<u32> {
    let repeat_ms = configured(env).map_or(receiver::REPEAT_MS, |receiver| receiver.repeat_ms);
    receiver::retry_delay_seconds(age_ms, asked_ms, repeat_ms)
}

/// What could not be exported: the message of each, and the wait that the receiver asked for.
pub type Failed = BTreeMap<usize, Option<u64>>;

/// Exports the runs whose ends the messages report.
pub async fn export(env: &Env, ended: Vec<(usize, EndedRun)>) -> Failed {
    let Some(receiver) = configured(env) else {
        return Failed::new();
    };
    let is_new = |run: &EndedRun| !EXPORTED.with_borrow(|exported| exported.contains(&run.key()));
    let ended: Vec<(usize, EndedRun)> = ended.into_iter().filter(|(_, run)| is_new(run)).collect();
    if ended.is_empty() {
        return Failed::new();
    }
    let mut export = Export {
        env,
        requests: ExportRequests::new(&receiver.service_name),
        receiver,
        began_at: platform::now(),
        failed: BTreeMap::new(),
        is_stopped: PAUSED_UNTIL.get() > platform::now(),
        asked_ms: None,
        reads: 0,
        spans: 0,
        sent: 0,
    };
    export.all(&ended).await;
    export.finish(&ended)
}

/// The export of one batch. Runs are known by their index in it.
struct Export<'a> {
    env: &'a Env,
    receiver: Rc<Receiver>,
    requests: ExportRequests<usize>,
    began_at: Millis,
    /// Runs that are to be exported again.
    failed: BTreeMap<usize, Option<u64>>,
    /// Nothing more is sent in this batch.
    is_stopped: bool,
    asked_ms: Option<u64>,
    reads: usize,
    spans: usize,
    sent: usize,
}

impl Export<'_> {
    async fn all(&mut self, ended: &[(usize, EndedRun)]) {
        let indexes: Vec<usize> = (0..ended.len()).collect();
        for chunk in indexes.chunks(CONCURRENT_READS) {
            if self.is_over() {
                self.failed
                    .extend(chunk.iter().map(|index| (*index, self.asked_ms)));
                continue;
            }
            let env = self.env;
            let first = chunk
                .iter()
                .map(|index| read_page(env, &ended[*index].1, TraceCursor::START));
            for (index, page) in chunk.iter().zip(join_all(first).await) {
                self.run(*index, &ended[*index].1, page).await;
            }
        }
        if let Some(request) = self.requests.take() {
            self.send(request).await;
        }
    }

    fn is_over(&self) -> bool {
        let is_spent = self.reads >= READS_MAX;
        self.is_stopped || is_spent || platform::now().saturating_sub(self.began_at) > BATCH_MS
    }

    async fn run(&mut self, index: usize, run: &EndedRun, first: Result<TracePage, String>) {
        let mut builder = TraceBuilder::default();
        let mut page = first;
        for _ in 0..PAGES_MAX {
            self.reads += 1;
            let read = match page {
                Ok(_) if self.is_stopped => {
                    self.failed.insert(index, self.asked_ms);
                    return;
                }
                Ok(read) => read,
                Err(message) => {
                    platform::log(json!({
                        "level": "warn", "event": "trace_unread", "run_id": run.run_id, "message": message,
                    }));
                    self.failed.insert(index, None);
                    return;
                }
            };
            let next = read.next;
            for span in builder.add(read) {
                self.spans += 1;
                if let Some(request) = self.requests.add(&index, &span) {
                    self.send(request).await;
                }
            }
            let Some(next) = next else {
                return;
            };
            page = read_page(self.env, run, next).await;
        }
    }

    async fn send(&mut self, request: ExportRequest<usize>) {
        if self.is_stopped {
            return self.retry(&request, self.asked_ms);
        }
        let spans = request.spans;
        self.sent += 1;
        match post(&self.receiver, &request.body).await {
            Ok((ExportOutcome::Accepted, _)) => {}
            Ok((ExportOutcome::AcceptedInPart { rejected }, _)) => platform::log(json!({
                "level": "warn", "event": "spans_rejected", "spans": spans, "rejected": rejected,
            })),
            Ok((ExportOutcome::Refused, status)) => platform::log(json!({
                "level": "error", "event": "traces_refused", "spans": spans, "status": status,
            })),
            Ok((ExportOutcome::Retry { after_ms }, status)) => {
                self.stop(&request, after_ms, json!({"status": status}));
            }
            Err(message) => self.stop(&request, None, json!({"message": message})),
        }
    }

    fn stop(&mut self, request: &ExportRequest<usize>, asked_ms: Option<u64>, mut line: Value) {
        let pause_ms = asked_ms
            .unwrap_or(0)
            .clamp(self.receiver.repeat_ms, receiver::PAUSE_MAX_MS);
        PAUSED_UNTIL.set(platform::now().saturating_add(pause_ms));
        self.is_stopped = true;
        self.asked_ms = asked_ms;
        line["level"] = json!("warn");
        line["event"] = json!("traces_unsent");
        line["spans"] = json!(request.spans);
        platform::log(line);
        self.retry(request, asked_ms);
    }

    fn retry(&mut self, request: &ExportRequest<usize>, asked_ms: Option<u64>) {
        self.failed
            .extend(request.sources.iter().map(|index| (*index, asked_ms)));
    }

    fn finish(self, ended: &[(usize, EndedRun)]) -> Failed {
        let exported = ended
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.failed.contains_key(index));
        let exported: Vec<String> = exported.map(|(_, (_, run))| run.key()).collect();
        platform::log(json!({
            "level": "info", "event": "traces_exported", "runs": exported.len(), "again": self.failed.len(),
            "spans": self.spans, "requests": self.sent,
        }));
        EXPORTED.with_borrow_mut(|recent| exported.into_iter().for_each(|key| recent.add(key)));
        let failed = self.failed.into_iter();
        failed
            .map(|(index, asked_ms)| (ended[index].0, asked_ms))
            .collect()
    }
}

async fn read_page(env: &Env, run: &EndedRun, cursor: TraceCursor) -> Result<TracePage, String> {
    let request = RunRequest::ReadTrace { end: run.end, cursor };
    match RunClient::new(env, &run.run_id, OBJECT_MS).send(&request).await? {
        RunResponse::Done(text) => {
            from_json(&text).map_err(|error| format!("the run's object answered what is no page: {error}"))
        }
        // It was deleted: there is nothing to export.
        RunResponse::NotFound(_) => Ok(TracePage::default()),
        other => {
            let (status, _) = other.into_parts();
            Err(format!("the run's object answered with status {status}"))
        }
    }
}

/// What came of a request, and its status.
async fn post(receiver: &Receiver, body: &str) -> Result<(ExportOutcome, u16), String> {
    let request = Request {
        url: &receiver.url,
        method: "POST",
        headers: &receiver.headers,
        body: Some(body),
    };
    let exchange = async {
        let response = request.send(&internet()).await?;
        let status = response.status();
        let retry_after = response.header("retry-after");
        let mut bytes = Vec::new();
        // The body only tells of spans that were rejected.
        let _ = response.read_into(&mut bytes, RESPONSE_BYTES).await;
        let retry_after = retry_after.and_then(|header| retry_after_ms(&header, platform::now()));
        Ok((receiver::outcome(status, &bytes, retry_after), status))
    };
    let ended: Option<Result<_, http_client::Error>> = deadline::within(RECEIVER_MS, exchange).await;
    match ended {
        Some(answered) => answered.map_err(String::from),
        None => Err("no answer in time".into()),
    }
}
