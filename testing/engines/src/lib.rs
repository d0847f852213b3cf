//! Private engines for tests: PostgreSQL and Redis servers, and a proxy that injects network faults.
//!
//! An engine has a temporary folder and a free port on loopback. It can be killed, stopped, restarted on the same data and
//! port, and paused. It ends with the process that started it, however that ends. If that process is root, the engine runs
//! as another user, as PostgreSQL requires.

mod certificate;
mod data_template;
mod error;
mod folder;
mod postgres;
mod process;
mod programs;
mod proxy;
mod redis;
mod watchdog;

pub use error::EngineError;
pub use postgres::{Postgres, PostgresOptions};
pub use proxy::{Mode, Proxy};
pub use redis::{Redis, RedisOptions};
