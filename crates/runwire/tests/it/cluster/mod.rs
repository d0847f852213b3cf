//! Several nodes on one Postgres, with Redis between them, tried to destruction.
//!
//! | module | what |
//! |---|---|
//! | `chaos` | everything is killed, paused and cut off at random while people write, read, ask and answer |
//! | `disturbance` | what can happen to a cluster |
//! | `probes` | how long it takes until every node reads again what the others write |
//! | `people` | who starts agents, answers what they ask, cancels, and leaves |
//! | `check` | what must be true afterwards, on every node |
//! | `hopping` | whoever reads each frame from another node sees exactly the stream |
//! | `races` | several nodes do the same thing at once, and one of them wins |
//! | `agents` | an agent on one node, asked, answered and stopped on another |
//! | `deaths` | a node that runs an agent is killed, or taken for dead |
//! | `outages` | Postgres is away for longer than any limit |
//! | `doubts` | a commit whose answer is lost |
//! | `operating` | rolling restarts, starting at once, no Redis |
//! | `command` | the command line on Postgres: starting, migrating, advice, passwords |
//! | `readiness` | `/readyz` and metrics while something is away, and TLS |
//! | `bed` | the engines, a proxy to each for every node, and the nodes |
//! | `asking` | requests that are repeated until a node can answer |
//! | `cast` of `crash` | the writers and readers |
//!
//! Chance has a seed, `RUNWIRE_CHAOS_SEED`, which is told at the start; `RUNWIRE_CHAOS_SECONDS` says for how long things go
//! wrong.
#![cfg(target_os = "linux")]

mod agents;
mod asking;
mod bed;
mod chaos;
mod check;
mod command;
mod deaths;
mod disturbance;
mod doubts;
mod hopping;
mod operating;
mod outages;
mod people;
mod probes;
mod races;
mod readiness;
