//! The checks, held against the vectors of every dialect.
#![expect(clippy::unwrap_used)]

mod quick_check;
mod strict;
