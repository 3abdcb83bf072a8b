//! Attempts out of the queue: each is claimed from its run's object, run by an executor, and reported back. While it runs
//! the object hears that it lives, and says when nobody needs it any more.

use std::pin::pin;

use futures_util::future::{Either, join_all, select};
use serde::{Deserialize, Serialize};
use serde_json::json;
use worker::{Env, MessageBatch, MessageExt};

use crate::base::time::Millis;
use crate::protocol::task::TaskReport;
use crate::worker::platform::http_client::{self, Peer, Request};
use crate::worker::platform::{deadline, now, number};
use crate::worker::run_object::object::report;

/// How long a run's object may take to answer.
const OBJECT_MS: u64 = 10_000;
/// How often a report is sent before it is left to the watch.
const REPORTS: u32 = 5;
/// How often the holder of an attempt sends a heartbeat.
pub const HEARTBEAT: &str = "CURFEW_HEARTBEAT_MS";
pub const HEARTBEAT_MS: u64 = 30_000;
/// How soon an object is asked again that should know by now that its run is over, and says otherwise or nothing: its clock
/// may be behind ours.
const AGAIN_MS: u64 = 250;

/// What rings: which attempt of which run. All else is in the run's object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ring {
    pub run_id: String,
    pub token_id: String,
    pub epoch: u64,
}

/// What is to become of the message.
enum AckDecision {
    Done,
    /// The object could not be asked: somebody else may have more luck.
    Again,
}

pub async fn consume(batch: MessageBatch<()>, env: &Env) {
    let messages: Vec<_> = batch.raw_iter().collect();
    join_all(messages.iter().map(|message| async move {
        let text = message.body().as_string().unwrap_or_default();
        match serde_json::from_str::<Ring>(&text) {
            Ok(ring) => match take(&ring, &message.id(), env).await {
                AckDecision::Done => message.ack(),
                AckDecision::Again => message.retry(),
            },
            Err(error) => {
                report("ring_unreadable", &error.to_string());
                message.ack();
            }
        }
    }))
    .await;
}

/// What a consumer reads of an order, and of the answer to a heartbeat.
#[derive(Debug, Default, Deserialize)]
struct Ending {
    #[serde(default)]
    run_ends_at: Option<Millis>,
}

impl Ending {
    fn of(text: &str) -> Option<Millis> {
        let ending: Ending = serde_json::from_str(text).unwrap_or_default();
        ending.run_ends_at
    }
}

/// `message` is the same whenever the queue delivers it: the object knows by it who asks again because no answer came.
async fn take(ring: &Ring, message: &str, env: &Env) -> AckDecision {
    let object = RunOf {
        env,
        run_id: &ring.run_id,
    };
    let name = json!({"token_id": ring.token_id, "epoch": ring.epoch}).to_string();
    let claim = json!({"token_id": ring.token_id, "epoch": ring.epoch, "claimant": message}).to_string();
    let order = match ask(&object, "/claim", &claim).await {
        Some((200, order)) => order,
        // Somebody else has it, or nobody needs it: the object knows better than the message.
        Some((404 | 409, _)) => return AckDecision::Done,
        Some(_) | None => return AckDecision::Again,
    };
    let outcome = match run(&object, &name, &order, env).await {
        Some(Ok(text)) if is_report_of(&text, ring) => ("/report", text),
        Some(Ok(_)) => {
            let message = "the executor's answer is no report of this attempt";
            let body = json!({"token_id": ring.token_id, "epoch": ring.epoch, "message": message});
            ("/lost", body.to_string())
        }
        Some(Err(message)) => (
            "/lost",
            json!({"token_id": ring.token_id, "epoch": ring.epoch, "message": message}).to_string(),
        ),
        // Nobody needs it any more.
        None => return AckDecision::Done,
    };
    for attempt in 0..REPORTS {
        if let Some((200 | 404 | 409, _)) = ask(&object, outcome.0, &outcome.1).await {
            return AckDecision::Done;
        }
        deadline::sleep(1_000 << attempt).await;
    }
    // The watch over the attempt finds out.
    report("report_failed", &name);
    AckDecision::Done
}

/// The object would refuse anything else, and nobody would know why the attempt is silent.
fn is_report_of(text: &str, ring: &Ring) -> bool {
    serde_json::from_str::<TaskReport>(text)
        .is_ok_and(|report| report.token_id == ring.token_id && report.epoch == ring.epoch)
}

/// The executor's report, or why there is none; `None` when the object said that the attempt does not count any more.
async fn run(object: &RunOf<'_>, name: &str, order: &str, env: &Env) -> Option<Result<String, String>> {
    let heartbeat_ms = number(env, HEARTBEAT).unwrap_or(HEARTBEAT_MS);
    // The executor is not told to stop when the run ends, because the run may be extended: at that moment the object is
    // asked, and it knows.
    let mut run_ends_at = Ending::of(order);
    let Some(executor) = http_client::service(env, "EXECUTOR") else {
        return Some(Err("no service binding EXECUTOR is configured".into()));
    };
    let mut execution = pin!(execute(&executor, order));
    loop {
        let until_end = run_ends_at.map(|at| at.saturating_sub(now()).max(AGAIN_MS));
        let pause_ms = until_end.into_iter().chain([heartbeat_ms]).min();
        match select(execution, deadline::sleep(pause_ms.unwrap_or(heartbeat_ms))).await {
            Either::Left((outcome, _)) => return Some(outcome),
            Either::Right((_, running)) => {
                execution = running;
                match ask(object, "/heartbeat", name).await {
                    Some((404 | 409, _)) => return None,
                    Some((200, answer)) => run_ends_at = Ending::of(&answer),
                    Some(_) | None => {}
                }
            }
        }
    }
}

async fn execute(executor: &Peer, order: &str) -> Result<String, String> {
    let request = Request::post("http://executor/execute", order);
    let answer = request.send(executor).await?;
    match answer.status() {
        200 => Ok(answer.text().await?),
        status => Err(format!("the executor answered with status {status}")),
    }
}

/// The object of a run, by its name.
struct RunOf<'a> {
    env: &'a Env,
    run_id: &'a str,
}

impl RunOf<'_> {
    /// A stub for each question: one whose object left memory while it was asked stays broken.
    fn stub(&self) -> Result<Peer, String> {
        let runs = self.env.durable_object("RUNS");
        let stub = runs.and_then(|runs| runs.get_by_name(self.run_id));
        stub.map(|stub| stub.into_rpc())
            .map_err(|error| error.to_string())
    }
}

/// Status and body; `None` if there was no answer.
async fn ask(object: &RunOf<'_>, door: &str, body: &str) -> Option<(u16, String)> {
    let url = format!("http://run{door}");
    let asked = async {
        let stub = object.stub()?;
        let answer = Request::post(&url, body).send(&stub).await?;
        let status = answer.status();
        Ok::<_, String>((status, answer.text().await?))
    };
    match deadline::within(OBJECT_MS, asked).await {
        Some(Ok(answer)) => Some(answer),
        Some(Err(message)) => {
            report("object_unreachable", &message);
            None
        }
        None => None,
    }
}
