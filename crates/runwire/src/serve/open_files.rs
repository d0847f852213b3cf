//! Raises the limit of open files: every connection is one.

/// Raises the soft limit to the hard limit.
#[cfg(unix)]
pub(crate) fn allow_as_many_as_possible() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(?current, ?maximum, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, ?current, "cannot raise the limit of open files"),
    }
}

#[cfg(not(unix))]
pub(crate) fn allow_as_many_as_possible() {}
