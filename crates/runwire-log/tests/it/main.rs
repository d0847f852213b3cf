//! The embedded store, tested.
#![allow(clippy::unwrap_used)]

mod bed;
mod cluster;
mod conformance;
mod file;
mod questions;
mod vectors;
