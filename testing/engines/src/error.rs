//! Why an engine does not run.

use std::io;

/// Why an engine could not be started, or did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program is not installed.
    #[error("`{program}` is not installed; on Debian and Ubuntu: apt-get install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package that holds it.
        package: &'static str,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// The program ended before its time, or did not get ready.
    #[error("{what}\n{log}")]
    Failed {
        /// What went wrong.
        what: String,
        /// The end of what the program wrote.
        log: String,
    },
}

impl EngineError {
    /// Says what was tried when the system refused.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what: what.into(), error }
    }
}
