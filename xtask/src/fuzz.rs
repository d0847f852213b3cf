//! `cargo xtask fuzz`: coverage-guided fuzzing of the decoders and framings.
//!
//! The tests replay the committed seeds; this finds new ones.

use std::path::Path;

use crate::command::{TaskError, cargo, first_line, run};

/// The fuzz target; an input's first byte selects the decoder or framing.
const TARGET: &str = "translate";

/// Fuzzes for `minutes`, starting from `fuzz/seeds` and what earlier runs found in `fuzz/corpus`.
pub(crate) fn run_for(root: &Path, minutes: u64) -> Result<(), TaskError> {
    let folder = root.join("fuzz");
    if first_line(cargo(root).args(["fuzz", "--version"])).is_none() {
        run(cargo(root).args(["install", "cargo-fuzz", "--locked"]))?;
    }
    // libFuzzer writes to the first folder and only reads the second.
    let found = folder.join("corpus").join(TARGET);
    std::fs::create_dir_all(&found)
        .map_err(|error| TaskError::new(format!("{} could not be created: {error}", found.display())))?;
    // Sanitizers need a nightly compiler, and there is no unsafe code for them to watch.
    run(cargo(&folder)
        .args(["fuzz", "run", "--fuzz-dir", ".", "--sanitizer", "none", TARGET])
        .args([&format!("corpus/{TARGET}"), "seeds", "--"])
        .arg(format!("-max_total_time={}", minutes.saturating_mul(60))))
}
