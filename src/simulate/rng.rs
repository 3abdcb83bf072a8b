//! The source of choices for random tests: a seed (the simulator), or a list that proptest can shrink. 0 is always the
//! simplest choice, so that shrunk failures are simple.

pub struct Rng {
    source: Source,
}

enum Source {
    Seeded(u64),
    /// Yields zeros when it is exhausted.
    Listed(std::vec::IntoIter<u32>),
}

impl Rng {
    pub fn seeded(seed: u64) -> Rng {
        Rng {
            source: Source::Seeded(seed),
        }
    }

    pub fn listed(choices: Vec<u32>) -> Rng {
        Rng {
            source: Source::Listed(choices.into_iter()),
        }
    }

    /// A number from 0 to `bound - 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        let number = match &mut self.source {
            Source::Seeded(state) => split_mix(state),
            Source::Listed(choices) => u64::from(choices.next().unwrap_or(0)),
        };
        number % bound.max(1)
    }

    /// True in `percent` of 100 cases; never once the choices are exhausted.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) >= 100 - percent.min(100)
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
