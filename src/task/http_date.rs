//! Dates as HTTP headers write them, in the three forms that RFC 9110 tells a reader to accept.

use crate::base::time::{Millis, parse_moment};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

pub(super) fn parse(text: &str) -> Option<Millis> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words.as_slice() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [_, day, month, year, time, "GMT"] => moment(year, month, day, time),
        // Sunday, 06-Nov-94 08:49:37 GMT
        [_, date, time, "GMT"] => match date.split('-').collect::<Vec<_>>().as_slice() {
            [day, month, year] if year.len() == 2 => {
                let year: u32 = year.parse().ok()?;
                // Two digits are of this century, or a header that was written in the last one.
                let year = if year < 70 { 2000 + year } else { 1900 + year };
                moment(&year.to_string(), month, day, time)
            }
            _ => None,
        },
        // Sun Nov  6 08:49:37 1994
        [_, month, day, time, year] => moment(year, month, day, time),
        _ => None,
    }
}

fn moment(year: &str, month: &str, day: &str, time: &str) -> Option<Millis> {
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    let iso = format!("{year}-{month:02}-{day:0>2}T{time}Z");
    // Four digits of a year and no fraction of a second: what else is longer is no date of HTTP.
    (iso.len() == 20)
        .then(|| parse_moment(&iso.into()).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_and_nothing_else() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(784_111_777_000), "{text}");
        }
        for text in [
            "",
            "GMT",
            "soon",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 6Ö Nov 1994 08:49:37 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37.5 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
