//! Bytes nobody meant, for everything that reads what others wrote. Nothing may panic, whatever it says.
//!
//! Each target begins with the files of `tests/fuzz/corpus/<target>` and changes them: bits, pieces of other files, words of
//! the format. `CURFEW_FUZZ_SECONDS=60` goes on that long for each target, `CURFEW_FUZZ_SEED=7` tries other changes.
//! An input that panics is printed; put it into the corpus, and it is tried first from then on.

mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::run::dice::Dice;

/// Enough to notice a target that has become careless; the long command has seconds instead.
const TRIES: u64 = 2_000;
const INPUT_MAX: usize = 4_096;

const WORDS: &[&str] = &[
    "null",
    "true",
    "-1",
    "1e400",
    "18446744073709551616",
    "\"\\ud800\"",
    "{}",
    "[]",
    "[[[[",
    "}}}}",
    "\"",
    "\\",
    "${",
    "}",
    "${secret.A}",
    "input",
    "state",
    ".x",
    "[0]",
    "size(",
    ".map(a, ",
    "?:",
    "&&",
    "in",
    "'",
    "\n\n",
    "data:",
    "event: ",
    "\r",
    "\u{feff}",
    "\u{0}",
    "P1DT",
    "30s",
    "1h30m",
    "999999999999d",
    "PT",
    "0.5",
    "t1",
    "epoch",
    "status",
    "completed",
    "__proto__",
    "GET /v1/runs?",
    "POST /v1/runs/r~t1/",
    "%7E",
    "%zz",
    "&",
    "=",
    "..",
    "~",
    "authorization: Bearer ",
    "idempotency-key: ",
    "?limit=",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    files(target).into_iter().map(|(_, input)| input).collect()
}

/// The inputs a target begins with, by the names of their files.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/corpus")
        .join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let inputs: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|path| (name(path), fs::read(path).expect("readable")))
        .collect();
    assert!(!inputs.is_empty(), "{target} has nothing to begin with");
    inputs
}

fn change(input: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    let place = |dice: &mut Dice, input: &[u8]| dice.below(input.len() as u64 + 1) as usize;
    match dice.below(7) {
        0 if !input.is_empty() => {
            let at = dice.below(input.len() as u64) as usize;
            input[at] ^= 1 << dice.below(8);
        }
        1 if !input.is_empty() => {
            let from = dice.below(input.len() as u64) as usize;
            let until = (from + 1 + dice.below(16) as usize).min(input.len());
            input.drain(from..until);
        }
        2 => {
            let at = place(dice, input);
            input.insert(at, dice.below(256) as u8);
        }
        3 => {
            let other = dice.pick(others).clone();
            let (from, at) = (place(dice, &other), place(dice, input));
            let until = (from + dice.below(64) as usize).min(other.len());
            input.splice(at..at, other[from..until].iter().copied());
        }
        4 => {
            let (from, at) = (place(dice, input), place(dice, input));
            let until = (from + dice.below(32) as usize).min(input.len());
            let piece = input[from..until].repeat(1 + dice.below(8) as usize);
            input.splice(at..at, piece);
        }
        _word => {
            let at = place(dice, input);
            let until = (at + dice.below(4) as usize).min(input.len());
            input.splice(at..until, dice.pick(WORDS).bytes());
        }
    }
    input.truncate(INPUT_MAX);
}

fn fuzz(target: &str, read: impl Fn(&[u8])) {
    let attempt = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| read(input))).is_err() {
            let text = String::from_utf8_lossy(input);
            panic!(
                "{target} panicked; the input, {} bytes: {text:?} = {input:?}",
                input.len()
            );
        }
    };
    let known = corpus(target);
    known.iter().for_each(|input| attempt(input));
    let mut dice = Dice::seeded(number("CURFEW_FUZZ_SEED").unwrap_or(1));
    let until = number("CURFEW_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut tries = 0_u64;
    // What was changed once is changed again: that is how deep structure comes about.
    let mut pool = known.clone();
    while until.map_or(tries < TRIES, |until| Instant::now() < until) {
        let mut input = dice.pick(&pool).clone();
        for _ in 0..=dice.below(4) {
            change(&mut input, &known, &mut dice);
        }
        attempt(&input);
        tries += 1;
        if pool.len() < 500 {
            pool.push(input);
        } else {
            let at = known.len() + dice.below((pool.len() - known.len()) as u64) as usize;
            pool[at] = input;
        }
    }
    println!("{target}: {tries} inputs");
}

/// A fuzzer that swallows panics would never find one.
#[test]
#[should_panic(expected = "durations panicked; the input")]
fn a_target_that_panics_is_told_with_its_input() {
    fuzz("durations", |bytes| {
        assert!(bytes.is_empty(), "an invented panic")
    });
}
