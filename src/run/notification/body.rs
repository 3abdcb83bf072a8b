//! The body of a notification: the event as `/events` shows it, the run, and the gate that the event is about. Bounded, because it
//! is a row and a request; what is cut says so.

use serde_json::{Value, json};

use crate::base::limits::NOTIFICATION_BYTES;
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::base::truncate;
use crate::run::notification::NOTIFICATIONS_SKIPPED;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::history_event::HistoryEvent;
use crate::run::wait::gate::GateState;

/// What the gate may take of the body.
const GATE_BYTES: usize = 10 << 10;

/// What a text of the event, or of the run's error, may take.
const TEXT_BYTES: usize = 512;

impl Run {
    pub(super) fn notification_body(&self, event: &HistoryEvent) -> Value {
        let mut body = json!(event.fields);
        body["seq"] = json!(event.seq);
        body["at"] = json!(event.at);
        body["kind"] = json!(event.kind);
        if event.has_record {
            body["recovery_path"] = json!(format!("/v1/runs/{}/timeouts/{}", self.header.id, event.seq));
        }
        let mut run = self.run_of_notification();
        let gate = self.gate_of_event(event);
        let gate = gate.map(|gate| gate.view_within(&self.header.id, GATE_BYTES));
        let left = NOTIFICATION_BYTES.saturating_sub(gate.as_ref().map_or(0, json_bytes));
        if json_bytes(&body) + json_bytes(&run) > left {
            let was_cut =
                truncate::every_text(&mut body, TEXT_BYTES) | truncate::every_text(&mut run, TEXT_BYTES);
            if was_cut {
                body["truncated"] = json!(true);
            }
            if json_bytes(&body) + json_bytes(&run) > left {
                body = json!({"seq": event.seq, "at": event.at, "kind": event.kind, "truncated": true});
            }
        }
        body["run"] = run;
        if let Some(gate) = gate {
            body["gate"] = gate;
        }
        body
    }

    pub(super) fn summary_body(&self, at: Millis) -> Value {
        json!({"at": at, "kind": NOTIFICATIONS_SKIPPED, "run": self.run_of_notification()})
    }

    fn run_of_notification(&self) -> Value {
        let header = &self.header;
        let mut run = json!({
            "id": header.id,
            "workflow_id": header.workflow_id,
            "version": header.version,
            "status": header.status,
            "attempt": header.attempt,
            "started_at": header.started_at,
            "timeout_at": header.timeout_at,
            "tags": header.tags,
        });
        if let Some(ended_at) = header.ended_at {
            run["ended_at"] = json!(ended_at);
            run["error"] = json!(header.error);
            run["reason"] = json!(header.reason);
        }
        if let Some(parent) = &header.parent {
            run["parent_run_id"] = json!(parent.run_id);
        }
        run
    }

    /// The gate that the event is about. A warning is about the gate at which its token waits.
    fn gate_of_event(&self, event: &HistoryEvent) -> Option<&GateState> {
        let field = |name: &str| event.fields.get(name).and_then(Value::as_str);
        if let Some(id) = field("gate_id") {
            return self.gates.get(id);
        }
        let is_of_gate = event.kind == RunEventKind::DeadlineWarning && field("deadline") == Some("gate");
        match is_of_gate {
            true => self.gates.open_of(field("token_id")),
            false => None,
        }
    }
}
