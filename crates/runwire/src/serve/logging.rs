//! Sets up the log on standard error, as text or JSON.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogFormat, LogLevel};

/// Starts logging; libraries log only warnings, whatever the level.
pub(crate) fn start(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let targets = Targets::new().with_default(level.min(Level::WARN)).with_target("runwire", level);
    let layer = match format {
        LogFormat::Text => {
            let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            fmt::layer().with_writer(io::stderr).with_ansi(colours).boxed()
        }
        LogFormat::Json => fmt::layer().with_writer(io::stderr).json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(targets)).init();
}
