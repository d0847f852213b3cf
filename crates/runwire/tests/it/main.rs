//! The real binary, as people and scripts use it.
#![expect(clippy::unwrap_used)]

mod bad_input;
mod command;
mod convert;
mod memory;
mod streaming;
mod validate;
