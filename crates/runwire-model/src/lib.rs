//! Canonical agent events, the dialects that speak them, and the rules of a run.
//!
//! This crate does no I/O and knows no clock: everything in it is a pure function of its input, so a
//! stream translated twice, or on two machines, gives the same bytes.
#![forbid(unsafe_code)]

pub mod attach;
pub mod compact;
pub mod convert;
pub mod dialect;
mod error_code;
pub mod event;
pub mod fold;
pub mod framing;
pub mod json;
pub mod limits;
mod patch;
mod path_segment;
pub mod record;
pub mod run;
mod run_failure;
#[cfg(test)]
mod schema;
mod time;
pub mod window;

pub use error_code::{ErrorCode, UnknownErrorCode};
pub use event::{Body, Event, Extra};
pub use json::Json;
pub use path_segment::percent_encoded;
pub use run_failure::RunFailureCode;
pub use time::Timestamp;

/// JSON Schema of the events, as the `runwire` dialect writes them, and of the message state.
pub const SCHEMA: &str = include_str!("../schema/runwire.schema.json");
