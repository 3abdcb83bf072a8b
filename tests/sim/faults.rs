//! The faults of one seed. Each has its own weight, often zero: a bug that two faults hide from each other shows where only one
//! of them happens.

use crate::run::rng::Rng;

/// One list, with the highest weight of each, in the order in which they are drawn.
macro_rules! faults {
    ($($(#[$about:meta])* $name:ident: $most:literal,)*) => {
        /// Chances in percent.
        #[derive(Debug, Default)]
        pub struct Faults {
            $($(#[$about])* pub $name: u64,)*
        }

        #[allow(non_camel_case_types, reason = "the names of the fields")]
        enum Number { $($name,)* }

        impl Faults {
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];
            /// Each field has the place of its name.
            pub const NUMBERS: Faults = Faults { $($name: Number::$name as u64,)* };

            pub fn of(rng: &mut Rng) -> Faults {
                let mut weight = |most: u64| *rng.pick(&[0, 0, 1, most / 4, most]);
                Faults { $($name: weight($most),)* }
            }
        }
    };
}

faults! {
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
    /// The sweep probes the run.
    probe: 20,
    cancel: 4,
    pause: 12,
    extend: 12,
    restart: 3,
    /// An ended run is retried.
    retry: 60,
    /// A message between runs is lost, or its response.
    message_lost: 50,
    /// A message of the task queue is lost.
    queue_message_lost: 50,
    claim_response_lost: 50,
    /// A consumer stops after its claim.
    consumer_stops: 80,
    /// A consumer works without heartbeats.
    no_heartbeats: 80,
    /// Another deployment, with or without the routes to executors.
    deployment: 12,
    /// Not a fault: an operator does what a run waits for.
    operator: 40,
    /// The database refuses a commit.
    commit_fails: 40,
    /// A result is so large that little or nothing fits beside it.
    oversized: 16,
    /// The object gives the run up, as after panics in a row.
    abandon: 2,
}
