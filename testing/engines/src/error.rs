//! The errors of engines.

use std::io;

/// Why an engine could not be started or controlled.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program is not installed.
    #[error("`{program}` is not installed; on Debian and Ubuntu: apt-get install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error.
        error: io::Error,
    },
    /// The program exited early, or did not become ready.
    #[error("{what}\n{log}")]
    Failed {
        /// The message.
        what: String,
        /// The end of the program's log.
        log: String,
    },
}

impl EngineError {
    /// Returns a function that adds the operation to an I/O error.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what: what.into(), error }
    }
}
