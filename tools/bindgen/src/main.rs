//! Runs wasm-bindgen on a compiled Worker: `curfew-bindgen <input.wasm> <output directory> [--debug]`.
//!
//! The wasm-bindgen command line tool does the same, with a test runner, a web server and an argument parser that take most of
//! its compile time.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

struct Arguments {
    input: PathBuf,
    output: PathBuf,
    /// Keeps the names of functions, which make stack traces readable and the Worker larger, and checks types at the boundary.
    debug: bool,
}

fn main() -> Result<()> {
    let arguments = parse(env::args().skip(1))?;
    Bindgen::new()
        .input_path(&arguments.input)
        .out_name("index")
        // Instantiates the module when it is imported, as a Worker needs it.
        .module(true)?
        .typescript(false)
        .debug(arguments.debug)
        .remove_name_section(!arguments.debug)
        .remove_producers_section(true)
        // A panic leaves the instance unusable: both options are what src/worker/wasm_instance.mjs replaces it with.
        .reset_state_function(true)
        .force_enable_abort_handler(true)
        .generate(&arguments.output)
        .with_context(|| format!("wasm-bindgen cannot process {}", arguments.input.display()))
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Arguments> {
    let (flags, paths): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--debug") {
        bail!("unknown option {unknown}");
    }
    let [input, output] = paths.as_slice() else {
        bail!("usage: curfew-bindgen <input.wasm> <output directory> [--debug]");
    };
    Ok(Arguments {
        input: input.into(),
        output: output.into(),
        debug: !flags.is_empty(),
    })
}
