//! The engine: what it decides for each event, and what holds whatever the events are.

mod alarms;
mod branches_nested;
mod children;
mod controls;
mod crowds;
pub mod dice;
pub mod driver;
mod fan_in;
mod fan_in_deadlines;
mod fan_out;
mod gates;
pub mod generator;
pub mod graphs;
pub mod history;
mod holds;
mod limits;
mod mappings;
mod merges;
mod moves;
mod properties;
mod recovery;
pub mod render;
mod retries;
mod routing;
mod timeouts;
mod waits;
