//! Tests of several nodes on one Postgres and Redis.
//!
//! | module | what |
//! |---|---|
//! | `chaos` | random kills, pauses and network faults under load |
//! | `disturbance` | the disturbances |
//! | `probes` | how long it takes until every node reads again what the others write |
//! | `users` | clients that start agents, answer their interactions, cancel, and abandon runs |
//! | `check` | invariants after a test, on every node |
//! | `node_switching` | readers that switch nodes after any frame |
//! | `races` | several nodes do the same thing at once, and one of them wins |
//! | `agents` | an agent on one node, asked, answered and stopped on another |
//! | `node_failure` | a node that runs an agent is killed, or loses its lease |
//! | `outages` | Postgres is away for longer than any limit |
//! | `unknown_outcome` | a commit whose response is lost |
//! | `operations` | rolling restarts, concurrent starts, no Redis |
//! | `command` | the command line on Postgres: starting, migrating, advice, passwords |
//! | `readiness` | `/readyz` and metrics while something is away, and TLS |
//! | `test_cluster` | the engines, a proxy to each for every node, and the nodes |
//! | `requests` | requests that are retried until a node responds |
//! | `workload` of `crash` | the writers and readers |
//!
//! `RUNWIRE_CHAOS_SEED` sets the random seed, which is printed at the start; `RUNWIRE_CHAOS_SECONDS` sets the duration.
#![cfg(target_os = "linux")]

mod agents;
mod chaos;
mod check;
mod command;
mod disturbance;
mod node_failure;
mod node_switching;
mod operations;
mod outages;
mod probes;
mod races;
mod readiness;
mod requests;
mod test_cluster;
mod unknown_outcome;
mod users;
