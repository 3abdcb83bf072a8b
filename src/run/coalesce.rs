//! Several decisions carried out as one: answers that came in one message cost one write, and each row what it says in the end.

use std::collections::BTreeSet;

use crate::base::time::Millis;
use crate::run::event::{Effect, Event, Rejection};
use crate::run::state::Run;
use crate::run::token::lane::calls_for;
use crate::run::token::{TokenId, TokenStatus};

/// What a later effect of the same kind makes superfluous.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Header,
    Context(String),
    Token(TokenId),
    Instance(u64),
    Gate(String),
    Signals(String),
    Message(u64),
    Alarm,
    Standing,
}

/// What was decided in a turn and is not carried out yet.
#[derive(Debug, Default)]
pub struct Decided {
    effects: Vec<Effect>,
    decisions: usize,
    steps: u64,
}

impl Decided {
    /// Nothing yet, in a turn in which decisions that are carried out already took so many steps of computation.
    pub fn after(steps: u64) -> Decided {
        Decided {
            steps,
            ..Decided::default()
        }
    }

    /// Decides on `event` in the same turn: what the decisions before it computed counts.
    pub fn decide(&mut self, run: &mut Run, now: Millis, room: u32, event: Event) -> Result<(), Rejection> {
        run.continue_turn(self.steps);
        let (answer, effects) = run.handle(now, room.saturating_sub(self.calls()), event);
        self.steps = run.steps();
        self.add(effects);
        answer
    }

    pub fn add(&mut self, effects: Vec<Effect>) {
        self.effects.extend(effects);
        self.decisions += 1;
    }

    /// Steps of computation that the turn has taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The calls that its orders take.
    pub fn calls(&self) -> u32 {
        let orders = self.effects.iter().filter_map(Effect::order);
        calls_for(orders)
    }

    /// What is to be done, `run` being as the last decision left it.
    pub fn into_effects(self, run: &Run) -> Vec<Effect> {
        match self.decisions {
            0 | 1 => self.effects,
            _several => together(run, self.effects),
        }
    }
}

fn together(run: &Run, effects: Vec<Effect>) -> Vec<Effect> {
    let stands = |(token, epoch): &(TokenId, u64)| {
        let token = run.live_token(*token);
        token.is_some_and(|it| it.status == TokenStatus::Executing && it.epoch == *epoch)
    };
    // A call that was not made yet is neither made nor aborted.
    let ordered = effects.iter().filter_map(Effect::order);
    let unmade: BTreeSet<(TokenId, u64)> = ordered
        .map(|order| (order.token, order.epoch))
        .filter(|attempt| !stands(attempt))
        .collect();
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Effect> = effects
        .into_iter()
        .rev()
        .filter(|effect| match effect {
            Effect::Dispatch(order) => !unmade.contains(&(order.token, order.epoch)),
            Effect::Abort { token, epoch } => !unmade.contains(&(*token, *epoch)),
            others => subject_of(others).is_none_or(|subject| seen.insert(subject)),
        })
        .collect();
    kept.reverse();
    kept
}

fn subject_of(effect: &Effect) -> Option<Subject> {
    Some(match effect {
        Effect::SaveRun(_) => Subject::Header,
        Effect::SaveContext { key, .. } | Effect::DeleteContext { key } => Subject::Context(key.clone()),
        Effect::SaveToken(token) => Subject::Token(token.id),
        Effect::SaveInstance(instance) => Subject::Instance(instance.id.0),
        Effect::SaveGate(gate) => Subject::Gate(gate.id.clone()),
        Effect::SaveSignals { name, .. } => Subject::Signals(name.clone()),
        Effect::SaveMessage { id, .. } | Effect::DeleteMessage { id } => Subject::Message(*id),
        Effect::SetAlarm(_) => Subject::Alarm,
        Effect::Announce => Subject::Standing,
        Effect::SaveSnapshot(_)
        | Effect::SaveInput(_)
        | Effect::SaveEvent(_)
        | Effect::ForgetFailedWakes
        | Effect::DeleteStorage
        | Effect::Dispatch(_)
        | Effect::Enqueue { .. }
        | Effect::Hand(_)
        | Effect::Abort { .. }
        | Effect::Deliver { .. }
        | Effect::AnnounceGate(_)
        | Effect::AnnounceLatency { .. }
        | Effect::RunEnded => return None,
    })
}
