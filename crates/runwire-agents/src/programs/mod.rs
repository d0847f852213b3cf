//! Child processes: each in its own process group, which is stopped as a whole.
//!
//! Used for `exec` agents and by `runwire exec`.

mod graceful_stop;
mod process_group;
#[cfg(unix)]
mod watchdog;

pub use graceful_stop::{GracefulStop, StopStep};
pub use process_group::{ProcessGroup, exit_signal};
