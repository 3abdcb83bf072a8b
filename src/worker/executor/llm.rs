//! `llm_call`: sends a prompt and decodes the streamed response under one deadline.

use serde_json::Value;
use worker::Env;

use crate::base::failure::Failure;
use crate::base::limits::RESULT_BYTES;
use crate::definition::llm::LlmCall;
use crate::task::llm::request::{self, LlmRequest};
use crate::task::llm::response_decoder::{DecodeProgress, ResponseDecoder};
use crate::task::llm::{binding_failure, result};
use crate::task::progress::ProgressCell;
use crate::task::redirect::Reach;
use crate::task::runtime::{ActionCall, Stopped};
use crate::task::secret_hosts::Destination;
use crate::task::status::{self, ResponseParts};
use crate::worker::executor::http::send;
use crate::worker::platform::http_client::{self, Response};
use crate::worker::platform::{ai, deadline, now};

pub async fn llm_call(
    llm: &LlmCall,
    env: &Env,
    private: bool,
    call: &ActionCall<'_>,
    key: &str,
    progress: &ProgressCell,
) -> Result<Value, Stopped> {
    let (request, model) = request::of(llm, call, key)?;
    // Declared outside `talk`: the text that arrived before the deadline is reported after it.
    let mut decoder = ResponseDecoder::new(llm.provider, call.secrets.redactor());
    let talk = async {
        let response = send_prompt(&request, env, private, call).await?;
        check_status(response.status())?;
        read(response, &mut decoder, call, progress).await
    };
    let ended = match call.deadline_at {
        None => Some(talk.await),
        // Dropping `talk` closes the connection to the provider.
        Some(deadline_at) => deadline::within(deadline_at.saturating_sub(now()), talk).await,
    };
    decoder.note_usage(call.notes);
    match ended {
        None => Err(Stopped::Deadline {
            partial: Some(decoder.text_so_far()),
        }),
        Some(Err(failure)) => Err(decoder.stopped(failure)),
        Some(Ok(())) => result::of(decoder, &llm.response_format, &model),
    }
}

async fn send_prompt(
    request: &LlmRequest,
    env: &Env,
    private: bool,
    call: &ActionCall<'_>,
) -> Result<Response, Failure> {
    match request {
        LlmRequest::Http(outgoing) => {
            Reach::Internet { private }.check(outgoing, call)?;
            send(&http_client::internet(), outgoing).await
        }
        LlmRequest::Binding { model, inputs } => {
            call.secrets.check(Destination::Binding(ai::BINDING))?;
            let Some(binding) = ai::binding(env) else {
                let message = format!(
                    "the executor has no binding \"{}\" of Workers AI; add it to its wrangler file",
                    ai::BINDING
                );
                return Err(Failure::permanent("no_binding", message));
            };
            let response = Response::of_model(&binding, model, &inputs.to_string()).await;
            response.map_err(|error| binding_failure(&String::from(error), call.secrets.redactor()))
        }
    }
}

/// The APIs of providers do not redirect. The target of a redirect is not the API and must not get the key.
fn check_status(status: u16) -> Result<(), Failure> {
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

async fn read(
    mut response: Response,
    decoder: &mut ResponseDecoder<'_>,
    call: &ActionCall<'_>,
    progress: &ProgressCell,
) -> Result<(), Failure> {
    if !(200..300).contains(&response.status()) {
        return Err(refused(response, call).await);
    }
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => match decoder.take(&chunk)? {
                DecodeProgress::More => progress.streamed(decoder.streamed()),
                DecodeProgress::Done => return Ok(()),
            },
            Ok(None) => return decoder.end(),
            Err(error) => return Err(decoder.broken(&String::from(error))),
        }
    }
}

/// The failure that the status means. The body only explains it: it is quoted as far as it could be read.
async fn refused(response: Response, call: &ActionCall<'_>) -> Failure {
    let status = response.status();
    let retry_after = response.header("retry-after");
    let mut bytes = Vec::new();
    let _ = response.read_into(&mut bytes, RESULT_BYTES).await;
    let parts = ResponseParts {
        status,
        retry_after: retry_after.as_deref(),
        text: &String::from_utf8_lossy(&bytes),
    };
    status::refusal(&parts, call.secrets.redactor(), now())
}
