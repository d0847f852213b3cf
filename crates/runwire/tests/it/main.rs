//! Integration tests of the binary.
#![expect(clippy::unwrap_used)]

mod agents;
mod bad_input;
mod broken_connections;
mod cluster;
mod command;
mod config;
mod convert;
mod convert_live;
mod crash;
mod exec;
mod exec_signals;
mod export_import;
mod help;
mod in_front_of;
mod interactions;
mod list_commands;
mod memory;
#[cfg(target_os = "linux")]
mod memory_budget;
mod migrate;
mod orphans;
mod output_lines;
mod push;
mod recovery;
mod replay;
mod run;
mod serve;
mod server;
mod server_url;
mod shared_store_config;
mod tail;
mod terminal;
mod validate;
mod webhooks;
