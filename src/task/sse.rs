//! Parses Server-Sent Events from bytes, wherever the network cuts them. Pure.
//!
//! It holds one line and one event at a time, both of limited size, so that a peer that never ends a line cannot fill memory.

/// The largest event, and the largest line.
pub const EVENT_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty if there is none.
    pub name: String,
    /// The `data` lines, joined by line breaks.
    pub data: String,
}

/// An event is larger than `EVENT_BYTES`. Nothing after it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

#[derive(Debug, Default)]
pub struct SseParser {
    /// The line that has not ended yet, as bytes: a chunk may end inside a character.
    line: Vec<u8>,
    /// The last byte was a carriage return. A line feed after it belongs to the same line end.
    after_return: bool,
    /// A line has ended, so that no byte order mark can follow.
    begun: bool,
    name: String,
    data: Option<String>,
    recognized: bool,
    overflown: bool,
}

impl SseParser {
    /// Parses the next bytes and appends the events that they complete to `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), TooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.overflown {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.extend_line(&rest[..end.unwrap_or(rest.len())])?;
            let Some(end) = end else {
                return Ok(());
            };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line());
        }
        match self.overflown {
            true => Err(TooLarge),
            false => Ok(()),
        }
    }

    /// The event that the end of the stream completes: its blank line, or its last line break, may be missing.
    pub fn finish(mut self) -> Option<SseEvent> {
        if self.overflown {
            return None;
        }
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event()
    }

    /// Whether any line so far was a line of an event stream.
    pub fn recognized(&self) -> bool {
        self.recognized
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        let held = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, String::len);
        if held + part.len() > EVENT_BYTES {
            self.overflown = true;
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        // A complete line holds complete characters. Invalid ones are replaced, as the standard demands.
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                None => self.data = Some(value.to_string()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            "event" => self.name = value.to_string(),
            // A comment, or a field for clients that reconnect.
            "" | "id" | "retry" => {}
            _ => return None,
        }
        self.recognized = true;
        None
    }

    /// None for an event without data.
    fn end_event(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(SseEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One line an event, after reading `pieces` one by one.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Result<(), TooLarge>) {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let mut end = Ok(());
        for piece in pieces {
            end = end.and(parser.push(piece, &mut events));
        }
        events.extend(parser.finish());
        let lines = events
            .iter()
            .map(|event| format!("{}={:?}", event.name, event.data));
        (lines.collect(), end)
    }

    #[track_caller]
    fn check(stream: &str, events: &[&str]) {
        let (found, end) = read([stream.as_bytes()]);
        assert_eq!(
            (found, end),
            (events.iter().map(|it| it.to_string()).collect(), Ok(()))
        );
        let (byte_by_byte, _) = read(stream.as_bytes().chunks(1));
        assert_eq!(byte_by_byte, events, "byte by byte");
    }

    #[test]
    fn fields_and_line_ends() {
        check("data: a\n\ndata: b\n\n", &[r#"="a""#, r#"="b""#]);
        check(
            "data: a\r\n\r\ndata: b\r\rdata: c\n\r\n",
            &[r#"="a""#, r#"="b""#, r#"="c""#],
        );
        check("event: x\ndata: a\n\ndata: b\n\n", &[r#"x="a""#, r#"="b""#]);
        check("data: a\nevent: x\n\n", &[r#"x="a""#]);
        check("data:a\ndata:  b\ndata\ndata: c\n\n", &[r#"="a\n b\n\nc""#]);
        check("data\n\n", &[r#"="""#]);
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[r#"="a""#]);
        check("data: a:b: c\n\n", &[r#"="a:b: c""#]);
        check("data: grün 🌲\n\n", &[r#"="grün 🌲""#]);
    }

    #[test]
    fn what_is_no_data_is_no_event() {
        check(": keep-alive\n\nid: 7\nretry: 10\n\nevent: ping\n\n\n\n", &[]);
        check("event: x\n\ndata: a\n\n", &[r#"="a""#]);
        check("datas: a\nDATA: b\n data: c\n\n", &[]);
        check("", &[]);
    }

    #[test]
    fn the_end_of_the_stream_ends_its_event() {
        check("data: a\n\ndata: b", &[r#"="a""#, r#"="b""#]);
        check("data: a\ndata: b\n", &[r#"="a\nb""#]);
        check("data: a\r", &[r#"="a""#]);
        check("data: a\n\n: bye", &[r#"="a""#]);
        check("data: a\n\neve", &[r#"="a""#]);
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        let (events, _) = read([b"data: a\xff\xc3\n\n".as_slice()]);
        assert_eq!(events, [r#"="a��""#]);
    }

    #[test]
    fn a_stream_of_something_else_is_not_recognized() {
        for (stream, recognized) in [
            ("<html>\n<body>\n", false),
            ("", false),
            ("data: a\n", true),
            (": wait\n", true),
            ("event: x\n", true),
        ] {
            let mut parser = SseParser::default();
            parser
                .push(stream.as_bytes(), &mut Vec::new())
                .expect("it is small");
            assert_eq!(parser.recognized(), recognized, "{stream}");
        }
    }

    #[test]
    fn an_event_has_a_largest_size() {
        let sized = |bytes: usize| format!("data: first\n\ndata:{}\n\ndata: last\n\n", "x".repeat(bytes));
        let (events, end) = read([sized(EVENT_BYTES - 5).as_bytes()]);
        assert_eq!((events.len(), end), (3, Ok(())));
        for piece in [1 << 10, 1 << 20, 1 << 24] {
            let stream = sized(EVENT_BYTES - 4);
            let (events, end) = read(stream.as_bytes().chunks(piece));
            assert_eq!(
                (events, end),
                (vec![r#"="first""#.to_string()], Err(TooLarge)),
                "{piece}"
            );
        }
        let many_lines = "data: 0123456789\n".repeat(EVENT_BYTES / 10);
        assert_eq!(read([many_lines.as_bytes()]), (Vec::new(), Err(TooLarge)));
        let endless_comment = format!(":{}", "x".repeat(EVENT_BYTES));
        assert_eq!(read([endless_comment.as_bytes()]), (Vec::new(), Err(TooLarge)));
        // The number of small events is not limited.
        let (events, end) = read([": x\ndata: 0123456789\n\n".repeat(EVENT_BYTES / 10).as_bytes()]);
        assert_eq!((events.len(), end), (EVENT_BYTES / 10, Ok(())));
    }

    proptest! {
        #[test]
        fn where_a_stream_is_cut_changes_nothing(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "data: grün 🌲", "data:", "data", "event: e", ": c", "id: 1", "retry: 5", "", "", "x", "\u{feff}data: b",
                ]),
                0..24,
            ),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 24),
            ended in any::<bool>(),
            mut cuts in prop::collection::vec(0usize..400, 0..12),
        ) {
            let mut stream: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
            if !ended {
                stream.push_str("data: half");
            }
            let bytes = stream.as_bytes();
            cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
            cuts.sort_unstable();
            let starts = std::iter::once(0).chain(cuts.iter().copied());
            let stops = cuts.iter().copied().chain([bytes.len()]);
            let pieces = starts.zip(stops).map(|(start, stop)| &bytes[start..stop]);
            prop_assert_eq!(read(pieces), read([bytes]));
        }
    }
}
