//! The commands that talk to a server: `push`, `tail`, `runs`, `show`.

mod connection;
mod events;
mod printer;
mod push;
mod refusal;
mod runs;
mod show;
mod tail;
mod url;

use std::future::Future;

pub(crate) use push::run as push;
pub(crate) use refusal::Refusal;
pub(crate) use runs::run as runs;
pub(crate) use show::run as show;
pub(crate) use tail::run as tail;
pub(crate) use url::BaseUrl;

use crate::Verdict;
use crate::failure::Failure;

/// Runs a command that waits for one connection at a time: a thread is enough for it.
fn block_on(command: impl Future<Output = Result<Verdict, Failure>>) -> Result<Verdict, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)?;
    runtime.block_on(command)
}
