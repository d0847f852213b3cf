//! What nodes that share one store need besides it.

pub mod redis;
