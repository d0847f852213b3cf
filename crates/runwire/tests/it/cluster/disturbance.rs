//! Disturbances of a cluster: kills, pauses, restarts, network faults.

use std::thread;
use std::time::Duration;

use runwire_engines::{Mode, Proxy};
use rustix::process::Signal;

use super::test_cluster::{TestCluster, set_mode_and_cut};
use super::unknown_outcome::COMMIT;
use crate::crash::random::Random;

/// Something that goes wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    NodeKilled,
    NodePaused,
    RedisKilled,
    RedisFlushed,
    RedisPaused,
    RedisRestarted,
    RedisConnectionsCut,
    PostgresKilled,
    PostgresRestarted,
    PostgresPaused,
    PostgresConnectionsCut,
    NodeStalledFromRedis,
    NodeRefusedByRedis,
    NodeStalledFromPostgres,
    NodeRefusedByPostgres,
    CommitsUnheard,
}

impl Disturbance {
    pub(super) const ALL: [Self; 16] = [
        Self::NodeKilled,
        Self::NodePaused,
        Self::RedisKilled,
        Self::RedisFlushed,
        Self::RedisPaused,
        Self::RedisRestarted,
        Self::RedisConnectionsCut,
        Self::PostgresKilled,
        Self::PostgresRestarted,
        Self::PostgresPaused,
        Self::PostgresConnectionsCut,
        Self::NodeStalledFromRedis,
        Self::NodeRefusedByRedis,
        Self::NodeStalledFromPostgres,
        Self::NodeRefusedByPostgres,
        Self::CommitsUnheard,
    ];

    /// How often it happens, for each time of the others: what a node has begun matters most when it is killed.
    pub(super) fn weight(self) -> usize {
        if self == Self::NodeKilled { 4 } else { 1 }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NodeKilled => "a node is killed",
            Self::NodePaused => "a node is paused",
            Self::RedisKilled => "Redis is killed",
            Self::RedisFlushed => "Redis is flushed",
            Self::RedisPaused => "Redis is paused",
            Self::RedisRestarted => "Redis is restarted",
            Self::RedisConnectionsCut => "the connections of Redis are cut",
            Self::PostgresKilled => "Postgres is killed",
            Self::PostgresRestarted => "Postgres is restarted",
            Self::PostgresPaused => "Postgres is paused",
            Self::PostgresConnectionsCut => "the connections of Postgres are cut",
            Self::NodeStalledFromRedis => "a node hears nothing from Redis",
            Self::NodeRefusedByRedis => "a node is refused by Redis",
            Self::NodeStalledFromPostgres => "a node hears nothing from Postgres",
            Self::NodeRefusedByPostgres => "a node is refused by Postgres",
            Self::CommitsUnheard => "a node's commits are not answered",
        }
    }

    /// Lets it happen, for at most so long where it takes a while, and sees to it that it is over.
    pub(super) fn happen(self, cluster: &mut TestCluster, random: &mut Random, longest: Duration) {
        let longest = u64::try_from(longest.as_millis()).unwrap();
        let node = random.below(cluster.nodes.len());
        let mut last = || thread::sleep(Duration::from_millis(100) + random.millis(longest));
        match self {
            Self::NodeKilled => {
                cluster.nodes[node].server.kill();
                last();
                cluster.nodes[node].server.restart();
            }
            Self::NodePaused => {
                cluster.nodes[node].server.signal(Signal::STOP);
                last();
                cluster.nodes[node].server.signal(Signal::CONT);
            }
            Self::RedisKilled => {
                cluster.redis.kill();
                last();
                cluster.redis.restart().unwrap();
            }
            Self::RedisFlushed => cluster.redis.flush().unwrap(),
            Self::RedisPaused => {
                cluster.redis.pause();
                last();
                cluster.redis.resume();
            }
            Self::RedisRestarted => cluster.redis.restart().unwrap(),
            Self::RedisConnectionsCut => cluster.redis.cut_connections().unwrap(),
            Self::PostgresKilled => {
                cluster.postgres.kill();
                last();
                cluster.postgres.restart().unwrap();
            }
            Self::PostgresRestarted => cluster.postgres.restart().unwrap(),
            Self::PostgresPaused => {
                cluster.postgres.pause();
                last();
                cluster.postgres.resume();
            }
            Self::PostgresConnectionsCut => {
                cluster.postgres.cut_connections().unwrap();
            }
            Self::NodeStalledFromRedis => cut_off(&cluster.nodes[node].to_redis, Mode::Stall, last),
            Self::NodeRefusedByRedis => cut_off(&cluster.nodes[node].to_redis, Mode::Refuse, last),
            Self::NodeStalledFromPostgres => cut_off(&cluster.nodes[node].to_postgres, Mode::Stall, last),
            Self::NodeRefusedByPostgres => cut_off(&cluster.nodes[node].to_postgres, Mode::Refuse, last),
            Self::CommitsUnheard => {
                let way = &cluster.nodes[node].to_postgres;
                way.set(Mode::MuteAfter(COMMIT));
                last();
                way.cut_and(Mode::Pass);
            }
        }
    }
}

fn cut_off(way: &Proxy, mode: Mode, mut last: impl FnMut()) {
    set_mode_and_cut(way, mode);
    last();
    way.set(Mode::Pass);
}
