//! What can go wrong around a run's object. Each fault has its own odds, often zero: a bug that two faults hide from each other
//! shows where only one of them happens.

use crate::simulate::rng::Rng;

/// Declares odds in percent, each with the highest that is drawn for it, in the order in which they are drawn.
#[macro_export]
macro_rules! odds {
    ($(#[$of:meta])* $all:ident { $($(#[$about:meta])* $name:ident: $most:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $all {
            $($(#[$about])* pub $name: u64,)*
        }

        const _: () = {
            #[allow(non_camel_case_types, reason = "the names of the fields")]
            enum Number { $($name,)* }

            impl $all {
                pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];
                /// Each field has the place of its name.
                pub const NUMBERS: $all = $all { $($name: Number::$name as u64,)* };

                pub fn of(rng: &mut $crate::simulate::Rng) -> $all {
                    let mut odds = |most: u64| *rng.pick(&[0, 0, 1, most / 4, most]);
                    $all { $($name: odds($most),)* }
                }

                /// Sets the odds with this name. `false`: there are none.
                pub fn set(&mut self, name: &str, percent: u64) -> bool {
                    match name {
                        $(stringify!($name) => self.$name = percent,)*
                        _ => return false,
                    }
                    true
                }
            }
        };
    };
}

odds! {
    /// Chances in percent.
    Faults {
        /// The object crashes after a decision and before its commit.
        crash_before_commit: 20,
        /// The object crashes after a commit, before or while its commands are performed.
        crash_after_commit: 20,
        /// The object leaves memory between two events.
        eviction: 20,
        /// A connection to an executor breaks.
        lost: 40,
        /// An executor stops and gives no more sign of life, while its connection stays open.
        frozen: 30,
        /// An executor works on and never reports.
        never_answered: 30,
        /// A message comes twice.
        duplicated: 50,
        /// A message takes minutes.
        slow: 40,
        late_alarm: 60,
        early_alarm: 60,
        repeated_alarm: 40,
        /// A message between runs is lost, or its response.
        message_lost: 50,
        /// A message of the task queue is lost.
        queue_message_lost: 50,
        claim_response_lost: 50,
        /// A consumer stops after its claim.
        consumer_stops: 80,
        /// A consumer works without heartbeats.
        no_heartbeats: 80,
        /// The database refuses a commit.
        commit_fails: 40,
    }
}

impl Faults {
    /// The odds that a seed draws.
    pub fn drawn(seed: u64) -> Faults {
        Faults::of(&mut Rng::seeded(seed))
    }

    /// The odds around a workflow of a user. What fails most runs whatever they do, as an executor that is silent until a limit
    /// passes, is rare; what a workflow has to stand happens often.
    pub fn around_workflow(rng: &mut Rng) -> Faults {
        let drawn = Faults::of(rng);
        Faults {
            crash_before_commit: drawn.crash_before_commit.min(10),
            crash_after_commit: drawn.crash_after_commit.min(10),
            eviction: drawn.eviction.min(10),
            lost: drawn.lost.min(15),
            frozen: drawn.frozen.min(1),
            never_answered: drawn.never_answered.min(1),
            queue_message_lost: drawn.queue_message_lost.min(15),
            claim_response_lost: drawn.claim_response_lost.min(15),
            consumer_stops: drawn.consumer_stops.min(1),
            no_heartbeats: drawn.no_heartbeats.min(1),
            message_lost: drawn.message_lost.min(25),
            commit_fails: drawn.commit_fails.min(15),
            ..drawn
        }
    }
}
