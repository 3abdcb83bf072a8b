//! Runs a workflow in virtual time, with the loop, the engine and the rows of production: `host` over a platform in memory.
//! Seven days take milliseconds. Nothing here reads a clock or draws a number that does not follow from the seed, so the same
//! request always has the same answer.

mod answer;
mod awake;
mod body;
mod calls;
mod checked_commit;
mod environment;
mod faults;
mod in_flight;
mod limits;
mod messages;
mod mocked_world;
mod names;
mod object;
mod platform;
mod properties;
mod queue;
mod resolve;
mod rng;
mod run_properties;
mod running_time;
mod seeds;
mod session;
mod simulation;
mod simulator;
mod store;
mod task_runner;
mod world;

pub use body::{SimulateBody, Source, read_library};
pub use environment::{ConnectionId, ConnectionState, Environment, RANK_MAX};
pub use faults::Faults;
pub use in_flight::{InFlight, Sender};
pub use limits::Taken;
pub use mocked_world::TIMEOUT_GATE;
pub use object::SimulatedRun;
pub use platform::{Durable, SimPlatform};
pub use properties::{Check, CheckedDecision, calls_of};
pub use queue::post_heartbeat;
pub use resolve::{Resolved, resolve_document, simulate_alone};
pub use rng::Rng;
pub use running_time::may_stand_forever;
pub use seeds::simulate_seeds;
pub use session::{SESSIONS_MAX, Session};
pub use simulation::{Deployment, Until, is_stalled, simulate};
pub use simulator::{Next, Simulator, ready};
pub use store::Store;
pub use world::{Happening, Observed, World};
