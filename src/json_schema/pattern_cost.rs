//! Owns the price of a pattern: how many steps one byte of text may take.
//!
//! The matcher goes over the text once, with all states in which the pattern can be at that place. In general that is every
//! state of its compiled form, and the price is its size. Most patterns that people write are a row of characters and
//! classes from the beginning of the text, such as an id of five groups of digits: they are in one state at a time, and at
//! the price of their size a list of a thousand ids would be too expensive to check.

use super::limits;

/// Steps for one byte of text, for a pattern whose compiled form has `units`.
pub(super) fn steps_per_byte(source: &str, units: usize) -> usize {
    let by_size = units * limits::PATTERN_STEPS;
    match row(source) {
        Some(row) => by_size.min(row.states_at_once() * row.steps_per_state()),
        None => by_size,
    }
}

/// A pattern that is a row of atoms, anchored at its beginning.
#[derive(Debug, Default, PartialEq)]
struct Row {
    /// States after the first atom of varying length: where that ends is open, so they may all be under way at once.
    open: usize,
    has_varied: bool,
    longest_class: usize,
}

impl Row {
    /// Up to the first atom of varying length, and in it, what was read tells the state.
    fn states_at_once(&self) -> usize {
        2 + self.open
    }

    /// A class is searched from its beginning.
    fn steps_per_state(&self) -> usize {
        limits::STATE_STEPS + self.longest_class / 2
    }

    fn add(&mut self, count: Count) {
        if self.has_varied {
            self.open = self.open.saturating_add(count.most.max(1));
        }
        self.has_varied |= count.varies;
    }
}

/// How often an atom stands there.
#[derive(Debug, PartialEq)]
struct Count {
    most: usize,
    varies: bool,
}

/// `None` for every pattern that is more than a row: its price is its size.
fn row(source: &str) -> Option<Row> {
    let mut rest = source.strip_prefix('^')?.chars().peekable();
    let mut row = Row::default();
    while let Some(next) = rest.next() {
        match next {
            '$' if rest.peek().is_none() => return Some(row),
            '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            '\\' => match rest.next()? {
                // One of these stands for many ranges, or for a place between two characters.
                'd' | 'D' | 'w' | 'W' | 's' | 'S' => row.longest_class = row.longest_class.max(8),
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
                row.longest_class = row.longest_class.max(length);
            }
            _character => {}
        }
        let count = match rest.peek() {
            Some('*' | '+' | '?') => {
                rest.next();
                Count {
                    most: 1,
                    varies: true,
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
                    None => Count {
                        most: bounds.parse().ok()?,
                        varies: false,
                    },
                    Some((least, "")) => Count {
                        most: least.parse::<usize>().ok()?.checked_add(1)?,
                        varies: true,
                    },
                    Some((_, most)) => Count {
                        most: most.parse().ok()?,
                        varies: true,
                    },
                }
            }
            Some(_) | None => Count {
                most: 1,
                varies: false,
            },
        };
        row.add(count);
        // A lazy or a repeated repetition.
        if matches!(rest.peek(), Some('*' | '+' | '?' | '{')) {
            return None;
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_few_states_at_once() {
        for (source, states) in [
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$", 2),
            ("^[a-z0-9-]{1,64}$", 2),
            ("^order-\\d+$", 2),
            ("^[^@ ]+@[a-z]+\\.[a-z]{2,10}$", 2 + 1 + 1 + 1 + 10),
            ("^a", 2),
            ("^[a-z]{3,}x{40}$", 2 + 40),
        ] {
            assert_eq!(
                row(source).map(|row| row.states_at_once()),
                Some(states),
                "{source}"
            );
        }
    }

    #[test]
    fn everything_else_has_the_price_of_its_size() {
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
            assert_eq!(row(source), None, "{source}");
            assert_eq!(steps_per_byte(source, 4), 4 * limits::PATTERN_STEPS, "{source}");
        }
    }

    #[test]
    fn a_row_never_costs_more_than_its_size() {
        assert_eq!(steps_per_byte("^a+b{1000}$", 2), 2 * limits::PATTERN_STEPS);
        assert!(steps_per_byte("^[0-9a-f]{36}$", 64) < limits::PATTERN_STEPS);
    }
}
