//! Properties of every workflow and every order of events: ended tokens never change, attempts stay within their limits,
//! a live run always has a deadline or waits for outside input, and a reloaded run decides like the one in memory.

use std::collections::BTreeMap;

use curfew::run::{
    Command, Decision, DecisionBatch, Event, GateKind, GateStatus, Message, Run, RunEventKind, Settings,
    Token, TokenId, TokenStatus, Write,
};
use curfew::storage::commit::Commit;
use proptest::prelude::*;

use super::driver::render;
use super::history::{History, SETTINGS};
use curfew::simulate::Rng;

const LENGTH: usize = 30;
/// Rounds in which no executor claims an attempt.
const UNCLAIMED_MAX: u64 = 3;

/// `CURFEW_PROPERTY_CASES=20000` tries more.
fn cases() -> u32 {
    let wanted = std::env::var("CURFEW_PROPERTY_CASES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(400)
}

fn choices() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..400)
}

fn saved_tokens(decision: &Decision) -> impl Iterator<Item = &Token> {
    decision.writes().iter().filter_map(|write| match write {
        Write::SaveToken(token) => Some(&**token),
        _other => None,
    })
}

/// Checks the tokens of a commit against those before it.
fn check_commit(
    saved: &mut BTreeMap<TokenId, Token>,
    decision: &Decision,
    run: &Run,
    settings: Settings,
    pauses: u64,
) -> Result<(), TestCaseError> {
    for token in saved_tokens(decision) {
        let node = &run.snapshot().workflow.nodes[token.node];
        prop_assert!(token.retry_count <= node.max_retries, "{token:?}");
        prop_assert!(token.lost_count <= SETTINGS.lost_max, "{token:?}");
        // Not counted: attempts whose executor's deadline passed during a pause or before an extension, and attempts of a
        // token that this one replaced at a join.
        let attempts_max = 1 + u64::from(token.retry_count) + u64::from(token.lost_count) + pauses;
        // Each of them may have stayed unclaimed before.
        let attempts_max = attempts_max * if settings.queue { UNCLAIMED_MAX } else { 1 };
        prop_assert!(token.epoch <= attempts_max || token.join.is_some(), "{token:?}");
        if let Some(before) = saved.insert(token.id, token.clone()) {
            prop_assert!(!before.status.is_terminal(), "{before:?} moved to {token:?}");
            prop_assert!(before.epoch <= token.epoch, "{before:?} to {token:?}");
        }
    }
    for command in decision.commands() {
        if let Command::DispatchTask(order) = command {
            let token = &saved[&order.token];
            prop_assert_eq!(
                token.epoch,
                order.epoch,
                "an order is for the attempt that was saved"
            );
            prop_assert!(!token.status.is_terminal());
        }
    }
    Ok(())
}

fn check_run(run: &Run) -> Result<(), TestCaseError> {
    let next = run.next_deadline();
    let paused = run.header.paused_at.is_some();
    // No timer is needed: the token waits for outside input.
    let outside = |token: &Token| match token.status {
        TokenStatus::AwaitingHuman | TokenStatus::Suspended | TokenStatus::WaitingForSubworkflow => true,
        TokenStatus::WaitingForSiblings => run.live_tokens().any(|other| other.join.is_none()),
        TokenStatus::Pending
        | TokenStatus::Dispatched
        | TokenStatus::Executing
        | TokenStatus::Completed
        | TokenStatus::Failed
        | TokenStatus::TimedOut
        | TokenStatus::Cancelled => false,
    };
    if next.is_none() {
        prop_assert!(
            paused || run.live_tokens().all(outside),
            "nothing would ever wake the run"
        );
    } else {
        prop_assert!(run.alarm_at().is_some(), "no alarm is armed");
        prop_assert!(
            run.alarm_at() <= next,
            "{:?} fires after {next:?}",
            run.alarm_at()
        );
    }
    let live = run.live_tokens().count();
    prop_assert!(
        !run.header.status.is_terminal() || live == 0,
        "{} live tokens",
        live
    );
    prop_assert!(
        run.header.status.is_terminal() || live > 0 || paused || run.needed_rows().is_some(),
        "nothing is left to end the run"
    );
    let open = run.instances().filter(|instance| instance.is_closed()).count();
    prop_assert_eq!(open, 0, "a closed instance is forgotten");
    let counted: u64 = run
        .counts()
        .iter()
        .filter(|(status, _)| !status.is_terminal())
        .map(|(_, count)| count)
        .sum();
    prop_assert_eq!(counted, live as u64);
    Ok(())
}

/// The lines of a decision without those of the outbox and of notifications. After a reload each of them is due at once, because
/// deliveries under way are not recorded, so messages and their alarms may differ.
fn of_the_run(decision: &Decision, run: &Run) -> Vec<String> {
    const OF_MESSAGES: &[&str] = &[
        "message",
        "unmessage",
        "deliver",
        "notification",
        "notify",
        "alarm",
    ];
    let lines = render(decision, run).into_iter();
    lines
        .filter(|line| !OF_MESSAGES.contains(&line.split(' ').next().unwrap_or_default()))
        .collect()
}

/// The messages of an outbox.
#[derive(Clone, Default)]
struct Messages(BTreeMap<u64, Message>);

impl Messages {
    fn apply(&mut self, decision: &Decision) {
        for write in decision.writes() {
            match write {
                Write::SaveMessage { id, message } => {
                    self.0.insert(*id, (**message).clone());
                }
                Write::DeleteMessage { id } => {
                    self.0.remove(id);
                }
                _other => {}
            }
        }
    }

    /// Starts of children beyond those that are sent at a time.
    fn has_waiting_starts(&self) -> bool {
        const IN_FLIGHT: usize = 8;
        let is_start = |message: &&Message| matches!(message, Message::StartChild { .. });
        self.0.values().filter(is_start).count() > IN_FLIGHT
    }

    /// Whether an event is about one and the same message on both sides. A run that was loaded gives the ids of messages
    /// that had arrived again; in the platform no answer comes to an object that did not send the message itself.
    fn agree_about(&self, other: &Messages, event: &Event) -> bool {
        match event {
            Event::Delivered { id } | Event::DeliveryFailed { id, .. } => self.0.get(id) == other.0.get(id),
            _other => true,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_time: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_commit_keeps_the_invariants(choices in choices()) {
        let mut rng = Rng::listed(choices);
        let mut history = History::random(&mut rng, 0);
        let mut saved = BTreeMap::new();
        check_commit(&mut saved, &history.decisions[0], &history.run, history.settings, 0)?;
        check_run(&history.run)?;
        for _ in 0..LENGTH {
            let ended = history.run.header.status.is_terminal();
            history.step(&mut rng);
            let decision = &history.decisions[history.decisions.len() - 1];
            let is_pause = |write: &&Write| {
                matches!(write, Write::SaveEvent(entry)
                    if matches!(entry.kind, RunEventKind::RunPaused | RunEventKind::RunExtended))
            };
            let pauses = history.decisions.iter().flat_map(Decision::writes).filter(is_pause).count() as u64;
            // A person may retry an escalated token, with all its attempts again.
            let is_decision = |write: &&Write| {
                matches!(write, Write::SaveGate(gate)
                    if gate.kind == GateKind::Escalation && gate.status == GateStatus::Decided)
            };
            let decisions = history.decisions.iter().flat_map(Decision::writes).filter(is_decision).count() as u64;
            let more = pauses + decisions * (1 + u64::from(history.settings.lost_max));
            check_commit(&mut saved, decision, &history.run, history.settings, more)?;
            if *decision == Decision::DeleteStorage {
                prop_assert!(ended, "a live run was deleted");
                break;
            }
            check_run(&history.run)?;
            let back = |write: &Write| {
                matches!(write, Write::SaveEvent(entry) if entry.kind == RunEventKind::RunRetried)
            };
            if ended && !decision.writes().iter().any(back) {
                // Messages are still delivered and late results are logged.
                let may_be_written = |write: &Write| {
                    matches!(write, Write::DeleteMessage { .. })
                        || matches!(write, Write::SaveEvent(entry) if entry.kind == RunEventKind::LateResultDiscarded)
                };
                let may_be_done = |command: &Command| matches!(command, Command::DeliverMessage { .. } | Command::SendNotification(_));
                let is_allowed = decision.writes().iter().all(may_be_written) && decision.commands().iter().all(may_be_done);
                prop_assert!(is_allowed, "an ended run did {decision:?}");
            }
        }
    }

    #[test]
    fn the_same_history_gives_the_same_decisions(choices in choices()) {
        let first = History::random(&mut Rng::listed(choices.clone()), LENGTH);
        let mut second = History::random(&mut Rng::listed(choices), 0);
        for (now, event) in first.steps {
            second.feed(now, event);
        }
        prop_assert_eq!(first.decisions, second.decisions);
        prop_assert_eq!(&first.run.header, &second.run.header);
        prop_assert_eq!(first.run.context().state(), second.run.context().state());
    }

    /// A whole history performed as one batch leaves the same rows as its single decisions, and only orders of live attempts.
    #[test]
    fn a_batch_of_decisions_leaves_the_same_rows(choices in choices()) {
        let history = History::random(&mut Rng::listed(choices), LENGTH);
        let mut batch = DecisionBatch::default();
        for decision in history.decisions.iter().filter(|it| **it != Decision::DeleteStorage) {
            batch.add(decision.clone());
        }
        let decision = batch.into_decision(&history.run);
        let commit = Commit::of(decision.writes(), &history.run).expect("rows are JSON");
        let mut run: BTreeMap<String, String> = commit.run.iter().cloned().collect();
        prop_assert_eq!(run.len(), commit.run.len(), "a row was written twice");
        run.retain(|key, _| !commit.deleted.contains(key));
        let tokens: BTreeMap<u64, (String, String)> = commit
            .tokens
            .iter()
            .map(|(id, status, row)| (*id, (status.to_string(), row.clone())))
            .collect();
        prop_assert_eq!(tokens.len(), commit.tokens.len(), "a token was written twice");
        let store = history.store();
        // Tokens that report after the decision to end are saved without the group of their closed instance, in a batch with it.
        let is_ending = |write: &Write| write.event().is_some_and(|event| event.kind == RunEventKind::RunCompensating);
        if decision.writes().iter().any(is_ending) {
            return Ok(());
        }
        prop_assert_eq!(run, store.run);
        prop_assert_eq!(tokens, store.tokens);
        for order in decision.commands().iter().filter_map(Command::dispatched) {
            let token = history.run.live_token(order.token);
            prop_assert!(token.is_some_and(|token| token.epoch == order.epoch), "{:?}", order);
        }
    }

    #[test]
    fn a_restored_run_decides_like_the_one_in_memory(choices in choices(), before in 0..LENGTH) {
        let mut rng = Rng::listed(choices);
        let mut history = History::random(&mut rng, before);
        let store = history.store();
        let mut loaded = store.recall(history.settings).map_err(TestCaseError::fail)?;
        let posted = |write: &Write| matches!(write, Write::SaveMessage { .. } | Write::SaveNotification(_));
        let has_outbox = history.decisions.iter().flat_map(Decision::writes).any(posted);
        let mut messages = Messages::default();
        for decision in &history.decisions {
            messages.apply(decision);
        }
        // Such a start may have left for all that a loaded run knows, so it does not end as one that has not.
        prop_assume!(!messages.has_waiting_starts());
        let mut messages_loaded = messages.clone();
        // A reload loses the open calls, so both sides begin with the same loss.
        let mut pending = vec![(history.now, Event::Loaded)];
        for _ in 0..LENGTH {
            let (now, event) = pending.pop().unwrap_or_else(|| history.next(&mut rng));
            if !messages.agree_about(&messages_loaded, &event) {
                continue;
            }
            history.feed(now, event.clone());
            let (_, decision) = loaded.handle(now, history.room, event);
            let expected = &history.decisions[history.decisions.len() - 1];
            messages.apply(expected);
            messages_loaded.apply(&decision);
            if has_outbox {
                prop_assert_eq!(of_the_run(expected, &loaded), of_the_run(&decision, &loaded));
            } else {
                prop_assert_eq!(render(expected, &loaded), render(&decision, &loaded));
            }
        }
        prop_assert_eq!(history.run.header.status, loaded.header.status);
        prop_assert_eq!(history.run.context().state(), loaded.context().state());
        prop_assert_eq!(history.run.context().output(), loaded.context().output());
        if !has_outbox {
            prop_assert_eq!(history.run.next_deadline(), loaded.next_deadline());
        }
    }
}
