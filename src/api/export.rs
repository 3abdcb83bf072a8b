//! What an export of a run has besides the lists of the run.

use serde_json::{Value, json};

use crate::api::views;
use crate::base::time::Millis;
use crate::run::{Run, Settings};

pub fn recording(run: &Run, settings: &Settings, now: Millis) -> Value {
    let header = &run.header;
    let gates = run.gates().map(|gate| gate.view(&header.id));
    let mut start = json!({"request": header.request});
    if let Some(parent) = &header.parent {
        start["parent"] = json!(parent);
    }
    if let Some(event) = &header.triggered_by {
        start["triggered_by"] = json!(event);
    }
    json!({
        "run": views::run(run, now),
        "start": start,
        "snapshot": run.snapshot().stored,
        "settings": settings,
        "gates": gates.collect::<Vec<Value>>(),
        "signals": run.buffered_signals(),
    })
}
