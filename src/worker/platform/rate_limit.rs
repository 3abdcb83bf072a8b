//! The platform's rate limit: a binding that counts by key. It counts where the request came in, so that it costs no way.

use js_sys::{Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::Env;

pub const BINDING: &str = "RATE_LIMIT";

#[wasm_bindgen]
extern "C" {
    pub type RateLimit;

    #[wasm_bindgen(method, catch)]
    fn limit(this: &RateLimit, options: &Object) -> Result<Promise, JsValue>;
}

/// None if the Worker has no such binding.
pub fn binding(env: &Env) -> Option<RateLimit> {
    super::binding(env, BINDING, "limit")
}

impl RateLimit {
    /// Counts a request of `key`. Whether it is within the limit.
    pub async fn admits(&self, key: &str) -> Result<bool, JsValue> {
        let options = Object::new();
        Reflect::set(&options, &"key".into(), &key.into())?;
        let outcome = JsFuture::from(self.limit(&options)?).await?;
        Ok(Reflect::get(&outcome, &"success".into())?.is_truthy())
    }
}
