//! Private engines for tests: PostgreSQL and Redis servers of one's own, and a proxy that spoils the way to them.
//!
//! An engine lives in a temporary folder and listens on a free port of the loopback address. It can be killed,
//! stopped, started again on the same data and port, and paused. It ends with the process that started it, however
//! that ends. Where that process is root, the engine is not: PostgreSQL refuses to be.

mod certificate;
mod error;
mod folder;
mod keeper;
mod postgres;
mod process;
mod programs;
mod proxy;
mod redis;
mod template;

pub use error::EngineError;
pub use postgres::{Postgres, PostgresOptions};
pub use proxy::{Mode, Proxy};
pub use redis::{Redis, RedisOptions};
