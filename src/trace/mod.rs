//! The trace of an ended run: spans made of pages from its object, as OTLP/HTTP JSON in requests of bounded size. Pure; the
//! index consumer sends them.

pub mod otlp;
pub mod receiver;
pub mod requests;
pub mod span;
pub mod token_spans;
pub mod trace_builder;
