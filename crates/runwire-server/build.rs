//! Rebuilds the server when the console bundle changes.

#![allow(clippy::print_stdout)] // This is how a build script speaks to cargo.

fn main() {
    // The embedding names only the files that it found: a folder that was empty at the time would never be looked at
    // again.
    println!("cargo::rerun-if-changed=../../console/dist");
}
