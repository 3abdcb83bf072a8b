//! What a run's object has yet to tell the index, and what the queue refused of what it told. Pure: only subjects are kept, the
//! words are looked up when they are said, so that what is said again is what is true then.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one piece of news is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Run,
    Gate(String),
    /// How long a node took. Losing one does no harm.
    Latency,
}

/// How often what was refused is told again for no other reason, each time after twice as long. Whatever else happens to the run
/// is another reason, and so is the sweep; but a run that the index has never heard of is unknown to the sweep.
const REPEATS_MAX: u32 = 6;

#[derive(Debug, Default)]
pub struct Pending {
    of_run: bool,
    gates: BTreeSet<String>,
    latencies: Vec<Value>,
    refused_run: bool,
    refused_gates: BTreeSet<String>,
    /// How often it was, and whether it is about to be again.
    repeats: u32,
    is_repeat_arranged: bool,
}

/// What is to be sent now.
#[derive(Debug, Default, PartialEq)]
pub struct Due {
    pub of_run: bool,
    pub gates: BTreeSet<String>,
    pub latencies: Vec<Value>,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        !self.of_run && self.gates.is_empty() && self.latencies.is_empty()
    }

    pub fn add_run(&mut self) {
        self.of_run = true;
    }

    pub fn add_gate(&mut self, id: &str) {
        self.gates.insert(id.to_string());
    }

    pub fn add_latency(&mut self, sample: Value) {
        self.latencies.push(sample);
    }

    pub fn take(&mut self) -> Due {
        Due {
            of_run: std::mem::take(&mut self.of_run),
            gates: std::mem::take(&mut self.gates),
            latencies: std::mem::take(&mut self.latencies),
        }
    }

    /// It could not be sent now: it is sent with the next event, like what was refused.
    pub fn put_back(&mut self, due: Due) {
        self.refused_run |= due.of_run;
        self.refused_gates.extend(due.gates);
    }

    /// The queue did not take it. Returns after how many times the first delay it is to be repeated, unless that is arranged
    /// already or was tried often enough.
    pub fn refused(&mut self, subject: Subject) -> Option<u64> {
        match subject {
            Subject::Run => self.refused_run = true,
            Subject::Gate(id) => {
                self.refused_gates.insert(id);
            }
            Subject::Latency => return None,
        }
        if self.is_repeat_arranged || self.repeats >= REPEATS_MAX {
            return None;
        }
        self.is_repeat_arranged = true;
        self.repeats += 1;
        Some(1 << (self.repeats - 1))
    }

    /// The delay is over.
    pub fn repeat_after_delay(&mut self) {
        self.is_repeat_arranged = false;
        self.tell_refused();
    }

    pub fn was_refused(&self) -> bool {
        self.refused_run || !self.refused_gates.is_empty()
    }

    /// Another event came in: what was refused is sent again with it.
    pub fn repeat(&mut self) {
        self.repeats = 0;
        self.tell_refused();
    }

    fn tell_refused(&mut self) {
        self.of_run |= std::mem::take(&mut self.refused_run);
        self.gates.append(&mut self.refused_gates);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_refused_is_told_again_once() {
        let mut pending = Pending::default();
        pending.add_gate("g1");
        pending.add_gate("g2");
        pending.add_run();
        pending.add_latency(json!({"ms": 5}));
        assert!(!pending.is_empty());
        let due = pending.take();
        assert_eq!((due.of_run, due.gates.len(), due.latencies.len()), (true, 2, 1));
        assert!(pending.is_empty() && !pending.was_refused());

        assert_eq!(pending.refused(Subject::Latency), None);
        assert!(!pending.was_refused());
        pending.refused(Subject::Gate("g2".into()));
        assert!(pending.is_empty() && pending.was_refused());
        pending.add_gate("g3");
        pending.repeat();
        assert!(!pending.was_refused());
        let due = pending.take();
        assert_eq!((due.of_run, due.latencies.len()), (false, 0));
        assert_eq!(due.gates, BTreeSet::from(["g2".to_string(), "g3".to_string()]));

        pending.refused(Subject::Run);
        pending.repeat();
        assert!(pending.take().of_run);
        assert_eq!(pending.take(), Due::default());
    }

    #[test]
    fn what_could_not_be_told_now_is_told_later() {
        let mut pending = Pending::default();
        pending.add_run();
        pending.add_gate("g1");
        let due = pending.take();
        pending.put_back(due);
        assert!(pending.is_empty() && pending.was_refused());
        pending.repeat();
        let due = pending.take();
        assert_eq!((due.of_run, due.gates.len()), (true, 1));
    }

    #[test]
    fn what_was_refused_is_repeated_after_a_while_and_not_for_ever() {
        let mut pending = Pending::default();
        let mut delays = Vec::new();
        for _ in 0..10 {
            // A message with both in it: one repeat is arranged.
            delays.extend(pending.refused(Subject::Run));
            assert_eq!(pending.refused(Subject::Gate("g1".into())), None);
            pending.repeat_after_delay();
            let due = pending.take();
            assert!(due.of_run && due.gates.len() == 1);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32]);
        // Another event: it may be tried again.
        pending.refused(Subject::Run);
        pending.repeat();
        pending.take();
        assert_eq!(pending.refused(Subject::Run), Some(1));
    }
}
