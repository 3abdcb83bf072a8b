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

/// A closed gate takes no decision. A person may have decided at the next gate of the same place, after a retry.
pub(super) fn smallest(asked: Asked) -> Smallest {
    let Some(gate) = asked.gate() else {
        return Smallest::unknown("the gate is not in the history");
    };
    let later = asked.run.gates().filter(|other| {
        let is_same_place = other.kind == gate.kind && other.node_id == gate.node_id;
        is_same_place && other.status == GateStatus::Decided && other.opened_at >= asked.at()
    });
    let decided = later
        .filter_map(|other| Some((other.decision.as_ref()?.at, other.id.as_str())))
        .min();
    match decided {
        Some((at, id)) => {
            let waited_ms = at.saturating_sub(asked.began_at());
            let waited_ms = waited_ms.saturating_sub(asked.facts.paused_ms(asked.at(), at));
            let waited = format_duration(waited_ms);
            Smallest::after(
                waited_ms,
                format!(
                    "the decision was made at the next gate of this place, {id}, {waited} after this one opened"
                ),
            )
        }
        None => Smallest::unknown(
            "no person has decided at this place since, so the history has no decision that was late",
        ),
    }
}
