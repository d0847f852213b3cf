//! Programs that are run for somebody: each in a process group of its own, which ends as one.
//!
//! The server runs agents so, and `runwire exec` whatever it is given.

mod group;
#[cfg(unix)]
mod keeper;
mod stopping;

pub use group::{Group, signal_of};
pub use stopping::{Step, Stopping};
