//! Signals that stop the server.

use std::future::Future;
use std::io;

/// Takes over SIGINT and SIGTERM: the first ends the future, a second one the process.
#[cfg(unix)]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    /// What shells add to a signal's number where it ended a process.
    const BY_SIGNAL: i32 = 128;

    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (mut interrupts, mut terminations) = (signal(interrupt)?, signal(terminate)?);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupts.recv() => interrupt,
                _ = terminations.recv() => terminate,
            }
        };
        next().await;
        tracing::info!("stopping once what is under way is finished; a second signal ends it at once");
        // Where nobody waits any more, the server is ending already.
        let _ = stop.send(());
        let second = next().await;
        std::process::exit(BY_SIGNAL + second.as_raw_value());
    });
    Ok(async {
        let _ = stopped.await;
    })
}

/// Takes over Control-C: the first ends the future, a second one the process.
#[cfg(not(unix))]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        let _ = stop.send(());
        let _ = tokio::signal::ctrl_c().await;
        std::process::exit(1);
    });
    Ok(async {
        let _ = stopped.await;
    })
}
