//! The embedded store, tested.

mod smoke;
