//! The real binary, as people and scripts use it.
#![expect(clippy::unwrap_used)]

mod addresses;
mod agents;
mod answering;
mod bad_input;
mod cluster;
mod command;
mod config;
mod connections;
mod convert;
mod crash;
mod exec;
mod exec_stopping;
mod help;
mod in_front_of;
mod lines;
mod listing;
mod memory;
mod migrating;
mod moving;
mod orphans;
mod pushing;
mod recovery;
mod replaying;
mod running;
mod server;
mod serving;
mod sharing;
mod streaming;
mod tailing;
mod terminal;
mod validate;
mod webhooks;
