//! What the server promises, tried over real connections against a store on disk.
#![expect(clippy::unwrap_used)]

mod docs;
mod exactly_once;
mod fan_out;
mod harness;
mod hostile;
mod lean;
mod lean_writing;
mod openapi;
mod problems;
mod protocols;
mod reading;
mod resources;
mod resume;
mod shutdown;
mod signs;
mod vanishing;
mod vectors;
mod writing;
