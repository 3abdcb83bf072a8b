//! Trace context (W3C) and the ids of a run's spans. Ids are derived from the run, so that a call can name its span long before
//! the span is exported, and a repeated export has the same spans.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::time::Millis;

/// The header that carries a `TraceParent`.
pub const TRACEPARENT: &str = "traceparent";

/// Sixteen bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceId([u8; 16]);

/// Eight bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SpanId([u8; 8]);

/// The span that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// Whether the sender records the trace.
    pub sampled: bool,
}

/// Length of a header of version 00.
const LENGTH: usize = 55;

impl TraceParent {
    /// Reads a header. What the standard calls invalid is no trace context. Of a later version only the parts of version 00 are
    /// read, as the standard asks for.
    pub fn parse(header: &str) -> Option<TraceParent> {
        let (first, rest) = header.split_at_checked(LENGTH)?;
        let mut parts = first.split('-');
        let [version] = bytes::<1>(parts.next()?)?;
        let trace_id = TraceId::parse(parts.next()?)?;
        let span_id = SpanId::parse(parts.next()?)?;
        let [flags] = bytes::<1>(parts.next()?)?;
        let ends_well = match version {
            0 => rest.is_empty(),
            0xff => false,
            _later => rest.is_empty() || rest.starts_with('-'),
        };
        (parts.next().is_none() && ends_well).then_some(TraceParent {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> String {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<TraceParent, &'static str> {
        TraceParent::parse(&text).ok_or("no traceparent")
    }
}

/// Exactly `N` bytes in lower-case hex digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The first bytes of a digest. Zero is no id.
fn derived<const N: usize>(parts: fmt::Arguments<'_>) -> [u8; N] {
    let digest = Sha256::digest(parts.to_string());
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    if bytes == [0; N] {
        bytes[N - 1] = 1;
    }
    bytes
}

macro_rules! hex_id {
    ($id:ident, $bytes:literal) => {
        impl $id {
            pub fn parse(text: &str) -> Option<$id> {
                bytes::<$bytes>(text)
                    .filter(|bytes| *bytes != [0; $bytes])
                    .map($id)
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.to_string()
            }
        }

        impl TryFrom<String> for $id {
            type Error = &'static str;

            fn try_from(text: String) -> Result<$id, &'static str> {
                $id::parse(&text).ok_or("not the hex digits of an id")
            }
        }
    };
}

hex_id!(TraceId, 16);
hex_id!(SpanId, 8);

/// The ids of a run's spans. Ids of runs may be reused after their deletion, so the start is part of them.
#[derive(Clone, Copy, Debug)]
pub struct RunSpans<'a> {
    pub run_id: &'a str,
    pub started_at: Millis,
}

impl RunSpans<'_> {
    /// The trace of a run that continues no other trace.
    pub fn trace_id(self) -> TraceId {
        TraceId(derived(format_args!("trace|{}|{}", self.run_id, self.started_at)))
    }

    /// The run up to its `end`th end. A run that is retried or restarted ends again.
    pub fn run(self, end: u64) -> SpanId {
        self.span(format_args!("end|{end}"))
    }

    /// Tokens are numbered from 1.
    pub fn token(self, token: u64) -> SpanId {
        self.span(format_args!("token|{token}"))
    }

    pub fn attempt(self, token: u64, epoch: u64) -> SpanId {
        self.span(format_args!("attempt|{token}|{epoch}"))
    }

    /// The wait of a token for its siblings.
    pub fn join(self, token: u64) -> SpanId {
        self.span(format_args!("join|{token}"))
    }

    pub fn gate(self, gate_id: &str) -> SpanId {
        self.span(format_args!("gate|{gate_id}"))
    }

    fn span(self, part: fmt::Arguments<'_>) -> SpanId {
        SpanId(derived(format_args!(
            "span|{}|{}|{part}",
            self.run_id, self.started_at
        )))
    }
}

impl SpanId {
    /// The span of a step of this attempt. A business retry runs the steps again, and each run has its own.
    pub fn step(self, step_ref: &str, rounds_before: u32) -> SpanId {
        SpanId(derived(format_args!("step|{self}|{rounds_before}|{step_ref}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_header_is_read_and_written() {
        let parent = TraceParent::parse(VALID).expect("it is valid");
        assert_eq!(parent.to_string(), VALID);
        assert!(parent.sampled);
        let flags = |flags: &str| TraceParent::parse(&VALID.replace("-01", flags)).map(|it| it.to_string());
        assert_eq!(flags("-00"), Some(VALID.replace("-01", "-00")));
        assert_eq!(
            flags("-03"),
            Some(VALID.to_string()),
            "unknown flags are not passed on"
        );
        assert_eq!(flags("-fe"), Some(VALID.replace("-01", "-00")));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for header in [
            VALID.replacen("00", "01", 1),
            VALID.replacen("00", "fe", 1) + "-what-follows",
        ] {
            let parent = TraceParent::parse(&header).expect("a later version");
            assert_eq!(parent.to_string(), VALID);
        }
    }

    #[test]
    fn an_invalid_header_is_no_trace_context() {
        let invalid = [
            String::new(),
            "00".into(),
            VALID.replacen("00", "ff", 1),
            VALID.to_uppercase(),
            format!("{VALID}-00"),
            format!("{VALID} "),
            format!(" {VALID}"),
            format!("{VALID}, {VALID}"),
            VALID.replacen("00", "01", 1) + "what-follows",
            VALID.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            VALID.replace("b7ad6b7169203331", &"0".repeat(16)),
            VALID.replace("b7ad6b7169203331", "b7ad6b716920333g"),
            VALID.replace("b7ad6b7169203331", "b7ad6b71692-3331"),
            VALID.replace('-', "_"),
            VALID.replace("-01", "-1 "),
            VALID.replace("31-01", "3-001"),
            VALID.replace("b7", "\u{e9}"),
            "\u{1f980}".repeat(100),
            "0".repeat(1 << 20),
            "-".repeat(55),
        ];
        for header in invalid {
            assert_eq!(TraceParent::parse(&header), None, "{header:.80}");
        }
    }

    #[test]
    fn ids_differ_by_every_part() {
        let spans = |run_id, started_at| RunSpans { run_id, started_at };
        let one = spans("run-1", 1_000);
        let attempt = one.attempt(1, 1);
        let mut ids = vec![
            one.run(1),
            one.run(2),
            one.token(1),
            one.token(2),
            attempt,
            one.attempt(1, 2),
            one.attempt(11, 1),
            one.gate("t1"),
            attempt.step("post", 0),
            attempt.step("post", 1),
            attempt.step("get", 0),
            spans("run-1", 2_000).token(1),
            spans("run-2", 1_000).token(1),
        ];
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert_ne!(one.trace_id(), spans("run-1", 2_000).trace_id());
        assert_eq!(one.trace_id(), spans("run-1", 1_000).trace_id());
    }
}
