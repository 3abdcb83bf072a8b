//! The metrics of the deployment: what a run adds to them, and their text for Prometheus.

pub mod samples;
pub mod text;

/// See the files.
pub const FOLD: &str = include_str!("fold.sql");
pub const ADD_SWEEP: &str = include_str!("sweep.sql");
pub const SCRAPE: &str = include_str!("scrape.sql");

/// Nodes of the deployment with a series of their own. The rest is `other`, so that Prometheus is not flooded.
pub const NODES_MAX: u32 = 200;
/// Breakers with a series of their own.
pub const BREAKERS_MAX: usize = 200;
/// Parked runs are counted up to here.
pub const PARKED_MAX: u32 = 10_000;

/// The rate of timeouts is of the last hour, in steps of this length.
pub const STEP_MS: u64 = 300_000;
pub const STEPS: u64 = 12;
