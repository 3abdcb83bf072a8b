//! Fuzzes everything that parses untrusted input. No input may cause a panic.
//!
//! Each target starts with the files of `tests/fuzz/corpus/<target>` and mutates them: bits, slices of other files, tokens of
//! the format. `CURFEW_FUZZ_SECONDS=60` runs each target that long, `CURFEW_FUZZ_SEED=7` selects other mutations.
//! An input that panics is printed. Added to the corpus, it is tried first.

mod credentials;
mod exports;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use curfew::simulate::Rng;

/// For the normal test run. `CURFEW_FUZZ_SECONDS` replaces it.
const INPUTS: u64 = 2_000;
const INPUT_MAX: usize = 4_096;

const TOKENS: &[&str] = &[
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
    "sha256:",
    "Bearer ",
    "admin",
    "\"roles\":",
    "\"workflows\":[",
    "\"alg\":\"none\"",
    "\"alg\":\"HS256\"",
    "\"aud\":",
    "\"exp\":",
    "@example.com",
    "group:",
    "CF_Authorization=",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    files(target).into_iter().map(|(_, input)| input).collect()
}

/// The corpus of a target: file names and contents.
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
    assert!(!inputs.is_empty(), "{target} has no corpus");
    inputs
}

fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) {
    let position = |rng: &mut Rng, input: &[u8]| rng.below(input.len() as u64 + 1) as usize;
    match rng.below(7) {
        0 if !input.is_empty() => {
            let at = rng.below(input.len() as u64) as usize;
            input[at] ^= 1 << rng.below(8);
        }
        1 if !input.is_empty() => {
            let from = rng.below(input.len() as u64) as usize;
            let until = (from + 1 + rng.below(16) as usize).min(input.len());
            input.drain(from..until);
        }
        2 => {
            let at = position(rng, input);
            input.insert(at, rng.below(256) as u8);
        }
        3 => {
            let other = rng.pick(others).clone();
            let (from, at) = (position(rng, &other), position(rng, input));
            let until = (from + rng.below(64) as usize).min(other.len());
            input.splice(at..at, other[from..until].iter().copied());
        }
        4 => {
            let (from, at) = (position(rng, input), position(rng, input));
            let until = (from + rng.below(32) as usize).min(input.len());
            let piece = input[from..until].repeat(1 + rng.below(8) as usize);
            input.splice(at..at, piece);
        }
        _token => {
            let at = position(rng, input);
            let until = (at + rng.below(4) as usize).min(input.len());
            input.splice(at..until, rng.pick(TOKENS).bytes());
        }
    }
    input.truncate(INPUT_MAX);
}

fn fuzz(target: &str, parse: impl Fn(&[u8])) {
    let check = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| parse(input))).is_err() {
            let text = String::from_utf8_lossy(input);
            panic!(
                "{target} panicked; the input, {} bytes: {text:?} = {input:?}",
                input.len()
            );
        }
    };
    let corpus = corpus(target);
    corpus.iter().for_each(|input| check(input));
    let mut rng = Rng::seeded(number("CURFEW_FUZZ_SEED").unwrap_or(1));
    let until = number("CURFEW_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut count = 0_u64;
    // Mutated inputs are mutated again, which builds up deep structures.
    let mut pool = corpus.clone();
    while until.map_or(count < INPUTS, |until| Instant::now() < until) {
        let mut input = rng.pick(&pool).clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut input, &corpus, &mut rng);
        }
        check(&input);
        count += 1;
        if pool.len() < 500 {
            pool.push(input);
        } else {
            let at = corpus.len() + rng.below((pool.len() - corpus.len()) as u64) as usize;
            pool[at] = input;
        }
    }
    println!("{target}: {count} inputs");
}

/// A fuzzer that hides panics would never find one.
#[test]
#[should_panic(expected = "durations panicked; the input")]
fn an_input_that_panics_is_printed() {
    fuzz("durations", |bytes| {
        assert!(bytes.is_empty(), "an invented panic")
    });
}
