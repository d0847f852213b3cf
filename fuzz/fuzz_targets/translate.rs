//! Bytes through framing, decoder, guard and every encoder: `cargo fuzz run --sanitizer none translate`.
//!
//! What is done with them stands beside the tests, which replay `fuzz/seeds` on every run.
#![no_main]

#[path = "../../crates/runwire-model/tests/it/ag_ui_rules.rs"]
mod ag_ui_rules;
#[path = "../../crates/runwire-model/tests/it/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replay::translate(bytes));
