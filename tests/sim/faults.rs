//! What operators and deployments do to the runs of one seed, besides the faults that every simulation may have.

curfew::odds! {
    /// Chances in percent.
    Disturbances {
        /// The sweep probes the run.
        probe: 20,
        cancel: 4,
        pause: 12,
        extend: 12,
        restart: 3,
        /// An ended run is retried.
        retry: 60,
        /// Another deployment, with or without the routes to executors.
        deployment: 12,
        /// Not a fault: an operator does what a run waits for.
        operator: 40,
        /// A result is so large that little or nothing fits beside it.
        oversized: 16,
        /// The object gives the run up, as after panics in a row.
        abandon: 2,
    }
}
