//! HTTP calls that really stop when they are dropped: to the internet, to a bound Worker, to an object.

use std::future::Future;
use std::ops::ControlFlow;

use futures_util::StreamExt;
use js_sys::{Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use worker::{AbortController, ByteStream, Headers, Response};

use crate::worker::platform::deadline;

#[wasm_bindgen]
extern "C" {
    /// Anything with a `fetch`: a service binding, an object's stub, the global scope.
    #[derive(Clone)]
    pub type Peer;

    #[wasm_bindgen(method, catch)]
    fn fetch(this: &Peer, url: &str, init: &Object) -> Result<Promise, JsValue>;
}

#[wasm_bindgen(module = "cloudflare:workers")]
extern "C" {
    #[wasm_bindgen(js_name = waitUntil)]
    fn wait_until(promise: &Promise);
}

/// The internet.
pub fn internet() -> Peer {
    js_sys::global().unchecked_into()
}

/// A Worker bound under `name`, if there is one with a `fetch`.
pub fn service(env: &worker::Env, name: &str) -> Option<Peer> {
    let binding = Reflect::get(env, &name.into()).ok()?;
    let has_fetch = Reflect::get(&binding, &"fetch".into()).is_ok_and(|fetch| fetch.is_function());
    has_fetch.then(|| binding.unchecked_into())
}

pub struct Call<'a> {
    pub url: &'a str,
    pub method: &'a str,
    pub headers: Option<Headers>,
    pub body: Option<&'a str>,
    pub follow_redirects: bool,
}

impl<'a> Call<'a> {
    /// JSON to one of our own Workers.
    pub fn post(url: &'a str, body: &'a str) -> Call<'a> {
        Call {
            url,
            method: "POST",
            headers: None,
            body: Some(body),
            follow_redirects: true,
        }
    }
}

/// Aborts the call it belongs to when it goes out of scope, unless the answer was read to its end.
pub struct Abort(Option<AbortController>);

impl Abort {
    pub(super) fn new(controller: AbortController) -> Abort {
        Abort(Some(controller))
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            controller.abort();
        }
    }
}

/// An answer whose body is still to be read. Dropping it closes the connection.
pub struct Answer {
    response: web_sys::Response,
    abort: Abort,
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum SendError {
    /// The platform would not send it, and never will: a method it does not know.
    Refused(String),
    /// It was sent, or was to be, and nothing came back.
    Lost(String),
}

impl SendError {
    fn of(error: &JsValue) -> SendError {
        let message = message_of(error);
        // Connections that fail are plain errors here.
        match error.is_instance_of::<js_sys::TypeError>() {
            true => SendError::Refused(message),
            false => SendError::Lost(message),
        }
    }
}

impl From<SendError> for String {
    fn from(error: SendError) -> String {
        match error {
            SendError::Refused(message) | SendError::Lost(message) => message,
        }
    }
}

/// Sends the call. The connection closes if the returned future, or the answer, is dropped.
pub async fn send(peer: &Peer, call: Call<'_>) -> Result<Answer, SendError> {
    let controller = AbortController::default();
    let init = Object::new();
    let set = |name: &str, value: &JsValue| {
        // Setting a field of a plain object cannot fail.
        let _ = Reflect::set(&init, &name.into(), value);
    };
    set("method", &call.method.into());
    if let Some(body) = call.body {
        set("body", &body.into());
    }
    if let Some(headers) = &call.headers {
        set("headers", headers.0.as_ref());
    }
    if !call.follow_redirects {
        set("redirect", &"manual".into());
    }
    set("signal", controller.signal().as_ref());
    let abort = Abort::new(controller);
    let promise = peer
        .fetch(call.url, &init)
        .map_err(|error| SendError::of(&error))?;
    let response = JsFuture::from(promise)
        .await
        .map_err(|error| SendError::of(&error))?;
    let response = response
        .dyn_into()
        .map_err(|_| SendError::Lost("the answer is no response".to_string()))?;
    Ok(Answer { response, abort })
}

/// Does something that nobody waits for. It has `millis`, also after the invocation has answered.
pub fn in_background(millis: u64, work: impl Future<Output = ()> + 'static) {
    let bounded = async move {
        deadline::within(millis, work).await;
        Ok(JsValue::UNDEFINED)
    };
    wait_until(&future_to_promise(bounded));
}

/// A body that is read piece by piece, for a reader that has something to do between them. Dropping it closes the
/// connection.
pub struct Chunks {
    /// None for a response without a body.
    stream: Option<ByteStream>,
    abort: Abort,
}

impl Chunks {
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, String>> {
        let chunk = match &mut self.stream {
            Some(stream) => stream.next().await,
            None => None,
        };
        if chunk.is_none() {
            self.abort.disarm();
        }
        chunk.map(|chunk| chunk.map_err(|error| error.to_string()))
    }
}

impl Answer {
    /// Of a call that was made in another way.
    pub(super) fn new(response: web_sys::Response, abort: Abort) -> Answer {
        Answer { response, abort }
    }

    pub fn status(&self) -> u16 {
        self.response.status()
    }

    pub fn headers(&self) -> Headers {
        Headers(self.response.headers())
    }

    /// Reads the body to its end into `bytes`, if it is at most `most` bytes; more than that is not read. Whoever
    /// drops this halfway finds in `bytes` what had arrived.
    pub async fn read_into(self, bytes: &mut Vec<u8>, most: usize) -> Result<(), BodyError> {
        let mut too_large = false;
        let read = self.read_each(|chunk| {
            too_large = bytes.len() + chunk.len() > most;
            if too_large {
                return ControlFlow::Break(());
            }
            bytes.extend_from_slice(chunk);
            ControlFlow::Continue(())
        });
        match read.await {
            Err(message) => Err(BodyError::Broken(message)),
            Ok(()) if too_large => Err(BodyError::TooLarge),
            Ok(()) => Ok(()),
        }
    }

    /// Hands over each piece of the body as it arrives, to its end or until `take` has enough; then the connection
    /// closes.
    pub async fn read_each(mut self, mut take: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), String> {
        let mut response = Response::from(self.response);
        // A response without a body has no stream.
        if let Ok(mut stream) = response.stream() {
            while let Some(chunk) = stream.next().await {
                let chunk = chunk.map_err(|error| error.to_string())?;
                if take(&chunk).is_break() {
                    return Ok(());
                }
            }
        }
        self.abort.disarm();
        Ok(())
    }

    pub fn chunks(self) -> Chunks {
        let stream = Response::from(self.response).stream().ok();
        Chunks {
            stream,
            abort: self.abort,
        }
    }

    /// Hands the response on as it came, body and all.
    pub fn into_response(mut self) -> web_sys::Response {
        self.abort.disarm();
        self.response
    }

    /// The whole body at once, without a stream in between: for our own Workers, whose answers are bounded by
    /// what they send.
    pub async fn text_unbounded(mut self) -> Result<String, String> {
        let text = self.response.text().map_err(|error| message_of(&error))?;
        let text = JsFuture::from(text).await.map_err(|error| message_of(&error))?;
        self.abort.disarm();
        text.as_string()
            .ok_or_else(|| "the answer is no text".to_string())
    }
}

#[derive(Debug)]
pub enum BodyError {
    TooLarge,
    Broken(String),
}

pub fn message_of(error: &JsValue) -> String {
    match error.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| "unknown error".into()),
    }
}
