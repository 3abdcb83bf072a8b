//! How unkind one seed's world is. Each fault has its own weight, often none at all: a bug that two faults hide from
//! each other shows where only one of them happens.

use crate::run::dice::Dice;

/// Chances in percent.
#[derive(Debug, Default)]
pub struct Faults {
    /// The object dies after it decided and before it saved.
    pub crash_before_commit: u64,
    /// The object dies after it saved and before it ordered.
    pub crash_after_commit: u64,
    /// The database refuses a commit: nothing of it is kept, and the object forgets what it had in memory.
    pub commit_fails: u64,
    /// A result is so large that little or nothing fits beside it.
    pub oversized: u64,
    /// The object leaves memory between two events.
    pub eviction: u64,
    /// A call ends without an answer, and says so.
    pub lost: u64,
    /// A call is gone without a word.
    pub vanished: u64,
    /// A call stays open and is never answered.
    pub silent: u64,
    /// An answer comes twice.
    pub duplicated: u64,
    /// An answer takes minutes.
    pub slow: u64,
    pub late_alarm: u64,
    pub early_alarm: u64,
    pub repeated_alarm: u64,
    /// Somebody asks for the run and wakes the object.
    pub knock: u64,
    pub cancel: u64,
    pub pause: u64,
    pub extend: u64,
    pub restart: u64,
    /// A run that ended is brought back.
    pub retry: u64,
    /// A message between runs is lost, or the answer to it.
    pub letter_lost: u64,
    /// A message of the queue is lost.
    pub ring_lost: u64,
    /// A claim is heard, and its answer is not.
    pub claim_answer_lost: u64,
    /// Whoever claimed an attempt is never heard of again.
    pub consumer_dies: u64,
    /// It works on and says nothing until it is done.
    pub consumer_mute: u64,
    /// Another deployment, with or without the ways to executors.
    pub deployment: u64,
    /// Not a fault: a person does what a run waits for.
    pub person: u64,
}

impl Faults {
    pub fn of(dice: &mut Dice) -> Faults {
        let mut weight = |most: u64| *dice.pick(&[0, 0, 1, most / 4, most]);
        Faults {
            crash_before_commit: weight(20),
            crash_after_commit: weight(20),
            eviction: weight(20),
            lost: weight(40),
            vanished: weight(30),
            silent: weight(30),
            duplicated: weight(50),
            slow: weight(40),
            late_alarm: weight(60),
            early_alarm: weight(60),
            repeated_alarm: weight(40),
            knock: weight(20),
            cancel: weight(4),
            pause: weight(12),
            extend: weight(12),
            restart: weight(3),
            retry: weight(60),
            letter_lost: weight(50),
            ring_lost: weight(50),
            claim_answer_lost: weight(50),
            consumer_dies: weight(80),
            consumer_mute: weight(80),
            deployment: weight(12),
            person: weight(40),
            commit_fails: weight(12),
            oversized: weight(16),
        }
    }
}
