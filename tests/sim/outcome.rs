//! What happened in a simulation: the test checks that every kind of fault and outcome occurred.

#[derive(Debug, Default)]
pub struct Outcome {
    pub events: u64,
    pub crashes_before_commit: u64,
    pub crashes_after_commit: u64,
    pub failed_commits: u64,
    /// Runs that were given up because their wakes could not be committed.
    pub given_up: u64,
    /// Tokens that failed because something was too large.
    pub too_large: u64,
    pub evictions: u64,
    pub rejections: u64,
    pub late_alarms: u64,
    pub early_alarms: u64,
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub cancelled: u64,
    pub runs: u64,
    pub pauses: u64,
    pub decisions: u64,
    pub signals: u64,
    pub messages: u64,
    pub messages_lost: u64,
    pub joins_fired: u64,
    pub timeout_gates: u64,
    /// Clocks that stopped because all tokens of their run stood in front of a person.
    pub clocks_stopped: u64,
    pub extensions: u64,
    pub retries: u64,
    /// Retries and restarts on another version, and retries on one that did not fit.
    pub version_changes: u64,
    pub misfits: u64,
    pub warnings: u64,
    pub timeouts: u64,
    pub claims: u64,
    pub claims_refused: u64,
    pub claim_responses_lost: u64,
    pub requeued: u64,
    pub reaped: u64,
    pub callbacks: u64,
    pub emitted: u64,
    pub events_in_parts: u64,
    pub waits_for_calls: u64,
    pub unroutable: u64,
    pub no_route: u64,
    /// Simulations that ended without operators.
    pub unattended: u64,
    /// Orders that went by a connection that had carried others.
    pub connections_reused: u64,
    /// Reports that were handled as one batch with others.
    pub reports_batched: u64,
    /// Notifications that were received, once or again, and attempts that failed.
    pub notifications: u64,
    pub notifications_repeated: u64,
    pub notifications_failed: u64,
    /// Events that watchers got.
    pub events_published: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Outcome) {
        self.events += other.events;
        self.crashes_before_commit += other.crashes_before_commit;
        self.crashes_after_commit += other.crashes_after_commit;
        self.failed_commits += other.failed_commits;
        self.given_up += other.given_up;
        self.too_large += other.too_large;
        self.evictions += other.evictions;
        self.rejections += other.rejections;
        self.late_alarms += other.late_alarms;
        self.early_alarms += other.early_alarms;
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.runs += other.runs;
        self.pauses += other.pauses;
        self.decisions += other.decisions;
        self.signals += other.signals;
        self.messages += other.messages;
        self.messages_lost += other.messages_lost;
        self.joins_fired += other.joins_fired;
        self.timeout_gates += other.timeout_gates;
        self.clocks_stopped += other.clocks_stopped;
        self.extensions += other.extensions;
        self.retries += other.retries;
        self.version_changes += other.version_changes;
        self.misfits += other.misfits;
        self.warnings += other.warnings;
        self.timeouts += other.timeouts;
        self.claims += other.claims;
        self.claims_refused += other.claims_refused;
        self.claim_responses_lost += other.claim_responses_lost;
        self.requeued += other.requeued;
        self.reaped += other.reaped;
        self.callbacks += other.callbacks;
        self.emitted += other.emitted;
        self.events_in_parts += other.events_in_parts;
        self.waits_for_calls += other.waits_for_calls;
        self.unroutable += other.unroutable;
        self.no_route += other.no_route;
        self.unattended += other.unattended;
        self.connections_reused += other.connections_reused;
        self.reports_batched += other.reports_batched;
        self.notifications += other.notifications;
        self.notifications_repeated += other.notifications_repeated;
        self.notifications_failed += other.notifications_failed;
        self.events_published += other.events_published;
    }
}
