//! What suspended tokens wait for, and signals that arrived before a token waited for them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::limits::{BUFFERED_SIGNALS, BUFFERED_SIGNALS_BYTES};
use crate::base::text::json_bytes;
use crate::run::token::TokenId;

#[derive(Debug, Default)]
pub(in crate::run) struct Waits {
    waiting: BTreeMap<TokenId, Awaited>,
    /// The tokens among them that wait for a signal, by its name.
    listeners: BTreeMap<String, BTreeSet<TokenId>>,
    /// Signals without a listener, by name, oldest first.
    buffered: BTreeMap<String, Vec<Value>>,
    changed: BTreeSet<String>,
}

/// Input from outside that a token waits for. A token that waits for a moment only has a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::run) enum Awaited {
    Signal { name: String },
    Callback,
}

/// The buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct TooManySignals;

impl Waits {
    pub fn restore(buffered: BTreeMap<String, Vec<Value>>) -> Waits {
        Waits {
            buffered,
            ..Waits::default()
        }
    }

    /// Signals without a listener, by name, oldest first.
    pub fn buffered(&self) -> &BTreeMap<String, Vec<Value>> {
        &self.buffered
    }

    pub fn begin(&mut self, token: TokenId, awaited: Awaited) {
        if let Awaited::Signal { name } = &awaited {
            self.listeners.entry(name.clone()).or_default().insert(token);
        }
        self.waiting.insert(token, awaited);
    }

    /// The wait is over. Most tokens that end were not waiting.
    pub fn end(&mut self, token: TokenId) {
        let Some(Awaited::Signal { name }) = self.waiting.remove(&token) else {
            return;
        };
        let listeners = self.listeners.get_mut(&name);
        let listeners = listeners.expect("a token that waits for a signal is listed under its name");
        listeners.remove(&token);
        if listeners.is_empty() {
            self.listeners.remove(&name);
        }
    }

    /// Tokens that wait for a signal or a callback.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    pub fn awaits_callback(&self, token: TokenId) -> bool {
        self.waiting.get(&token) == Some(&Awaited::Callback)
    }

    /// The token that has waited longest for this signal: ids are given in the order of creation.
    pub fn first_listener(&self, name: &str) -> Option<TokenId> {
        self.listeners.get(name)?.first().copied()
    }

    /// The oldest buffered signal of this name.
    pub fn take_buffered(&mut self, name: &str) -> Option<Value> {
        let payloads = self
            .buffered
            .get_mut(name)
            .filter(|payloads| !payloads.is_empty())?;
        self.changed.insert(name.to_string());
        Some(payloads.remove(0))
    }

    /// Buffers a signal until a token waits for it.
    pub fn buffer(&mut self, name: String, payload: Value) -> Result<(), TooManySignals> {
        let buffered = self.buffered.values().flatten();
        let (count, bytes) = buffered.fold((0, 0), |(count, bytes), payload| {
            (count + 1, bytes + json_bytes(payload) + 1)
        });
        if count >= BUFFERED_SIGNALS || bytes + json_bytes(&payload) > BUFFERED_SIGNALS_BYTES {
            return Err(TooManySignals);
        }
        self.changed.insert(name.clone());
        self.buffered.entry(name).or_default().push(payload);
        Ok(())
    }

    /// The buffered signals to save, by name.
    pub fn take_changes(&mut self) -> Vec<(String, Vec<Value>)> {
        let changed = std::mem::take(&mut self.changed);
        let buffered = |name: String| {
            let payloads = self.buffered.get(&name).cloned().unwrap_or_default();
            (name, payloads)
        };
        changed.into_iter().map(buffered).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signal(name: &str) -> Awaited {
        Awaited::Signal { name: name.into() }
    }

    #[test]
    fn a_signal_goes_to_the_token_that_waited_longest_for_it() {
        let mut waits = Waits::default();
        waits.begin(TokenId(3), signal("go"));
        waits.begin(TokenId(2), signal("go"));
        waits.begin(TokenId(1), signal("stop"));
        waits.begin(TokenId(4), Awaited::Callback);
        assert_eq!(waits.count(), 4);
        assert_eq!(waits.first_listener("go"), Some(TokenId(2)));
        waits.end(TokenId(2));
        assert_eq!(waits.first_listener("go"), Some(TokenId(3)));
        waits.end(TokenId(3));
        assert_eq!(waits.first_listener("go"), None);
        assert_eq!(waits.first_listener("stop"), Some(TokenId(1)));
        assert_eq!(waits.count(), 2);
    }

    #[test]
    fn only_a_token_of_a_call_awaits_a_callback() {
        let mut waits = Waits::default();
        waits.begin(TokenId(1), Awaited::Callback);
        waits.begin(TokenId(2), signal("go"));
        let awaits = |waits: &Waits| [1, 2, 3].map(|id| waits.awaits_callback(TokenId(id)));
        assert_eq!(awaits(&waits), [true, false, false]);
        for id in [1, 2, 3] {
            waits.end(TokenId(id));
        }
        assert_eq!(awaits(&waits), [false; 3]);
        assert_eq!(waits.count(), 0);
    }

    #[test]
    fn buffered_signals_are_taken_oldest_first_and_saved_when_they_change() {
        let mut waits = Waits::default();
        assert_eq!(waits.take_buffered("go"), None);
        assert!(waits.take_changes().is_empty());
        for payload in [json!(1), json!(2)] {
            assert_eq!(waits.buffer("go".into(), payload), Ok(()));
        }
        assert_eq!(waits.buffer("stop".into(), json!(3)), Ok(()));
        let go = |payloads: Vec<Value>| ("go".to_string(), payloads);
        assert_eq!(
            waits.take_changes(),
            [go(vec![json!(1), json!(2)]), ("stop".into(), vec![json!(3)])]
        );
        assert_eq!(waits.take_buffered("go"), Some(json!(1)));
        assert_eq!(waits.take_changes(), [go(vec![json!(2)])]);
        assert_eq!(waits.take_buffered("go"), Some(json!(2)));
        assert_eq!(waits.take_changes(), [go(vec![])], "the empty row is saved");
        assert_eq!(waits.take_buffered("go"), None);
        assert!(waits.take_changes().is_empty());
    }

    #[test]
    fn the_number_and_the_bytes_of_buffered_signals_are_bounded() {
        let mut waits = Waits::default();
        for number in 0..BUFFERED_SIGNALS {
            assert_eq!(waits.buffer(format!("s{number}"), json!(null)), Ok(()));
        }
        assert_eq!(waits.buffer("one_more".into(), json!(null)), Err(TooManySignals));
        assert_eq!(waits.take_buffered("s0"), Some(json!(null)));
        assert_eq!(waits.buffer("one_more".into(), json!(null)), Ok(()));

        let large = json!("x".repeat(BUFFERED_SIGNALS_BYTES - 2));
        let mut waits = Waits::restore(BTreeMap::new());
        assert_eq!(waits.buffer("large".into(), large), Ok(()));
        assert_eq!(waits.buffer("small".into(), json!(1)), Err(TooManySignals));
        assert_eq!(waits.take_changes().len(), 1, "a refused signal changes nothing");
    }
}
