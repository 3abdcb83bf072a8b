//! What happened in a simulation: the test checks that every kind of fault and outcome occurred.

use std::collections::BTreeMap;

/// One list of names, so that no counter is left out of the sums or of the check.
macro_rules! counters {
    ($($(#[$about:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub struct Outcome {
            $($(#[$about])* pub $name: u64,)*
            /// How often each fault happened, and each feature of workflows and runs, by name.
            pub features: BTreeMap<String, u64>,
        }

        impl Outcome {
            pub fn add(&mut self, other: &Outcome) {
                $(self.$name += other.$name;)*
                for (feature, count) in &other.features {
                    *self.features.entry(feature.clone()).or_default() += count;
                }
            }

            pub fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    events,
    crashes_before_commit,
    crashes_after_commit,
    failed_commits,
    /// Runs that were given up because their wakes could not be committed.
    given_up,
    /// Runs that were given up after their end was decided.
    ends_given_up,
    /// Tokens that failed because something was too large.
    too_large,
    evictions,
    rejections,
    late_alarms,
    early_alarms,
    completed,
    failed,
    timed_out,
    cancelled,
    runs,
    children,
    pauses,
    decisions,
    signals,
    messages,
    messages_lost,
    joins_fired,
    joins_continued,
    timeout_gates,
    /// Clocks that stopped because all tokens of their run stood in front of a person.
    clocks_stopped,
    extensions,
    retries,
    /// Retries and restarts on another version, and retries on one that did not fit.
    version_changes,
    misfits,
    warnings,
    timeouts,
    claims,
    claims_refused,
    claim_responses_lost,
    requeued,
    reaped,
    callbacks,
    emitted,
    events_in_parts,
    waits_for_calls,
    unroutable,
    no_route,
    /// Simulations that ended without operators.
    unattended,
    /// Orders that went by a connection that had carried others.
    connections_reused,
    /// Reports that were handled as one batch with others.
    reports_batched,
    /// Progress that was shown to the watchers of a run, and rows of tokens with progress.
    progress_published,
    progress_saved,
    /// Records of timeouts with the output so far of attempts.
    recorded_outputs,
    /// Notifications that were received, once or again, and attempts that failed.
    notifications,
    notifications_repeated,
    notifications_failed,
    /// Spans of exported traces.
    spans,
    /// Events that watchers got.
    events_published,
}

impl Outcome {
    pub fn count(&mut self, feature: String) {
        *self.features.entry(feature).or_default() += 1;
    }
}
