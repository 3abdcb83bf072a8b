//! A gate as the API, the index and notifications show it.

use serde_json::{Value, json};

use crate::base::text;
use crate::base::truncate;
use crate::run::wait::gate::GateState;

const PROMPT_BYTES_MIN: usize = 200;

impl GateState {
    pub fn view(&self, run_id: &str) -> Value {
        json!({
            "id": self.id,
            "run_id": run_id,
            "node_id": self.node_id,
            "token_id": self.token_id,
            "kind": self.kind,
            "prompt": self.prompt,
            "choices": self.choices,
            "input_schema": self.input_schema,
            "opened_at": self.opened_at,
            "timeout_at": self.timeout_at,
            "reminded_at": self.reminded_at,
            "status": self.status,
            "decision": self.decision,
        })
    }

    /// About `bytes` long: the fields that are not texts are never truncated.
    pub fn view_within(&self, run_id: &str, bytes: usize) -> Value {
        let mut view = self.view(run_id);
        if text::json_bytes(&view) <= bytes {
            return view;
        }
        let quarter = bytes / 4;
        let mut was_truncated = false;
        let mut shorten = |field: &mut Value, shorter: Option<Value>| {
            if let Some(shorter) = shorter {
                *field = shorter;
                was_truncated = true;
            }
        };
        let choices = view["choices"]
            .as_array()
            .and_then(|choices| truncate::list(choices, quarter));
        shorten(&mut view["choices"], choices.map(Value::Array));
        let schema = truncate::schema(&view["input_schema"], quarter);
        shorten(&mut view["input_schema"], schema);
        for (_, field) in view["decision"].as_object_mut().into_iter().flatten() {
            let shorter = truncate::value(field, quarter / 4);
            shorten(field, shorter);
        }
        let without_prompt = text::json_bytes(&view) - text::json_bytes(&view["prompt"]);
        let left = bytes.saturating_sub(without_prompt).max(PROMPT_BYTES_MIN);
        let prompt = truncate::value(&view["prompt"], left);
        shorten(&mut view["prompt"], prompt);
        if was_truncated {
            view["truncated"] = json!(true);
        }
        view
    }
}
