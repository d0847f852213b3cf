//! Readers on one node see the commits of other nodes, whatever Redis does.

mod faults;
mod fixture;
mod flow;
