//! The live tail over a real Redis.

mod faults;
mod flow;
mod nodes;
