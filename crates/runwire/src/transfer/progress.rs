//! The progress bar of a transfer.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of bytes or threads; a spinner with a count if the total is unknown.
pub(super) struct Progress {
    bar: ProgressBar,
    began: Instant,
    records: Cell<u64>,
}

impl Progress {
    /// Creates a bar of bytes.
    pub(super) fn of_bytes(size: Option<u64>) -> Self {
        Self::new(size, "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes}  {msg}  {eta} left")
    }

    /// Creates a bar of threads.
    pub(super) fn of_threads(threads: u64) -> Self {
        Self::new(Some(threads), "{bar:30} {pos} of {len} threads  {msg}")
    }

    fn new(length: Option<u64>, template: &str) -> Self {
        let bar = match length {
            _ if !std::io::stderr().is_terminal() => ProgressBar::hidden(),
            Some(length) => ProgressBar::new(length).with_style(style(template)),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {msg}")),
        };
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, began: Instant::now(), records: Cell::new(0) }
    }

    pub(super) fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    pub(super) fn count_record(&self) {
        let records = self.records.get() + 1;
        self.records.set(records);
        if records.is_multiple_of(256) && !self.bar.is_hidden() {
            let seconds = self.began.elapsed().as_secs_f64().max(0.001);
            self.bar.set_message(format!("{records} records, {:.0}/s", records as f64 / seconds));
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
