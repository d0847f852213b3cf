//! The stores, tested.
#![allow(clippy::unwrap_used)]

mod bed;
mod cluster;
mod conformance;
mod departing;
mod file;
mod nodes;
mod questions;
mod redis;
mod vectors;
