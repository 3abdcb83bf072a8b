//! Time as the product speaks of it: absolute milliseconds, and durations written Go's way (`1h30m`).
//!
//! Nothing here reads a clock. `now` always comes in with the event.

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

pub const SECOND: u64 = 1_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

/// A limit in a document: not written, written as `null`, or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    #[default]
    Unset,
    Never,
    After(u64),
}

impl Limit {
    /// The first of `self` and `other` that was written at all.
    pub fn or(self, other: Limit) -> Limit {
        match self {
            Limit::Unset => other,
            Limit::Never | Limit::After(_) => self,
        }
    }

    pub fn millis(self) -> Option<u64> {
        match self {
            Limit::After(millis) => Some(millis),
            Limit::Unset | Limit::Never => None,
        }
    }
}

/// Parses `500ms`, `30s`, `1h30m`, `1.5h`. A number without its unit is an error, as in Go.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| {
        Err(format!(
            "invalid duration \"{}\": {why}; write it like \"500ms\", \"30s\", \"2m\" or \"1h30m\"",
            text.chars().take(40).collect::<String>()
        ))
    };
    if text.is_empty() {
        return wrong("it is empty");
    }
    let mut rest = text;
    let mut total = 0f64;
    while !rest.is_empty() {
        let number_length = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_length);
        let Ok(number) = number.parse::<f64>() else {
            return wrong("expected a number");
        };
        let unit_length = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let unit_millis = match unit {
            "ms" => 1.0,
            "s" => SECOND as f64,
            "m" => MINUTE as f64,
            "h" => HOUR as f64,
            "" => return wrong("a number needs its unit"),
            _ => return wrong("the units are ms, s, m and h"),
        };
        total += number * unit_millis;
        rest = tail;
    }
    // Far above every bound a document may carry, far below where f64 loses whole milliseconds.
    if total > 1e15 {
        return wrong("it is too long");
    }
    Ok(total.round() as u64)
}

/// Prints a duration as Go does: `5m0s`, `1h0m0s`, `1.5s`, `250ms`.
pub fn format_duration(millis: u64) -> String {
    if millis == 0 {
        return "0s".into();
    }
    if millis < SECOND {
        return format!("{millis}ms");
    }
    let hours = millis / HOUR;
    let minutes = millis / MINUTE % 60;
    let seconds = millis / SECOND % 60;
    let fraction = match millis % SECOND {
        0 => String::new(),
        rest => format!(".{rest:03}").trim_end_matches('0').to_string(),
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        (_, _) => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("1m30s500ms", 90_500),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(millis), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "1d",
            "-1s",
            "1 s",
            "1..5s",
            ".",
            "1e3s",
            "99999999999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text} must not parse");
        }
    }

    #[test]
    fn durations_print_as_in_go() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1_500, "1.5s"),
            (30_000, "30s"),
            (300_000, "5m0s"),
            (3_600_000, "1h0m0s"),
            (5_430_010, "1h30m30.01s"),
        ] {
            assert_eq!(format_duration(millis), text);
        }
    }
}
