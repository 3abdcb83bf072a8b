//! The traces of ended runs: spans, their encoding, requests of bounded size, and what a receiver's responses mean.

mod export;
mod properties;
mod receiver;
mod requests;
pub mod samples;
