//! SIGINT and SIGTERM, which stop the server.

use std::future::Future;
use std::io;

/// Handles SIGINT and SIGTERM: the first completes the future, the second exits the process.
#[cfg(unix)]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    /// Offset of a shell's exit codes for signals.
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
        // The receiver is dropped if the server is stopping already.
        let _ = stop.send(());
        let second = next().await;
        std::process::exit(BY_SIGNAL + second.as_raw_value());
    });
    Ok(async {
        let _ = stopped.await;
    })
}

/// Handles Control-C: the first completes the future, the second exits the process.
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
