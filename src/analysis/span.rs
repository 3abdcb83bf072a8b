//! The time that tokens take, and how much of it the clock of the run's limit runs.

use crate::analysis::bounds::UNBOUNDED;

/// A stretch of a run: from the creation of a token until no token is left of what follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub time_ms: u64,
    /// The longest time in front of people.
    pub person_ms: u64,
    /// The longest time in which the run's clock runs: not every token stands in front of a person.
    pub working_ms: u64,
    /// How often a token comes to a person.
    pub stops: u64,
}

impl Span {
    fn map2(self, other: Span, apply: impl Fn(u64, u64) -> u64) -> Span {
        Span {
            time_ms: apply(self.time_ms, other.time_ms),
            person_ms: apply(self.person_ms, other.person_ms),
            working_ms: apply(self.working_ms, other.working_ms),
            stops: apply(self.stops, other.stops),
        }
    }

    pub fn then(self, other: Span) -> Span {
        self.map2(other, u64::saturating_add)
    }

    pub fn max(self, other: Span) -> Span {
        self.map2(other, u64::max)
    }

    pub fn min(self, other: Span) -> Span {
        self.map2(other, u64::min)
    }

    pub fn times(self, count: u64) -> Span {
        self.map2(self, |value, _| value.saturating_mul(count))
    }

    /// Nothing is known of when the clock stands still.
    pub fn always_working(self) -> Span {
        Span {
            working_ms: self.time_ms,
            ..self
        }
    }

    /// Spans that begin together, each as often as its number says. While one of them works, the clock runs for all.
    pub fn parallel(spans: impl IntoIterator<Item = (Span, u64)>) -> Span {
        let mut all = Span::default();
        let (mut count, mut working_ms) = (0u64, 0u64);
        for (span, times) in spans.into_iter().filter(|(_, times)| *times > 0) {
            let stops = all.stops.saturating_add(span.stops.saturating_mul(times));
            working_ms = working_ms.saturating_add(span.working_ms.saturating_mul(times));
            count = count.saturating_add(times);
            all = Span {
                stops,
                ..all.max(span)
            };
        }
        match (count, all.person_ms) {
            (0 | 1, _) => all,
            (_several, 0) => all.always_working(),
            (_several, _persons) => Span {
                working_ms: working_ms.min(all.time_ms),
                ..all
            },
        }
    }

    pub const UNBOUNDED: Span = Span {
        time_ms: UNBOUNDED,
        person_ms: UNBOUNDED,
        working_ms: UNBOUNDED,
        stops: UNBOUNDED,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_only_while_everything_stands() {
        let gate = Span {
            time_ms: 100,
            person_ms: 100,
            working_ms: 0,
            stops: 1,
        };
        let work = Span {
            time_ms: 30,
            working_ms: 30,
            ..Span::default()
        };
        let one_way = gate.then(work);
        let other_way = work.then(gate);
        assert_eq!((one_way.time_ms, one_way.working_ms), (130, 30));
        // Each works while the other one waits.
        let both = Span::parallel([(one_way, 1), (other_way, 1)]);
        assert_eq!((both.time_ms, both.working_ms, both.stops), (130, 60, 2));
        // Without a person all work at once.
        let calls = Span::parallel([(work, 1_000)]);
        assert_eq!((calls.time_ms, calls.working_ms), (30, 30));
        assert_eq!(Span::parallel([(one_way, 1), (other_way, 0)]), one_way);
        assert_eq!(Span::parallel([(one_way, 1_000)]).working_ms, 130);
    }
}
