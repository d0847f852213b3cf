//! Crash tests: kills, disk faults, graceful stops, and a second server on the same store.
//!
//! | module | what |
//! |---|---|
//! | `kill` | `kill -9` at any moment |
//! | `faults` | reads, writes and flushes that fail, a disk that is full, a power cut |
//! | `graceful_stop` | SIGTERM under load |
//! | `second_server` | two servers on one store |
//! | `kill_during_answers` | `kill -9` while interactions are answered |
//! | `live_and_replay` | a live reader and a replay get the same frames |
//! | `workload` | concurrent writers and readers, and the checks afterwards |
//!
//! The public modules are also used by `cluster`.
//!
//! `RUNWIRE_CRASH_SEED` sets the random seed, which a failure prints; `RUNWIRE_CRASH_ROUNDS` sets the number of rounds.

pub(crate) mod context;
#[cfg(target_os = "linux")]
mod faults;
pub(crate) mod frames;
mod graceful_stop;
pub(crate) mod http;
mod kill;
pub(crate) mod kill_during_answers;
mod lifecycle;
mod live_and_replay;
pub(crate) mod random;
pub(crate) mod readers;
mod second_server;
pub(crate) mod socket;
pub(crate) mod workload;
pub(crate) mod writers;
