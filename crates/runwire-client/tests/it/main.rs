//! Promises of the SDK, kept against a real server.
#![expect(clippy::unwrap_used)]

mod answering;
mod moving;
mod reading;
mod reading_breaks;
mod reading_way;
mod resources;
mod secure;
mod writing;
mod writing_recovery;
mod writing_sinks;
mod writing_stage;
