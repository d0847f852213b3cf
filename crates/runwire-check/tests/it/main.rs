//! The checks, held against the vectors of every dialect.

mod quick;
mod strict;
