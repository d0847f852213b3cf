//! Integration tests of the SDK against a real server.
#![expect(clippy::unwrap_used)]

mod export_import;
mod fake_servers;
mod interactions;
mod reading;
mod reading_recovery;
mod resources;
mod test_server;
mod tls;
mod writing;
mod writing_recovery;
mod writing_sinks;
