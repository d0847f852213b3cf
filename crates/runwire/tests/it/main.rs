//! The real binary, as people and scripts use it.
#![expect(clippy::unwrap_used)]

mod bad_input;
mod command;
mod config;
mod connections;
mod convert;
mod crash;
mod help;
mod lines;
mod memory;
mod pushing;
mod recovery;
mod server;
mod serving;
mod streaming;
mod tailing;
mod validate;
