//! The `AI` binding of a Worker: models that Cloudflare runs.

use wasm_bindgen::prelude::*;
use worker::Env;

pub const BINDING: &str = "AI";

#[wasm_bindgen]
extern "C" {
    pub type Ai;
}

/// None if the Worker has no such binding.
pub fn binding(env: &Env) -> Option<Ai> {
    super::binding(env, BINDING, "run")
}
