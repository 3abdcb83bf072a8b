//! The `AI` binding of a Worker: models that Cloudflare runs.

use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::{AbortController, Env};

use crate::worker::platform::call::{Abort, Answer, message_of};

pub const BINDING: &str = "AI";

#[wasm_bindgen]
extern "C" {
    pub type Ai;

    #[wasm_bindgen(method, catch)]
    fn run(this: &Ai, model: &str, inputs: &JsValue, options: &Object) -> Result<JsValue, JsValue>;
}

/// None if the Worker has no such binding.
pub fn binding(env: &Env) -> Option<Ai> {
    let binding = Reflect::get(env, &BINDING.into()).ok()?;
    let can_run = Reflect::get(&binding, &"run".into()).is_ok_and(|run| run.is_function());
    can_run.then(|| binding.unchecked_into())
}

/// Asks a model; `inputs` is JSON. The call ends if the returned future, or the answer, is dropped. An error is what
/// the binding says.
pub async fn run(ai: &Ai, model: &str, inputs: &str) -> Result<Answer, String> {
    let controller = AbortController::default();
    let inputs = JSON::parse(inputs).map_err(|error| message_of(&error))?;
    let options = Object::new();
    let set = |name: &str, value: &JsValue| {
        // Setting a field of a plain object cannot fail.
        let _ = Reflect::set(&options, &name.into(), value);
    };
    set("signal", controller.signal().as_ref());
    // With its status and headers: an error alone does not say how long to stay away.
    set("returnRawResponse", &JsValue::TRUE);
    let abort = Abort::new(controller);
    let promise = ai
        .run(model, &inputs, &options)
        .map_err(|error| message_of(&error))?;
    let answer = JsFuture::from(Promise::resolve(&promise))
        .await
        .map_err(|error| message_of(&error))?;
    let response = into_response(answer).map_err(|error| message_of(&error))?;
    Ok(Answer::new(response, abort))
}

/// Models that know nothing of raw responses give a stream, or the value itself.
fn into_response(answer: JsValue) -> Result<web_sys::Response, JsValue> {
    let answer = match answer.dyn_into::<web_sys::Response>() {
        Ok(response) => return Ok(response),
        Err(other) => other,
    };
    let is_stream = Reflect::get(&answer, &"getReader".into()).is_ok_and(|reader| reader.is_function());
    let body = match is_stream {
        true => answer,
        false => JSON::stringify(&answer)?.into(),
    };
    let responses: Function = Reflect::get(&js_sys::global(), &"Response".into())?.dyn_into()?;
    Reflect::construct(&responses, &Array::of1(&body)).map(JsCast::unchecked_into)
}
