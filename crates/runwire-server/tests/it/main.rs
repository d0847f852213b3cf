//! What the server promises, tried over real connections against a store on disk.

mod docs;
mod exactly_once;
mod harness;
mod hostile;
mod openapi;
mod problems;
mod protocols;
mod resources;
mod shutdown;
mod writing;
