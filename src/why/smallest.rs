//! The smallest limit with which a deadline would have held, or what is known of it.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Smallest {
    pub limit_ms: Option<u64>,
    /// It is longer than this.
    pub more_than_ms: Option<u64>,
    pub reason: String,
}

impl Smallest {
    /// What was waited for came after this time. A limit that passes at the same moment comes first, so it must be longer.
    pub fn after(needed_ms: u64, reason: impl Into<String>) -> Smallest {
        Smallest {
            limit_ms: Some(needed_ms.saturating_add(1)),
            more_than_ms: Some(needed_ms),
            reason: reason.into(),
        }
    }

    pub fn unknown(reason: impl Into<String>) -> Smallest {
        Smallest {
            limit_ms: None,
            more_than_ms: None,
            reason: reason.into(),
        }
    }

    /// The limit that passed was too short, whatever else is known.
    pub fn bounded_below(self, limit_ms: Option<u64>) -> Smallest {
        let more_than_ms = self.more_than_ms.into_iter().chain(limit_ms).max();
        // A result that came within the grace of the limit: one more millisecond holds.
        let least = limit_ms.map(|millis| millis.saturating_add(1));
        Smallest {
            limit_ms: self.limit_ms.map(|millis| millis.max(least.unwrap_or(0))),
            more_than_ms,
            ..self
        }
    }
}
