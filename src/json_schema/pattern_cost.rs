//! The cost of a pattern: the steps for one byte of text.
//!
//! The matcher reads the text once and follows all states that the pattern can be in. In general these are all states of the
//! compiled form, so the cost is its size. Most patterns in practice are linear: anchored characters and classes in sequence,
//! such as an id of five groups of digits. They are in few states at a time. Charged by size, a list of a thousand such ids
//! would be too expensive to validate.

use super::limits;

/// Steps for one byte of text. `units` is the size of the compiled form.
pub(super) fn steps_per_byte(source: &str, units: usize) -> usize {
    let by_size = units * limits::PATTERN_STEPS;
    match parse_linear(source) {
        Some(linear) => by_size.min(linear.states_at_once() * linear.steps_per_state()),
        None => by_size,
    }
}

/// A sequence of atoms, anchored at the start of the text.
#[derive(Debug, Default, PartialEq)]
struct LinearPattern {
    /// States after the first atom of variable length. Its end is not determined, so all of them may be active at once.
    states_after_variable: usize,
    has_variable: bool,
    longest_class: usize,
}

impl LinearPattern {
    /// Up to the end of the first atom of variable length, the number of characters read determines the state.
    fn states_at_once(&self) -> usize {
        2 + self.states_after_variable
    }

    /// A class is searched linearly.
    fn steps_per_state(&self) -> usize {
        limits::STATE_STEPS + self.longest_class / 2
    }

    fn add(&mut self, count: Repetition) {
        if self.has_variable {
            self.states_after_variable = self.states_after_variable.saturating_add(count.max.max(1));
        }
        self.has_variable |= count.is_variable;
    }
}

/// How often an atom may occur.
#[derive(Debug, PartialEq)]
struct Repetition {
    max: usize,
    is_variable: bool,
}

/// `None` for a pattern that is not linear, whose cost is its size.
fn parse_linear(source: &str) -> Option<LinearPattern> {
    let mut rest = source.strip_prefix('^')?.chars().peekable();
    let mut pattern = LinearPattern::default();
    while let Some(next) = rest.next() {
        match next {
            '$' if rest.peek().is_none() => return Some(pattern),
            '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            '\\' => match rest.next()? {
                // Other letters stand for many ranges or for a position between two characters.
                'd' | 'D' | 'w' | 'W' | 's' | 'S' => pattern.longest_class = pattern.longest_class.max(8),
                letter if letter.is_ascii_alphanumeric() => return None,
                _character => {}
            },
            '[' => {
                let mut length = 0;
                loop {
                    match rest.next()? {
                        ']' if length > 0 => break,
                        '[' | ']' | '&' | '~' => return None,
                        '\\' => {
                            rest.next()?;
                            length += 8;
                        }
                        _character => length += 1,
                    }
                }
                pattern.longest_class = pattern.longest_class.max(length);
            }
            _character => {}
        }
        let count = match rest.peek() {
            Some('*' | '+' | '?') => {
                rest.next();
                Repetition {
                    max: 1,
                    is_variable: true,
                }
            }
            Some('{') => {
                rest.next();
                let mut bounds = String::new();
                loop {
                    match rest.next()? {
                        '}' => break,
                        character if character.is_ascii_digit() || character == ',' => bounds.push(character),
                        _other => return None,
                    }
                }
                match bounds.split_once(',') {
                    None => Repetition {
                        max: bounds.parse().ok()?,
                        is_variable: false,
                    },
                    Some((min, "")) => Repetition {
                        max: min.parse::<usize>().ok()?.checked_add(1)?,
                        is_variable: true,
                    },
                    Some((_, max)) => Repetition {
                        max: max.parse().ok()?,
                        is_variable: true,
                    },
                }
            }
            Some(_) | None => Repetition {
                max: 1,
                is_variable: false,
            },
        };
        pattern.add(count);
        // A lazy or a nested repetition.
        if matches!(rest.peek(), Some('*' | '+' | '?' | '{')) {
            return None;
        }
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_patterns_are_in_few_states_at_once() {
        for (source, states) in [
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$", 2),
            ("^[a-z0-9-]{1,64}$", 2),
            ("^order-\\d+$", 2),
            ("^[^@ ]+@[a-z]+\\.[a-z]{2,10}$", 2 + 1 + 1 + 1 + 10),
            ("^a", 2),
            ("^[a-z]{3,}x{40}$", 2 + 40),
        ] {
            assert_eq!(
                parse_linear(source).map(|pattern| pattern.states_at_once()),
                Some(states),
                "{source}"
            );
        }
    }

    #[test]
    fn other_patterns_cost_their_size() {
        for source in [
            "a",
            "^(a|b)$",
            "^a|b$",
            "^(a?){9}$",
            "^a**$",
            "^a+?$",
            "^a$b",
            "^\\bword",
            "^[[:alpha:]]$",
            "^[a&&b]$",
            "^[]a]$",
            "^a{1",
            "^a{x}",
            "^(?i)a",
            "^\\p{L}$",
            "^a{99999999999999999999}$",
        ] {
            assert_eq!(parse_linear(source), None, "{source}");
            assert_eq!(steps_per_byte(source, 4), 4 * limits::PATTERN_STEPS, "{source}");
        }
    }

    #[test]
    fn a_linear_pattern_never_costs_more_than_its_size() {
        assert_eq!(steps_per_byte("^a+b{1000}$", 2), 2 * limits::PATTERN_STEPS);
        assert!(steps_per_byte("^[0-9a-f]{36}$", 64) < limits::PATTERN_STEPS);
    }
}
