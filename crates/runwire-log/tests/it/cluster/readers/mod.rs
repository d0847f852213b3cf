//! Readers on one node learn of what other nodes commit, whatever Redis does.

mod faults;
mod fixture;
mod flow;
