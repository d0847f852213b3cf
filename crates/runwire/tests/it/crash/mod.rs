//! The promises, tried by force: kills, failing disks, orderly stops, and a second server on the same store.
//!
//! | module | what |
//! |---|---|
//! | `killed` | `kill -9` at any moment |
//! | `faults` | reads, writes and flushes that fail, a disk that is full, a power cut |
//! | `stopped` | SIGTERM under load |
//! | `second` | two servers on one store |
//! | `answered` | `kill -9` while people answer what agents ask |
//! | `alike` | whoever stays and whoever comes later gets the same frames |
//! | `cast` | who writes and who reads meanwhile, and what must be true of it afterwards |
//!
//! The public modules serve `cluster`, too, where the same people write to and read from several nodes.
//!
//! Chance has a seed, `RUNWIRE_CRASH_SEED`, which a failure tells; `RUNWIRE_CRASH_ROUNDS` says how often.

mod alike;
pub(crate) mod answered;
pub(crate) mod cast;
mod errands;
#[cfg(target_os = "linux")]
mod faults;
pub(crate) mod frames;
pub(crate) mod http;
mod killed;
pub(crate) mod random;
pub(crate) mod readers;
mod second;
pub(crate) mod socket;
mod stopped;
pub(crate) mod world;
pub(crate) mod writers;
