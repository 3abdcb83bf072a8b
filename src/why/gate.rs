//! Gates whose deadline passed.

use serde_json::{Value, json};

use crate::base::time::format_duration;
use crate::run::{GateState, GateStatus, RunEventKind};
use crate::why::Asked;
use crate::why::smallest::Smallest;

impl<'a> Asked<'a> {
    /// The gate of the timeout.
    pub(super) fn gate(&self) -> Option<&'a GateState> {
        let id = self.event.fields.get("gate_id")?.as_str()?;
        self.run.gates().find(|gate| gate.id == id)
    }
}

pub(super) fn used(asked: Asked) -> Value {
    let open_ms = asked.at().saturating_sub(asked.began_at());
    let gate = asked.gate();
    let opened_at = gate.map(|gate| gate.opened_at);
    let reminders = gate.map(|gate| {
        let events = gate.events.iter();
        events
            .filter(|event| event.kind == RunEventKind::GateReminded)
            .count()
    });
    json!({
        "elapsed_ms": asked.record.timeout_event.elapsed_ms,
        "stopped_ms": opened_at.map(|at| asked.at().saturating_sub(at).saturating_sub(open_ms)),
        "gate_id": gate.map(|gate| gate.id.as_str()),
        "opened_at": opened_at,
        "reminders": reminders,
    })
}

/// A closed gate takes no decision. When a person who decided at the next gate of the same place would have decided at this one is
/// not known.
pub(super) fn smallest(asked: Asked) -> Smallest {
    let Some(gate) = asked.gate() else {
        return Smallest::unknown("the gate is not in the history");
    };
    let later = asked.run.gates().filter(|other| {
        let is_same_place = other.kind == gate.kind && other.node_id == gate.node_id;
        is_same_place && other.status == GateStatus::Decided && other.opened_at >= asked.at()
    });
    let decided = later
        .filter_map(|other| Some((other.decision.as_ref()?.at, other)))
        .min_by_key(|(at, _)| *at);
    Smallest::unknown(match decided {
        Some((at, other)) => format!(
            "no person decided while it was open; the next gate of this place, {}, was decided {} after it had opened, {} after this one",
            other.id,
            format_duration(at.saturating_sub(other.opened_at)),
            format_duration(at.saturating_sub(gate.opened_at)),
        ),
        None => "no person has decided at this place since, so the history has no decision that was late"
            .to_string(),
    })
}
