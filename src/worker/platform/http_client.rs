//! HTTP requests to the internet, to bound Workers and to objects, made by `http_client.mjs`. There is one request and two ways
//! to read its response: whole, which costs one crossing each way, or as a stream. Dropping the future or the response aborts
//! the request.

use js_sys::Uint8Array;
use serde::{Serialize, Serializer};
use wasm_bindgen::prelude::*;

use crate::base::from_json::from_json;
use crate::worker::platform::ai::Ai;
use crate::worker::platform::js_operation::{Done, run_operation};

#[wasm_bindgen]
extern "C" {
    /// Anything with a `fetch`: a service binding, an object's stub, the global scope.
    #[derive(Clone)]
    pub type Peer;
}

#[wasm_bindgen(module = "/src/worker/platform/http_client.mjs")]
extern "C" {
    type Exchange;

    #[wasm_bindgen(constructor)]
    fn new() -> Exchange;

    /// The deadlines of one invocation, in `clock.mjs`.
    pub type Clock;

    #[wasm_bindgen(method, js_name = fetchWhole)]
    #[allow(clippy::too_many_arguments)]
    fn fetch_whole(
        this: &Exchange,
        peer: &Peer,
        clock: &Clock,
        url: &str,
        method: &str,
        headers: &str,
        body: Option<&str>,
        skip_body_of: u32,
        wants_headers: bool,
        max_bytes: u32,
        timeout_ms: f64,
        id: u32,
        done: &Done,
    );

    #[wasm_bindgen(method)]
    #[allow(clippy::too_many_arguments)]
    fn open(
        this: &Exchange,
        peer: &Peer,
        url: &str,
        method: &str,
        headers: &str,
        body: Option<&str>,
        id: u32,
        done: &Done,
    );

    #[wasm_bindgen(method, js_name = runModel)]
    fn run_model(this: &Exchange, ai: &Ai, model: &str, inputs: &str, id: u32, done: &Done);

    #[wasm_bindgen(method, js_name = readChunk)]
    fn read_chunk(this: &Exchange, id: u32, done: &Done);

    #[wasm_bindgen(method, js_name = readText)]
    fn read_text(this: &Exchange, id: u32, done: &Done);

    #[wasm_bindgen(method, getter)]
    fn message(this: &Exchange) -> String;

    #[wasm_bindgen(method, getter)]
    fn status(this: &Exchange) -> u16;

    #[wasm_bindgen(method, getter)]
    fn headers(this: &Exchange) -> String;

    #[wasm_bindgen(method, getter)]
    fn text(this: &Exchange) -> String;

    #[wasm_bindgen(method, getter)]
    fn response(this: &Exchange) -> web_sys::Response;

    #[wasm_bindgen(method)]
    fn header(this: &Exchange, name: &str) -> Option<String>;

    #[wasm_bindgen(method)]
    fn bytes(this: &Exchange) -> Uint8Array;

    #[wasm_bindgen(method)]
    fn abort(this: &Exchange);
}

/// The internet.
pub fn internet() -> Peer {
    js_sys::global().unchecked_into()
}

/// The Worker that is bound under `name`, if it has a `fetch`.
pub fn service(env: &worker::Env, name: &str) -> Option<Peer> {
    super::binding(env, name, "fetch")
}

/// A request. Its response is never a redirect that was followed.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub url: &'a str,
    pub method: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Option<&'a str>,
}

/// What is read of a response that is read whole.
pub struct ReadWhole<'a> {
    /// Statuses from 300 to 315 whose body is not read if the response has a location.
    pub skip_body_of: &'a [u16],
    /// Whether the headers of a 2xx response are read, too.
    pub wants_headers: bool,
    pub max_bytes: usize,
    /// For the request and the whole response.
    pub timeout_ms: Option<u64>,
}

pub struct WholeResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

/// Why there is no response, or not all of it.
#[derive(Debug)]
pub enum Error {
    TooLarge,
    /// The part of the body that had arrived; none if the headers had not.
    Deadline(Option<Vec<u8>>),
    /// No response came back.
    Lost(String),
    /// The response broke off.
    Broken(String),
    /// The platform does not send such a request.
    Refused(String),
    /// The name of a header that has an invalid name or value.
    BadHeader(String),
}

impl From<Error> for String {
    fn from(error: Error) -> String {
        match error {
            Error::TooLarge => "the response is too large".into(),
            Error::Deadline(_) => "no answer in time".into(),
            Error::Lost(message) | Error::Broken(message) | Error::Refused(message) => message,
            Error::BadHeader(name) => format!("header \"{name}\" has an invalid name or value"),
        }
    }
}

impl<'a> Request<'a> {
    /// A request to one of our own Workers or objects.
    pub fn post(url: &'a str, body: &'a str) -> Request<'a> {
        Request {
            url,
            method: "POST",
            headers: &[],
            body: Some(body),
        }
    }

    /// Sends the request and reads the whole response.
    pub async fn fetch_whole(
        self,
        peer: &Peer,
        clock: &Clock,
        read: ReadWhole<'_>,
    ) -> Result<WholeResponse, Error> {
        let headers = self.header_object();
        let skip_body_of = read.skip_body_of.iter();
        let skip_body_of = skip_body_of.fold(0, |bits, status| bits | 1 << status.saturating_sub(300));
        let fetch = |exchange: &Exchange, id: u32, done: &Done| {
            exchange.fetch_whole(
                peer,
                clock,
                self.url,
                self.method,
                &headers,
                self.body,
                skip_body_of,
                read.wants_headers,
                u32::try_from(read.max_bytes).unwrap_or(u32::MAX),
                read.timeout_ms
                    .map_or(-1.0, |millis| millis.min(i32::MAX as u64) as f64),
                id,
                done,
            );
        };
        let mut exchange = OpenExchange::new();
        exchange.run(fetch).await?;
        exchange.has_ended = true;
        let headers = match exchange.js.headers().as_str() {
            "" => Vec::new(),
            pairs => from_json(pairs).expect("http_client.mjs writes pairs of strings"),
        };
        Ok(WholeResponse {
            status: exchange.js.status(),
            headers,
            bytes: exchange.js.bytes().to_vec(),
        })
    }

    /// Sends the request and waits for the headers of its response.
    pub async fn send(self, peer: &Peer) -> Result<Response, Error> {
        let headers = self.header_object();
        let open = |exchange: &Exchange, id: u32, done: &Done| {
            exchange.open(peer, self.url, self.method, &headers, self.body, id, done);
        };
        Response::open(open).await
    }

    fn header_object(&self) -> String {
        match self.headers {
            [] => "{}".into(),
            headers => serde_json::to_string(&Headers(headers)).expect("strings are JSON"),
        }
    }
}

/// An object, which the platform reads faster than pairs.
struct Headers<'a>(&'a [(String, String)]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A response whose body is still to be read. Dropping it before its end closes the connection.
pub struct Response {
    exchange: OpenExchange,
}

impl Response {
    async fn open(start: impl FnOnce(&Exchange, u32, &Done)) -> Result<Response, Error> {
        let mut exchange = OpenExchange::new();
        exchange.run(start).await?;
        Ok(Response { exchange })
    }

    /// The response of a model of Workers AI; `inputs` is JSON.
    pub async fn of_model(ai: &Ai, model: &str, inputs: &str) -> Result<Response, Error> {
        Response::open(|exchange, id, done| exchange.run_model(ai, model, inputs, id, done)).await
    }

    pub fn status(&self) -> u16 {
        self.exchange.js.status()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.exchange.js.header(name)
    }

    /// The next chunk of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.exchange.run(Exchange::read_chunk).await? {
            ReadProgress::Ready => Some(self.exchange.js.bytes().to_vec()),
            ReadProgress::EndOfBody => None,
        })
    }

    /// Appends the body to `bytes`, up to `max_bytes` in all. After an error `bytes` holds what had arrived.
    pub async fn read_into(mut self, bytes: &mut Vec<u8>, max_bytes: usize) -> Result<(), Error> {
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > max_bytes {
                return Err(Error::TooLarge);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }

    /// The whole body as one promise, without a limit: for our own Workers, which limit what they send.
    pub async fn text(mut self) -> Result<String, Error> {
        self.exchange.run(Exchange::read_text).await?;
        self.exchange.has_ended = true;
        Ok(self.exchange.js.text())
    }

    /// The platform's response, its body unread.
    pub fn into_raw(mut self) -> web_sys::Response {
        self.exchange.has_ended = true;
        self.exchange.js.response()
    }
}

/// Aborts its request when it is dropped before the end of the response.
struct OpenExchange {
    js: Exchange,
    has_ended: bool,
}

impl OpenExchange {
    fn new() -> OpenExchange {
        OpenExchange {
            js: Exchange::new(),
            has_ended: false,
        }
    }

    async fn run(&mut self, start: impl FnOnce(&Exchange, u32, &Done)) -> Result<ReadProgress, Error> {
        let how = run_operation(|id, done| start(&self.js, id, done)).await;
        let progress = self.js.progress(how);
        self.has_ended = !matches!(progress, Ok(ReadProgress::Ready));
        progress
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        if !self.has_ended {
            self.js.abort();
        }
    }
}

enum ReadProgress {
    /// What was asked for has arrived.
    Ready,
    EndOfBody,
}

impl Exchange {
    /// `http_client.mjs` has the same list.
    fn progress(&self, how: u8) -> Result<ReadProgress, Error> {
        Err(match how {
            0 => return Ok(ReadProgress::Ready),
            1 => Error::TooLarge,
            2 => Error::Deadline((self.status() != 0).then(|| self.bytes().to_vec())),
            3 => Error::Lost(self.message()),
            4 => Error::Broken(self.message()),
            5 => Error::Refused(self.message()),
            6 => Error::BadHeader(self.message()),
            7 => return Ok(ReadProgress::EndOfBody),
            unknown => unreachable!("http_client.mjs ends no operation with {unknown}"),
        })
    }
}
