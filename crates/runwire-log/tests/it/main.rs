//! The embedded store, tested.
#![allow(clippy::unwrap_used)]

mod bed;
mod conformance;
mod file;
mod questions;
mod redis;
mod vectors;
