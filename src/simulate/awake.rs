//! How long objects are in memory because connections to executors are open. An object is billed once for the time in which
//! several of them are.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::time::Millis;
use crate::simulate::environment::ConnectionId;

#[derive(Debug, Default)]
pub struct Awake {
    /// By run: since when, and the connections that are open.
    open: BTreeMap<String, (Millis, BTreeSet<ConnectionId>)>,
    past_ms: u64,
}

impl Awake {
    pub fn opened(&mut self, connection: &ConnectionId, now: Millis) {
        let of_run = self.open.entry(connection.run.clone());
        let (_, connections) = of_run.or_insert_with(|| (now, BTreeSet::new()));
        connections.insert(connection.clone());
    }

    pub fn closed(&mut self, connection: &ConnectionId, now: Millis) {
        let is_last = self.open.get_mut(&connection.run).is_some_and(|(_, open)| {
            open.remove(connection);
            open.is_empty()
        });
        if is_last {
            self.left(&connection.run, now);
        }
    }

    /// The object of a run left memory, with its connections.
    pub fn left(&mut self, run: &str, now: Millis) {
        if let Some((since, _)) = self.open.remove(run) {
            self.past_ms = self.past_ms.saturating_add(now.saturating_sub(since));
        }
    }

    /// Of all runs.
    pub fn total_ms(&self, now: Millis) -> u64 {
        let current = self.open.values().map(|(since, _)| now.saturating_sub(*since));
        current.fold(self.past_ms, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_at_once_count_once() {
        let connection = |run: &str, number| ConnectionId {
            run: run.to_string(),
            incarnation: 0,
            number,
        };
        let mut awake = Awake::default();
        awake.opened(&connection("a", 1), 100);
        awake.opened(&connection("a", 2), 150);
        awake.opened(&connection("b", 1), 150);
        awake.closed(&connection("a", 1), 200);
        assert_eq!(awake.total_ms(250), 150 + 100);
        awake.closed(&connection("a", 2), 300);
        awake.closed(&connection("a", 2), 900);
        awake.left("b", 350);
        assert_eq!(awake.total_ms(1_000), 200 + 200);
        awake.opened(&connection("a", 3), 1_000);
        assert_eq!(awake.total_ms(1_010), 410);
    }
}
