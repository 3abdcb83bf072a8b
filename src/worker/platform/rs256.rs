//! Signatures of JWTs, by the platform's cryptography.

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen(module = "/src/worker/platform/rs256.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = verifyRs256)]
    fn verify_rs256(jwk: &str, signed: &str, signature: &[u8]) -> Promise;
}

/// Whether the signature is right. An error if the key is invalid.
pub async fn verify(jwk: &str, signed: &str, signature: &[u8]) -> Result<bool, JsValue> {
    let is_right = JsFuture::from(verify_rs256(jwk, signed, signature)).await?;
    Ok(is_right.is_truthy())
}
