//! Tests of the engines and the proxy.
#![allow(clippy::unwrap_used)]

mod cleanup;
mod postgres;
mod proxy;
mod redis;
