//! One request and its whole answer under one deadline, made by `exchange.mjs`: one crossing there, one back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use js_sys::Uint8Array;
use serde::{Serialize, Serializer};
use wasm_bindgen::prelude::*;

use crate::worker::platform::call::Peer;
use crate::worker::platform::inline_executor;

type Over = Closure<dyn Fn(u32, u8)>;

thread_local! {
    static UNDER_WAY: RefCell<UnderWay> = RefCell::default();
    /// One for all: a closure of its own is dear.
    static OVER: Over = Closure::new(over);
}

#[wasm_bindgen(module = "/src/worker/platform/exchange.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = Exchange)]
    type Talk;

    #[wasm_bindgen(constructor, js_class = "Exchange")]
    fn new() -> Talk;

    /// The deadlines of an invocation: `clock.mjs` has what it is.
    pub type Clock;

    #[wasm_bindgen(method)]
    #[allow(clippy::too_many_arguments)]
    fn run(
        this: &Talk,
        peer: &Peer,
        clock: &Clock,
        url: &str,
        method: &str,
        headers: &str,
        body: Option<&str>,
        bodyless: u32,
        in_full: bool,
        most: u32,
        millis: f64,
        id: u32,
        over: &Over,
    );

    #[wasm_bindgen(method, getter)]
    fn answered(this: &Talk) -> bool;

    #[wasm_bindgen(method, getter)]
    fn message(this: &Talk) -> String;

    #[wasm_bindgen(method, getter)]
    fn status(this: &Talk) -> u16;

    #[wasm_bindgen(method, getter)]
    fn headers(this: &Talk) -> String;

    #[wasm_bindgen(method)]
    fn bytes(this: &Talk) -> Uint8Array;

    #[wasm_bindgen(method)]
    fn abort(this: &Talk);
}

pub struct Exchange<'a> {
    pub url: &'a str,
    pub method: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Option<&'a str>,
    /// Of the statuses from 300 to 315: those whose body is of no interest if they say where to go.
    pub bodyless: &'a [u16],
    /// The headers of an answer are wanted, also where all went well.
    pub in_full: bool,
    /// The largest body.
    pub most: usize,
    /// For all of it.
    pub millis: Option<u64>,
}

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

/// Why an exchange has no reply.
pub enum Ended {
    TooLarge,
    /// What had arrived of the body; none before the headers.
    Deadline(Option<Vec<u8>>),
    /// Nothing came back.
    Lost(String),
    /// Half an answer came.
    Broken(String),
    /// The platform would not send it, and never will.
    Refused(String),
    /// The name of a header that is none, or whose value is none.
    BadHeader(String),
}

/// Ends the call it belongs to when nobody waits for it any more.
struct Guard(Option<Talk>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(talk) = &self.0 {
            talk.abort();
        }
    }
}

/// Exchanges that somebody waits for.
#[derive(Default)]
struct UnderWay {
    last: u32,
    waiting: BTreeMap<u32, Wait>,
}

enum Wait {
    /// Whoever is to be woken, once it has asked.
    For(Option<Waker>),
    /// How it ended.
    Over(u8),
}

fn over(id: u32, how: u8) {
    let before = UNDER_WAY.with_borrow_mut(|under_way| {
        let wait = under_way.waiting.get_mut(&id)?;
        Some(std::mem::replace(wait, Wait::Over(how)))
    });
    if let Some(Wait::For(Some(waker))) = before {
        inline_executor::wake(waker);
    }
}

/// How an exchange ends.
struct End(u32);

impl End {
    fn new() -> End {
        UNDER_WAY.with_borrow_mut(|under_way| {
            under_way.last = under_way.last.wrapping_add(1);
            under_way.waiting.insert(under_way.last, Wait::For(None));
            End(under_way.last)
        })
    }
}

impl Future for End {
    type Output = u8;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u8> {
        UNDER_WAY.with_borrow_mut(|under_way| match under_way.waiting.get(&self.0) {
            Some(Wait::Over(how)) => Poll::Ready(*how),
            Some(Wait::For(_)) | None => {
                let wait = Wait::For(Some(context.waker().clone()));
                under_way.waiting.insert(self.0, wait);
                Poll::Pending
            }
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        UNDER_WAY.with_borrow_mut(|under_way| under_way.waiting.remove(&self.0));
    }
}

/// As an object: it costs the platform less to read than pairs do.
struct Headers<'a>(&'a [(String, String)]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Exchange<'_> {
    /// The connection closes if the returned future is dropped.
    pub async fn run(self, peer: &Peer, clock: &Clock) -> Result<Reply, Ended> {
        let headers = serde_json::to_string(&Headers(self.headers))
            .map_err(|error| Ended::Refused(error.to_string()))?;
        let bodyless = self.bodyless.iter();
        let bodyless = bodyless.fold(0, |bits, status| bits | 1 << status.saturating_sub(300));
        let talk = Talk::new();
        let end = End::new();
        OVER.with(|over| {
            talk.run(
                peer,
                clock,
                self.url,
                self.method,
                &headers,
                self.body,
                bodyless,
                self.in_full,
                u32::try_from(self.most).unwrap_or(u32::MAX),
                self.millis
                    .map_or(-1.0, |millis| millis.min(i32::MAX as u64) as f64),
                end.0,
                over,
            );
        });
        let mut guard = Guard(Some(talk));
        let how = end.await;
        let Some(talk) = guard.0.take() else {
            return Err(Ended::Lost("the exchange is gone".into()));
        };
        match how {
            0 => Ok(Reply {
                status: talk.status(),
                headers: serde_json::from_str(&talk.headers()).unwrap_or_default(),
                bytes: talk.bytes().to_vec(),
            }),
            1 => Err(Ended::TooLarge),
            2 => Err(Ended::Deadline(talk.answered().then(|| talk.bytes().to_vec()))),
            4 => Err(Ended::Broken(talk.message())),
            5 => Err(Ended::Refused(talk.message())),
            6 => Err(Ended::BadHeader(talk.message())),
            _lost => Err(Ended::Lost(talk.message())),
        }
    }
}
