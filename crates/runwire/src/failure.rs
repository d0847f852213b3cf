//! What keeps a command from doing its work, whatever the stream says.

use std::io;

/// The exit code of a command that could not read or write.
pub(crate) const EXIT_CODE: u8 = 3;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot read {name}: {error}")]
    Read { name: String, error: io::Error },
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
}

impl Failure {
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
