//! The engine: what it decides for each event, and what holds whatever the events are.

mod alarms;
pub mod dice;
pub mod driver;
pub mod generator;
pub mod history;
mod limits;
mod mappings;
mod moves;
mod properties;
mod recovery;
mod routing;
mod timeouts;
