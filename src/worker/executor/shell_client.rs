//! `shell`: sends a command to its runner and waits until it has ended.

use serde_json::Value;

use crate::definition::shell::Shell;
use crate::task::redirect::Reach;
use crate::task::runtime::{ActionCall, Stopped};
use crate::task::shell::{CommandEnd, order, outcome};
use crate::worker::executor::http::{check_status, fetch_final};
use crate::worker::platform::http_client::{Clock, Peer};
use crate::worker::platform::{deadline, now};

pub async fn shell(
    shell: &Shell,
    peer: &Peer,
    clock: &Clock,
    reach: Reach<'_>,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = order(shell, call, key, now())?;
    reach.check(&outgoing, call)?;
    let received = match fetch_final(peer, clock, outgoing, reach, None, call).await {
        Ok(received) => received,
        // The start of the runner's response is not the start of the command's output.
        Err(Stopped::Deadline { .. }) => return Err(Stopped::Deadline { partial: None }),
        Err(Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. }) => {
            return Err(Stopped::Failed(failure));
        }
    };
    check_status(&received, None, call)?;
    let left_ms = call.deadline_at.map(|at| at.saturating_sub(now()));
    match outcome(shell, &received.text, call.secrets.redactor(), left_ms)? {
        CommandEnd::Result(result) => Ok(result),
        CommandEnd::OutOfTime(text) => {
            // The command's limit is a little shorter than the call's: a deadline is reported when it has passed, not before.
            let left_ms = left_ms.expect("only a call with a deadline runs out of time");
            deadline::sleep(left_ms).await;
            Err(Stopped::Deadline { partial: Some(text) })
        }
    }
}
