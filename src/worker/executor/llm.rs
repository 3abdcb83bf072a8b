//! Asks the question and takes the answer in, under one deadline.

use std::ops::ControlFlow;

use serde_json::Value;
use worker::Env;

use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::definition::llm::LlmCall;
use crate::task::llm::request::{self, Request};
use crate::task::llm::response_decoder::{Progress, ResponseDecoder};
use crate::task::llm::{binding_failure, result};
use crate::task::redirect::Reach;
use crate::task::status::{self, Answered};
use crate::task::steps::{ActionCall, Stopped};
use crate::worker::executor::http::send;
use crate::worker::platform::call::{self, Answer};
use crate::worker::platform::{ai, deadline, now};

pub async fn llm_call(
    llm: &LlmCall,
    env: &Env,
    private: bool,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let (request, model) = request::of(llm, call, key)?;
    // Outlives `talk`, so that what arrived before the deadline is still there after it.
    let mut intake = ResponseDecoder::new(llm.provider, call.redactor);
    let talk = async {
        let answer = ask(&request, env, private, call).await?;
        check_status(&answer)?;
        listen(answer, &mut intake, call).await
    };
    let ended = match call.deadline_at {
        None => Some(talk.await),
        // Dropping `talk` aborts the call: the provider sees its connection close.
        Some(deadline_at) => deadline::within(deadline_at.saturating_sub(now()), talk).await,
    };
    match ended {
        None => Err(Stopped::Deadline {
            partial: Some(intake.text_so_far()),
        }),
        Some(Err(failure)) => Err(intake.stopped(failure)),
        Some(Ok(())) => result::of(intake, &llm.response_format, &model),
    }
}

async fn ask(request: &Request, env: &Env, private: bool, call: &ActionCall<'_>) -> Result<Answer, Failure> {
    match request {
        Request::Http(outgoing) => {
            Reach::Internet { private }.check(outgoing)?;
            send(&call::internet(), outgoing).await
        }
        Request::Binding { model, inputs } => {
            let Some(binding) = ai::binding(env) else {
                let message = format!(
                    "the executor has no binding \"{}\" of Workers AI; add it to its wrangler file",
                    ai::BINDING
                );
                return Err(Failure::permanent("no_binding", message));
            };
            let asked = ai::run(&binding, model, &inputs.to_string()).await;
            asked.map_err(|message| binding_failure(&message, call.redactor))
        }
    }
}

/// An API does not redirect; who does is not the API, and must not hear the key.
fn check_status(answer: &Answer) -> Result<(), Failure> {
    let status = answer.status();
    match (300..400).contains(&status) {
        true => Err(Failure::permanent(
            "redirected",
            format!(
                "the answer has status {status}: a call to a model follows no redirect; write the address it leads to as base_url"
            ),
        )),
        false => Ok(()),
    }
}

async fn listen(
    answer: Answer,
    intake: &mut ResponseDecoder<'_>,
    call: &ActionCall<'_>,
) -> Result<(), Failure> {
    if !(200..300).contains(&answer.status()) {
        return Err(refused(answer, call).await);
    }
    let (mut is_done, mut wrong) = (false, None);
    let read = answer.read_each(|piece| match intake.take(piece) {
        Ok(Progress::More) => ControlFlow::Continue(()),
        Ok(Progress::Done) => {
            is_done = true;
            ControlFlow::Break(())
        }
        Err(failure) => {
            wrong = Some(failure);
            ControlFlow::Break(())
        }
    });
    let read = read.await;
    match (wrong, read) {
        (Some(failure), _) => Err(failure),
        (None, _) if is_done => Ok(()),
        (None, Ok(())) => intake.end(),
        (None, Err(why)) => Err(intake.broken(&why)),
    }
}

/// What the status means. Of the body as much as there is: it explains, and decides nothing.
async fn refused(answer: Answer, call: &ActionCall<'_>) -> Failure {
    let status = answer.status();
    let retry_after = answer.headers().get("retry-after").ok().flatten();
    let mut bytes = Vec::new();
    let _ = answer.read_into(&mut bytes, RESULT_BYTES).await;
    let answered = Answered {
        status,
        retry_after: retry_after.as_deref(),
        text: &String::from_utf8_lossy(&bytes),
    };
    status::refusal(&answered, call.redactor, now())
}
