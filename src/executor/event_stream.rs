//! Server-sent events out of bytes that come in pieces of any size. Pure.

use crate::model::limits::RESULT_BYTES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What the server calls it; none where it says nothing.
    pub event: Option<String>,
    pub data: String,
}

/// Holds no more than one event: one that is larger than a result may be is an error.
#[derive(Debug, Default)]
pub struct EventStream {
    /// The line that is not over yet.
    line: Vec<u8>,
    event: Option<String>,
    data: Option<String>,
    /// The last byte was a carriage return: a line feed right after it belongs to the same line end.
    after_return: bool,
    begun: bool,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl EventStream {
    /// The events that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&rest[..end])?;
            let line = std::mem::take(&mut self.line);
            events.extend(self.line_ended(&line));
            let follows = &rest[end + 1..];
            if rest[end] == b'\r' {
                self.after_return = follows.is_empty();
                rest = follows.strip_prefix(b"\n").unwrap_or(follows);
            } else {
                rest = follows;
            }
        }
        self.extend(rest)?;
        Ok(events)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), String> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + bytes.len() > RESULT_BYTES {
            return Err(format!(
                "an event is larger than the limit of {RESULT_BYTES} bytes"
            ));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self, bytes: &[u8]) -> Option<Event> {
        let text = String::from_utf8_lossy(bytes);
        let mut line = &*text;
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            let event = self.event.take();
            return self.data.take().map(|data| Event { event, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event = Some(value.to_string()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_string()),
            },
            // `id` and `retry` are for those who come back; a comment has no name.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: Option<&str>, data: &str) -> Event {
        Event {
            event: event.map(str::to_string),
            data: data.to_string(),
        }
    }

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut stream = EventStream::default();
        let pieces = pieces.iter();
        pieces
            .flat_map(|piece| stream.push(piece).expect("these are small"))
            .collect()
    }

    const MIXED: &str = "\u{feff}data: one\n\n: a comment\nevent: message\r\nid: 7\r\ndata:two ü\r\ndata:  2\r\n\r\n\
                         retry: 5\rdata\r\revent: alone\n\ndata: {\"a\": \"b: c\"}\n\ndata: cut off";

    fn expected() -> Vec<Event> {
        vec![
            event(None, "one"),
            event(Some("message"), "two ü\n 2"),
            event(None, ""),
            event(None, "{\"a\": \"b: c\"}"),
        ]
    }

    #[test]
    fn every_line_end_and_field_is_read() {
        assert_eq!(read(&[MIXED.as_bytes()]), expected());
    }

    #[test]
    fn it_may_be_split_anywhere() {
        let bytes = MIXED.as_bytes();
        for at in 0..=bytes.len() {
            let (start, end) = bytes.split_at(at);
            assert_eq!(read(&[start, end]), expected(), "split at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), expected());
    }

    #[test]
    fn what_is_no_text_does_no_harm() {
        assert_eq!(read(&[b"data: \xff\xfe\n\n"]), [event(None, "\u{fffd}\u{fffd}")]);
        assert_eq!(read(&[b"", b"\n\n\r\r", b""]), []);
    }

    #[test]
    fn an_event_without_an_end_is_refused_before_it_fills_the_memory() {
        let piece = [b'x'; 4_096];
        let mut stream = EventStream::default();
        let refused = (0..RESULT_BYTES / piece.len() + 1).find(|_| stream.push(&piece).is_err());
        assert_eq!(refused, Some(RESULT_BYTES / piece.len()));
        let mut lines = EventStream::default();
        let line = format!("data: {}\n", "x".repeat(4_000));
        let refused = (0..RESULT_BYTES / 2_000).find(|_| lines.push(line.as_bytes()).is_err());
        assert!(refused.is_some());
        // Events that are over make room for others.
        let mut many = EventStream::default();
        for _ in 0..1_000 {
            let events = many.push(format!("{line}\n").as_bytes()).expect("each is small");
            assert_eq!(events.len(), 1);
        }
    }
}
