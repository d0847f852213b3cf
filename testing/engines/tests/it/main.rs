//! The engines, tested.
#![allow(clippy::unwrap_used)]

mod ending;
mod postgres;
mod proxy;
mod redis;
