//! Integration tests of the server: real connections, and a store on disk.
#![expect(clippy::unwrap_used)]

mod agents;
mod answering;
mod console;
mod deleted_and_trimmed;
mod docs;
mod exactly_once;
mod export_import;
mod facades;
mod fan_out;
mod harness;
mod hostile_clients;
mod hosts;
mod interactive_runs;
mod lists;
mod metrics;
mod openapi;
mod outage;
mod problems;
mod protocols;
mod raw_http_reading;
mod raw_http_writing;
mod read_from_end;
mod reading;
mod resources;
mod resume;
mod schemas;
mod sessions;
mod shutdown;
mod slots;
mod stream_protocol;
mod strict;
mod vectors;
mod webhooks;
mod whole_text_policy;
mod writing;
