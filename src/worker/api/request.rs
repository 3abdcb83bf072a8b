//! What a request carries: headers and its body.

use futures_util::StreamExt;
use wasm_bindgen_futures::JsFuture;
use web_sys::Request;
use worker::Result;

use crate::api::body;
use crate::api::error::Error;
use crate::base::limits;
use crate::base::trace::{TRACEPARENT, TraceParent};

/// A body that exceeds the limit is read to its end up to this size: a client whose connection is closed while it sends never
/// sees the error response.
const DRAINED_BYTES: usize = 8 * limits::REQUEST_BYTES;

pub fn header(request: &Request, name: &str) -> Option<String> {
    // `get` fails for an invalid header name only.
    request.headers().get(name).ok().flatten()
}

/// The trace that the request belongs to. An invalid header counts as none.
pub fn traceparent(request: &Request) -> Option<TraceParent> {
    TraceParent::parse(&header(request, TRACEPARENT)?)
}

/// The bytes of the body. Holds no more than the limit in memory.
pub async fn read_bytes(request: &Request) -> Result<std::result::Result<Vec<u8>, Error>> {
    let announced = header(request, "content-length").and_then(|text| text.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > DRAINED_BYTES) {
        return Ok(Err(body::too_large()));
    }
    if announced.is_some_and(|bytes| bytes <= limits::REQUEST_BYTES) {
        // Reading a small body in chunks would take several turns of the event loop.
        let bytes = JsFuture::from(request.array_buffer()?).await?;
        return Ok(Ok(js_sys::Uint8Array::new(&bytes).to_vec()));
    }
    let mut bytes = Vec::new();
    let mut seen = 0;
    if let Ok(mut stream) = worker::Request::from(Clone::clone(request)).stream() {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            seen += chunk.len();
            if seen > DRAINED_BYTES {
                return Ok(Err(body::too_large()));
            }
            if seen <= limits::REQUEST_BYTES {
                bytes.extend_from_slice(&chunk);
            }
        }
    }
    if seen > limits::REQUEST_BYTES {
        return Ok(Err(body::too_large()));
    }
    Ok(Ok(bytes))
}
