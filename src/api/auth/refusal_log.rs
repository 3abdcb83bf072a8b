//! Log lines of refused requests. An attacker must not be able to fill the log.

use serde_json::{Value, json};

use crate::base::text::shorten_to;
use crate::base::time::Millis;

const LINES_MAX: u32 = 60;
const WINDOW_MS: Millis = 60_000;
const PATH_CHARACTERS_MAX: usize = 200;

/// Counts the lines of an isolate.
#[derive(Debug, Default)]
pub struct RefusalLog {
    window_started_at: Millis,
    lines: u32,
    left_out: u64,
}

pub struct Refusal<'a> {
    pub status: u16,
    pub code: &'a str,
    pub method: &'a str,
    /// Without its query, and without what is a credential itself.
    pub path: &'a str,
    /// The name of the credential, if it is known.
    pub by: Option<&'a str>,
}

impl RefusalLog {
    /// The line to log. `None` if there were too many within a minute; the next line says how many.
    pub fn line(&mut self, refusal: &Refusal, now: Millis) -> Option<Value> {
        if now.saturating_sub(self.window_started_at) >= WINDOW_MS {
            self.window_started_at = now;
            self.lines = 0;
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        let mut line = json!({
            "level": "warn",
            "event": "request_refused",
            "status": refusal.status,
            "code": refusal.code,
            "method": refusal.method,
            "path": shorten_to(refusal.path, PATH_CHARACTERS_MAX),
        });
        if let Some(name) = refusal.by {
            line["by"] = json!(name);
        }
        if self.left_out > 0 {
            line["left_out"] = json!(self.left_out);
            self.left_out = 0;
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Millis = 1_800_000_000_000;

    fn line(log: &mut RefusalLog, path: &str, by: Option<&str>, now: Millis) -> Option<Value> {
        let refusal = Refusal {
            status: 403,
            code: "forbidden",
            method: "POST",
            path,
            by,
        };
        log.line(&refusal, now)
    }

    #[test]
    fn what_a_line_says() {
        let mut log = RefusalLog::default();
        let expected = json!({"level": "warn", "event": "request_refused", "status": 403, "code": "forbidden",
            "method": "POST", "path": "/v1/runs/r/cancel", "by": "ada"});
        assert_eq!(
            line(&mut log, "/v1/runs/r/cancel", Some("ada"), T),
            Some(expected)
        );
        let long = line(&mut log, &"/x".repeat(500), None, T).expect("a line");
        assert_eq!(
            long["path"].as_str().map(|path| path.chars().count()),
            Some(PATH_CHARACTERS_MAX + 1)
        );
        assert!(long.get("by").is_none());
    }

    #[test]
    fn lines_are_limited_and_those_left_out_are_counted() {
        let mut log = RefusalLog::default();
        let logged = (0..1_000)
            .filter(|_| line(&mut log, "/", None, T).is_some())
            .count();
        assert_eq!(logged, 60);
        assert_eq!(line(&mut log, "/", None, T + 59_999), None);
        let next = line(&mut log, "/", None, T + 60_000).expect("a line");
        assert_eq!(next["left_out"], 941);
        let next = line(&mut log, "/", None, T + 60_000).expect("a line");
        assert!(next.get("left_out").is_none());
    }
}
