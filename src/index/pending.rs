//! Index updates that a run's object has yet to send, and those that the queue refused. Pure. Only the subjects are stored; the
//! content is read from the run when it is sent, so that a repeated update is never stale.

use std::collections::BTreeSet;

use serde_json::Value;

/// What an update is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Run,
    Gate(String),
    /// How long a node took. A lost sample does no harm.
    Latency,
}

/// How often refused updates are retried, each time after twice the delay. The next event of the run sends them as well. So does
/// the sweep, but only for runs that are in the index already.
const RETRIES_MAX: u32 = 6;

#[derive(Debug, Default)]
pub struct Pending {
    run: bool,
    gates: BTreeSet<String>,
    latencies: Vec<Value>,
    refused_run: bool,
    refused_gates: BTreeSet<String>,
    retries: u32,
    is_retry_scheduled: bool,
}

/// The updates to send now.
#[derive(Debug, Default, PartialEq)]
pub struct Due {
    pub run: bool,
    pub gates: BTreeSet<String>,
    pub latencies: Vec<Value>,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        !self.run && self.gates.is_empty() && self.latencies.is_empty()
    }

    pub fn add_run(&mut self) {
        self.run = true;
    }

    pub fn add_gate(&mut self, id: &str) {
        self.gates.insert(id.to_string());
    }

    pub fn add_latency(&mut self, sample: Value) {
        self.latencies.push(sample);
    }

    pub fn take(&mut self) -> Due {
        Due {
            run: std::mem::take(&mut self.run),
            gates: std::mem::take(&mut self.gates),
            latencies: std::mem::take(&mut self.latencies),
        }
    }

    /// The run is not in memory, so the updates cannot be made. They are sent with the next event, like refused ones.
    pub fn put_back(&mut self, due: Due) {
        self.refused_run |= due.run;
        self.refused_gates.extend(due.gates);
    }

    /// The queue refused the update. Returns the delay before the retry, in multiples of the first delay, unless a retry is
    /// scheduled already or the retries are used up.
    pub fn refused(&mut self, subject: Subject) -> Option<u64> {
        match subject {
            Subject::Run => self.refused_run = true,
            Subject::Gate(id) => {
                self.refused_gates.insert(id);
            }
            Subject::Latency => return None,
        }
        if self.is_retry_scheduled || self.retries >= RETRIES_MAX {
            return None;
        }
        self.is_retry_scheduled = true;
        self.retries += 1;
        Some(1 << (self.retries - 1))
    }

    /// The delay of the scheduled retry is over.
    pub fn retry_after_delay(&mut self) {
        self.is_retry_scheduled = false;
        self.restore_refused();
    }

    pub fn was_refused(&self) -> bool {
        self.refused_run || !self.refused_gates.is_empty()
    }

    /// Another event has come: refused updates are sent again, and may be retried as often as before.
    pub fn retry(&mut self) {
        self.retries = 0;
        self.restore_refused();
    }

    fn restore_refused(&mut self) {
        self.run |= std::mem::take(&mut self.refused_run);
        self.gates.append(&mut self.refused_gates);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refused_updates_are_sent_again_once() {
        let mut pending = Pending::default();
        pending.add_gate("g1");
        pending.add_gate("g2");
        pending.add_run();
        pending.add_latency(json!({"ms": 5}));
        assert!(!pending.is_empty());
        let due = pending.take();
        assert_eq!((due.run, due.gates.len(), due.latencies.len()), (true, 2, 1));
        assert!(pending.is_empty() && !pending.was_refused());

        assert_eq!(pending.refused(Subject::Latency), None);
        assert!(!pending.was_refused());
        pending.refused(Subject::Gate("g2".into()));
        assert!(pending.is_empty() && pending.was_refused());
        pending.add_gate("g3");
        pending.retry();
        assert!(!pending.was_refused());
        let due = pending.take();
        assert_eq!((due.run, due.latencies.len()), (false, 0));
        assert_eq!(due.gates, BTreeSet::from(["g2".to_string(), "g3".to_string()]));

        pending.refused(Subject::Run);
        pending.retry();
        assert!(pending.take().run);
        assert_eq!(pending.take(), Due::default());
    }

    #[test]
    fn updates_that_could_not_be_made_are_sent_later() {
        let mut pending = Pending::default();
        pending.add_run();
        pending.add_gate("g1");
        let due = pending.take();
        pending.put_back(due);
        assert!(pending.is_empty() && pending.was_refused());
        pending.retry();
        let due = pending.take();
        assert_eq!((due.run, due.gates.len()), (true, 1));
    }

    #[test]
    fn refused_updates_are_retried_a_limited_number_of_times() {
        let mut pending = Pending::default();
        let mut delays = Vec::new();
        for _ in 0..10 {
            // Both updates were in one message: one retry is scheduled.
            delays.extend(pending.refused(Subject::Run));
            assert_eq!(pending.refused(Subject::Gate("g1".into())), None);
            pending.retry_after_delay();
            let due = pending.take();
            assert!(due.run && due.gates.len() == 1);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32]);
        pending.refused(Subject::Run);
        pending.retry();
        pending.take();
        assert_eq!(pending.refused(Subject::Run), Some(1));
    }
}
