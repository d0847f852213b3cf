//! All limits of agents; `docs/limits.md` lists them.

use std::time::Duration;

/// Working agents; further runs wait, pending.
pub const AGENTS_AT_ONCE: usize = 256;
/// Open runs of agents: working, pending, or waiting for a person.
pub const AGENTS_OPEN: usize = 4096;
/// Maximum of either in a configuration.
pub const AGENTS_LIMIT: usize = 100_000;
/// Bytes of one read of an agent's output.
pub const AGENT_READ_BYTES: usize = 64 << 10;
/// Unreadable frames of one agent's run, each stored as `foreign`; one more fails the run.
pub const AGENT_UNREADABLE_FRAMES: usize = 1000;
/// Last lines of a program's standard error in the failure of its run.
pub const STDERR_LINES: usize = 20;
/// Bytes of each of those lines.
pub const STDERR_LINE_BYTES: usize = 1 << 10;
/// Lines of a program's standard error that are logged per second; further ones are counted.
pub const STDERR_LOGGED_LINES: u64 = 100;
/// Bytes of a message in a program's environment; a longer one is on its standard input only.
pub const MESSAGE_VARIABLE_BYTES: usize = 64 << 10;
/// Time that a program has to react to a cancel request on its standard input before SIGTERM.
pub const AGENT_CANCEL_TIME: Duration = Duration::from_secs(1);
/// Grace period between asking an agent to stop and killing it.
pub const AGENT_GRACE_TIME: Duration = Duration::from_secs(10);
/// Idle time after which the output of an ended program is closed while a child still holds it open.
pub const AGENT_OUTPUT_TIME: Duration = Duration::from_secs(1);
/// Connect timeout of an HTTP agent.
pub const AGENT_CONNECT_TIME: Duration = Duration::from_secs(10);
/// Timeout for the response head of an HTTP agent.
pub const AGENT_ANSWER_TIME: Duration = Duration::from_secs(120);
/// Idle timeout of an HTTP agent's stream.
pub const AGENT_IDLE_TIME: Duration = Duration::from_secs(300);
/// Attempts for an HTTP agent that is unreachable or busy.
pub const AGENT_ATTEMPTS: u32 = 3;
/// Maximum delay between two attempts.
pub const AGENT_RETRY_TIME: Duration = Duration::from_secs(10);
/// Bytes that are read of an HTTP agent's error response.
pub const AGENT_ERROR_BYTES: usize = 16 << 10;
/// Characters of an error response in the failure of its run.
pub const AGENT_ERROR_CHARACTERS: usize = 300;
/// Orphaned runs that are claimed in one sweep.
pub const CLAIM_RUNS: usize = 256;
/// Time limit for recovering them before a starting server accepts connections.
pub const RECOVERY_TIME: Duration = Duration::from_secs(5);
/// Bytes for detecting the framing of an output without a content type.
pub const SNIFFED_BYTES: usize = 4 << 10;
/// Time to write the outcome of an agent that was stopped with the server.
pub const END_TIME: Duration = Duration::from_secs(10);
