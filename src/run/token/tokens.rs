//! The tokens of a run. Only live tokens are in memory: an ended token is dropped with the decision that saves it, so that
//! the ten-thousandth node of a loop costs no more than the first.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::time::Millis;
use crate::run::time::row_events::RowEvent;
use crate::run::token::{Interrupted, TimeoutConfig, Token, TokenId, TokenStatus};

/// The live tokens, the counts by status, and the changes of the current decision.
#[derive(Debug, Default)]
pub(in crate::run) struct Tokens {
    live: BTreeMap<TokenId, Token>,
    /// Includes ended tokens.
    counts: BTreeMap<TokenStatus, u64>,
    created: u64,
    changed: BTreeSet<TokenId>,
    ended: Vec<Token>,
    /// The state of tokens that the end of the run, or their join, interrupted.
    interrupted: BTreeMap<TokenId, Interruption>,
}

#[derive(Clone, Copy, Debug)]
struct Interruption {
    from: TokenStatus,
    sleep_left_ms: Option<u64>,
}

/// When a token was due before it changed, and when it is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct Rescheduled {
    pub from: Option<Millis>,
    pub to: Option<Millis>,
}

/// The tokens that a decision saves.
pub(in crate::run) struct TokenChanges {
    pub ended: Vec<Token>,
    pub changed: BTreeSet<TokenId>,
}

impl Tokens {
    pub fn restored(counts: BTreeMap<TokenStatus, u64>) -> Tokens {
        Tokens {
            created: counts.values().sum(),
            counts,
            ..Tokens::default()
        }
    }

    /// Restores a saved live token.
    pub fn restore(&mut self, token: Token) {
        self.live.insert(token.id, token);
    }

    pub fn get(&self, id: &TokenId) -> Option<&Token> {
        self.live.get(id)
    }

    /// A token that is known to be live. Ids from requests are checked by `current_attempt` first.
    pub fn live(&self, id: TokenId) -> &Token {
        self.live
            .get(&id)
            .unwrap_or_else(|| unreachable!("{id} is live while its run decides about it"))
    }

    pub fn values(&self) -> impl Iterator<Item = &Token> {
        self.live.values()
    }

    pub fn keys(&self) -> impl Iterator<Item = &TokenId> {
        self.live.keys()
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    pub fn counts(&self) -> &BTreeMap<TokenStatus, u64> {
        &self.counts
    }

    pub fn count(&self, status: TokenStatus) -> u64 {
        self.counts.get(&status).copied().unwrap_or(0)
    }

    /// Tokens that finished their work: they have ended or wait for siblings.
    pub fn count_done(&self) -> u64 {
        let statuses = self.counts.iter();
        let done = statuses
            .filter(|(status, _)| status.is_terminal() || **status == TokenStatus::WaitingForSiblings);
        done.map(|(_, count)| *count).sum()
    }

    /// Tokens that were ever created.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// The token that was created last.
    pub fn newest(&self) -> TokenId {
        TokenId(self.created)
    }

    pub fn next_id(&self) -> TokenId {
        TokenId(self.created + 1)
    }

    /// Adds a new token, with the id that `next_id` gave.
    pub fn insert(&mut self, token: Token) {
        debug_assert_eq!(token.id, self.next_id(), "ids are given in order");
        self.created += 1;
        *self.counts.entry(token.status).or_default() += 1;
        self.changed.insert(token.id);
        self.live.insert(token.id, token);
    }

    /// Changes a live token in memory without saving it.
    pub fn touch(
        &mut self,
        id: TokenId,
        config: TimeoutConfig,
        update: impl FnOnce(&mut Token),
    ) -> Rescheduled {
        let token = self
            .live
            .get_mut(&id)
            .unwrap_or_else(|| unreachable!("{id} is live while its run decides about it"));
        let (status, from) = (token.status, token.due_at(config));
        update(token);
        let (next, to) = (token.status, token.due_at(config));
        if status != next {
            assert!(
                status.may_become(next),
                "{id} may not go from {status:?} to {next:?}"
            );
            *self.counts.entry(status).or_default() -= 1;
            *self.counts.entry(next).or_default() += 1;
            // It is of the attempt that was executing.
            token.progress = None;
        }
        Rescheduled { from, to }
    }

    /// Adds to the history of a token that this decision saves.
    pub fn add_event(&mut self, id: TokenId, event: RowEvent) {
        self.mark_changed(id);
        let token = self.live.get_mut(&id);
        token
            .expect("an event happens to a live token")
            .events
            .push(event);
    }

    /// The token is saved with this decision.
    pub fn mark_changed(&mut self, id: TokenId) {
        self.changed.insert(id);
    }

    /// Removes an ended token from memory.
    pub fn end(&mut self, id: TokenId) -> &Token {
        self.changed.remove(&id);
        let token = self.live.remove(&id).expect("a token ends once");
        debug_assert!(token.status.is_terminal(), "{id} ends as {:?}", token.status);
        self.ended.push(token);
        self.ended.last().expect("pushed just now")
    }

    /// The token that ended last in this decision.
    pub fn last_ended(&self) -> Option<&Token> {
        self.ended.last()
    }

    /// Records the status of a token that is ended by the run or its join.
    pub fn interrupt(&mut self, id: TokenId, from: TokenStatus, sleep_left_ms: Option<u64>) {
        self.interrupted.insert(id, Interruption { from, sleep_left_ms });
    }

    /// Records end number `end` of the run on the tokens that it interrupted, except those that a join had already decided.
    pub fn number_interrupted(&mut self, end: u64, is_decided: impl Fn(&Token) -> bool) {
        for token in self.ended.iter_mut().filter(|token| !is_decided(token)) {
            let interruption = self.interrupted.get(&token.id);
            token.interrupted = interruption.map(|it| Interrupted {
                end,
                from: it.from,
                sleep_left_ms: it.sleep_left_ms,
            });
        }
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> TokenChanges {
        self.interrupted.clear();
        TokenChanges {
            ended: std::mem::take(&mut self.ended),
            changed: std::mem::take(&mut self.changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: TimeoutConfig = TimeoutConfig {
        grace_ms: 500,
        warn_at: 0.8,
    };

    fn with_one() -> Tokens {
        let mut tokens = Tokens::default();
        tokens.insert(Token::new(tokens.next_id(), 0, 1_000));
        tokens
    }

    #[test]
    fn ids_continue_after_all_tokens_ever_created() {
        let counts = BTreeMap::from([(TokenStatus::Completed, 4), (TokenStatus::Executing, 1)]);
        let mut tokens = Tokens::restored(counts);
        tokens.restore(Token {
            status: TokenStatus::Executing,
            ..Token::new(TokenId(5), 0, 1_000)
        });
        assert_eq!((tokens.next_id(), tokens.len()), (TokenId(6), 1));
        tokens.insert(Token::new(tokens.next_id(), 0, 2_000));
        assert_eq!((tokens.newest(), tokens.created()), (TokenId(6), 6));
        assert_eq!(tokens.take_changes().changed, BTreeSet::from([TokenId(6)]));
    }

    #[test]
    fn a_change_updates_the_counts_and_the_due_time() {
        let mut tokens = with_one();
        let moved = tokens.touch(TokenId(1), CONFIG, |token| {
            token.status = TokenStatus::Executing;
            token.deadline.at = Some(5_000);
        });
        let expected = Rescheduled {
            from: None,
            to: Some(5_500),
        };
        assert_eq!(moved, expected);
        assert_eq!(tokens.count(TokenStatus::Executing), 1);
        assert_eq!(tokens.count(TokenStatus::Pending), 0);
        assert_eq!(tokens.count_done(), 0);
    }

    #[test]
    #[should_panic(expected = "t1 may not go from WaitingForSiblings to Pending")]
    fn an_illegal_move_is_a_bug() {
        let mut tokens = with_one();
        tokens.touch(TokenId(1), CONFIG, |token| {
            token.status = TokenStatus::WaitingForSiblings
        });
        tokens.touch(TokenId(1), CONFIG, |token| token.status = TokenStatus::Pending);
    }

    #[test]
    fn an_ended_token_is_saved_and_dropped() {
        let mut tokens = with_one();
        tokens.interrupt(TokenId(1), TokenStatus::Pending, Some(30));
        tokens.touch(TokenId(1), CONFIG, |token| token.status = TokenStatus::Cancelled);
        assert_eq!(tokens.end(TokenId(1)).id, TokenId(1));
        assert!(tokens.is_empty());
        tokens.number_interrupted(2, |_| false);
        let changes = tokens.take_changes();
        assert!(changes.changed.is_empty());
        let interrupted = changes.ended[0].interrupted.expect("the token was interrupted");
        assert_eq!(
            (interrupted.end, interrupted.from, interrupted.sleep_left_ms),
            (2, TokenStatus::Pending, Some(30))
        );
        assert_eq!(tokens.count_done(), 1);
        assert!(tokens.take_changes().ended.is_empty());
    }

    #[test]
    fn tokens_decided_by_a_join_are_not_interrupted() {
        let mut tokens = with_one();
        tokens.interrupt(TokenId(1), TokenStatus::Pending, None);
        tokens.touch(TokenId(1), CONFIG, |token| token.status = TokenStatus::Cancelled);
        tokens.end(TokenId(1));
        tokens.number_interrupted(1, |_| true);
        assert_eq!(tokens.take_changes().ended[0].interrupted, None);
    }
}
