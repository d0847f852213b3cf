//! What the model promises, tried on whole streams.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod vectors;
