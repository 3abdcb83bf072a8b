//! The HTTP API without the platform: routes, credentials, bodies, queries, views and errors.

pub mod analyze;
pub mod auth;
pub mod batch;
pub mod body;
pub mod bulk;
pub mod callback;
pub mod contract;
pub mod control;
pub mod cursor;
pub mod error;
pub mod event;
pub mod export;
pub mod live;
pub mod notifications;
pub mod query;
pub mod recovery;
pub mod rejection;
pub mod routes;
pub mod run_filter;
pub mod scope;
pub mod start;
pub mod views;
