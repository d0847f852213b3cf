//! What the server promises, tried over real connections against a store on disk.
#![expect(clippy::unwrap_used)]

mod agents;
mod answering;
mod console;
mod docs;
mod exactly_once;
mod facades;
mod fan_out;
mod from_end;
mod harness;
mod hostile;
mod hosts;
mod lists;
mod metrics;
mod moving;
mod openapi;
mod outage;
mod problems;
mod promises;
mod protocols;
mod raw_http_reading;
mod raw_http_writing;
mod reading;
mod resources;
mod resume;
mod schemas;
mod sessions;
mod shutdown;
mod signs;
mod slots;
mod strict;
mod vanishing;
mod vectors;
mod webhooks;
mod whole;
mod writing;
