//! Points in time as Unix milliseconds or ISO 8601, and durations in Go's format (`1h30m`).
//!
//! Nothing here reads a clock: `now` is always a parameter.

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

pub const SECOND: u64 = 1_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

/// A time limit in a document: absent, `null`, or a duration in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    #[default]
    Unset,
    Never,
    After(u64),
}

impl Limit {
    /// `self` unless it is absent, else `other`.
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

/// Parses `500ms`, `30s`, `1h30m`, `1.5h` to whole milliseconds. A number without a unit is an error, as in Go.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    Ok(parse_exact_duration(text)?.round() as u64)
}

/// Parses a duration to milliseconds and fractions of one.
pub fn parse_exact_duration(text: &str) -> Result<f64, String> {
    let wrong = |why: &str| {
        Err(format!(
            "invalid duration \"{}\": {why}; write it like \"500ms\", \"30s\", \"2m\" or \"1h30m\"",
            text.chars().take(40).collect::<String>()
        ))
    };
    if text.is_empty() {
        return wrong("it is empty");
    }
    if text.starts_with('-') {
        return wrong("it must not be negative");
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
    // Above every limit a document may set, below the point where f64 loses whole milliseconds.
    if total > 1e15 {
        return wrong("it is too long");
    }
    Ok(total)
}

/// Reads a duration that was computed: milliseconds, or text in Go's format.
pub fn parse_length(value: &serde_json::Value) -> Result<u64, String> {
    let shown = || value.to_string().chars().take(40).collect::<String>();
    let is_negative = match value.as_str() {
        Some(text) => text
            .strip_prefix('-')
            .is_some_and(|rest| parse_duration(rest).is_ok()),
        None => value.as_f64().is_some_and(|number| number < 0.0),
    };
    if is_negative {
        return Err(format!("{} must not be negative", shown()));
    }
    match (value.as_str(), value.as_u64(), value.as_f64()) {
        (Some(text), _, _) => parse_duration(text),
        (None, Some(millis), _) => Ok(millis),
        (None, None, Some(millis)) => Ok(millis.round() as u64),
        (None, None, None) => Err(format!(
            "{} is no duration; write milliseconds or text like \"30s\"",
            shown()
        )),
    }
}

/// The last millisecond of the year 9999. Later ones have no ISO 8601 form of four digits and are no dates in JavaScript.
pub const MOMENT_MAX: Millis = 253_402_300_799_999;

/// Parses Unix milliseconds, or ISO 8601 with an offset (`2026-11-16T09:30:00Z`, `...+01:00`).
pub fn parse_moment(value: &serde_json::Value) -> Result<Millis, String> {
    if let Some(millis) = value.as_u64().filter(|millis| *millis <= MOMENT_MAX) {
        return Ok(millis);
    }
    let wrong = || {
        let shown: String = value.to_string().chars().take(40).collect();
        format!("{shown} is no moment; write Unix milliseconds or ISO 8601 like \"2026-11-16T09:30:00Z\"")
    };
    let text = value.as_str().ok_or_else(wrong)?;
    parse_iso_8601(text).ok_or_else(wrong)
}

/// Formats a point in time as ISO 8601 in UTC.
pub fn format_moment(at: Millis) -> String {
    let (days, millis) = ((at / DAY) as i64, at % DAY);
    // The calendar repeats every 400 years. Years start in March here, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (millis / HOUR, millis / MINUTE % 60);
    let (second, rest) = (millis / SECOND % 60, millis % SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z")
}

fn parse_iso_8601(text: &str) -> Option<Millis> {
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let at = |index: usize, wanted: &[u8]| {
        text.as_bytes()
            .get(index)
            .is_some_and(|byte| wanted.contains(byte))
    };
    let marks = at(4, b"-") && at(7, b"-") && at(10, b"Tt ") && at(13, b":") && at(16, b":");
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let in_range =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !marks || !in_range {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut millis = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = fraction
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(fraction.len());
        let (digits, tail) = fraction.split_at(length);
        if digits.is_empty() {
            return None;
        }
        let padded: String = digits.chars().chain("000".chars()).take(3).collect();
        millis = padded.parse::<i64>().ok()?;
        rest = tail;
    }
    let offset_minutes = match rest.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let hours: i64 = rest.get(1..3)?.parse().ok()?;
            let minutes: i64 = rest.get(4..6)?.parse().ok()?;
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    // The inverse of `format_moment`: years start in March, and the calendar repeats every 400 years.
    let (shifted_year, shifted_month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second;
    u64::try_from(seconds * 1_000 + millis).ok()
}

/// Formats a duration as Go does: `5m0s`, `1h0m0s`, `1.5s`, `250ms`.
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
    fn lengths_are_milliseconds_or_durations() {
        use serde_json::json;
        for (value, millis) in [
            (json!(0), 0),
            (json!(1_500), 1_500),
            (json!(1_500.4), 1_500),
            (json!(2e300), u64::MAX),
            (json!("1.5s"), 1_500),
        ] {
            assert_eq!(parse_length(&value), Ok(millis), "{value}");
        }
        for value in [json!(-1), json!(-0.5), json!("-2s")] {
            assert_eq!(parse_length(&value), Err(format!("{value} must not be negative")));
        }
        for value in [
            json!("30"),
            json!("--2s"),
            json!(null),
            json!(true),
            json!([1]),
            json!({"ms": 1}),
        ] {
            let message = parse_length(&value).expect_err("it is no duration");
            assert!(message.contains("duration"), "{value}: {message}");
        }
    }

    #[test]
    fn moments_parse_from_unix_millis_and_iso_8601() {
        use serde_json::json;
        for (value, millis) in [
            (json!(1_700_000_000_000u64), 1_700_000_000_000),
            (json!("1970-01-01T00:00:00Z"), 0),
            (json!("2024-02-29T12:00:00.5Z"), 1_709_208_000_500),
            (json!("2026-11-16T09:30:00+01:00"), 1_794_817_800_000),
            (json!("2000-03-01T00:00:00-00:30"), 951_870_600_000),
            (json!("9999-12-31T23:59:59.999Z"), MOMENT_MAX),
            (json!(MOMENT_MAX), MOMENT_MAX),
        ] {
            assert_eq!(parse_moment(&value), Ok(millis), "{value}");
        }
        for value in [
            json!("tomorrow"),
            json!("2026-11-16"),
            json!("2026-13-16T09:30:00Z"),
            json!("2026-11-16T09:30:00"),
            json!(-1),
            json!(null),
            json!("1960-01-01T00:00:00Z"),
            json!("2026-11-16T09:30:00.Z"),
            json!("é026-11-16T09:30:00Z"),
            json!(MOMENT_MAX + 1),
            json!(u64::MAX),
        ] {
            assert!(parse_moment(&value).is_err(), "{value}");
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
