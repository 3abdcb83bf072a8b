//! The faults of one seed. Each has its own weight, often zero: a bug that two faults hide from each other shows where only one
//! of them happens.

use crate::run::rng::Rng;

/// Chances in percent.
#[derive(Debug, Default)]
pub struct Faults {
    /// The object crashes after a decision and before its commit.
    pub crash_before_commit: u64,
    /// The object crashes after a commit, before or while its commands are performed.
    pub crash_after_commit: u64,
    /// The database refuses a commit.
    pub commit_fails: u64,
    /// A result is so large that little or nothing fits beside it.
    pub oversized: u64,
    /// The object leaves memory between two events.
    pub eviction: u64,
    /// A connection to an executor breaks.
    pub lost: u64,
    /// An executor stops and gives no more sign of life, while its connection stays open.
    pub frozen: u64,
    /// An executor works on and never reports.
    pub never_answered: u64,
    /// A message comes twice.
    pub duplicated: u64,
    /// A message takes minutes.
    pub slow: u64,
    pub late_alarm: u64,
    pub early_alarm: u64,
    pub repeated_alarm: u64,
    /// The sweep probes the run.
    pub probe: u64,
    pub cancel: u64,
    pub pause: u64,
    pub extend: u64,
    pub restart: u64,
    /// An ended run is retried.
    pub retry: u64,
    /// A message between runs is lost, or its response.
    pub message_lost: u64,
    /// A message of the task queue is lost.
    pub queue_message_lost: u64,
    pub claim_response_lost: u64,
    /// A consumer stops after its claim.
    pub consumer_stops: u64,
    /// A consumer works without heartbeats.
    pub no_heartbeats: u64,
    /// Another deployment, with or without the routes to executors.
    pub deployment: u64,
    /// The object gives the run up, as after panics in a row.
    pub abandon: u64,
    /// Not a fault: an operator does what a run waits for.
    pub operator: u64,
}

impl Faults {
    pub fn of(rng: &mut Rng) -> Faults {
        let mut weight = |most: u64| *rng.pick(&[0, 0, 1, most / 4, most]);
        Faults {
            crash_before_commit: weight(20),
            crash_after_commit: weight(20),
            eviction: weight(20),
            lost: weight(40),
            frozen: weight(30),
            never_answered: weight(30),
            duplicated: weight(50),
            slow: weight(40),
            late_alarm: weight(60),
            early_alarm: weight(60),
            repeated_alarm: weight(40),
            probe: weight(20),
            cancel: weight(4),
            pause: weight(12),
            extend: weight(12),
            restart: weight(3),
            retry: weight(60),
            message_lost: weight(50),
            queue_message_lost: weight(50),
            claim_response_lost: weight(50),
            consumer_stops: weight(80),
            no_heartbeats: weight(80),
            deployment: weight(12),
            operator: weight(40),
            commit_fails: weight(40),
            oversized: weight(16),
            abandon: weight(2),
        }
    }
}
