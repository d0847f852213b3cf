//! The stores, tested.
#![allow(clippy::unwrap_used)]

mod bed;
mod cluster;
mod conformance;
mod interactions;
mod node_departure;
mod nodes;
mod redis;
mod sqlite_file;
mod sqlite_unreadable;
mod vectors;
