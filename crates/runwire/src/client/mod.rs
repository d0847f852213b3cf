//! The client commands: push, tail, replay, run, inbox, answer, cancel, retry, runs, show.

mod answer;
pub(crate) mod batch;
mod cancel;
mod inbox;
pub(crate) mod interrupt;
mod line_map;
pub(crate) mod notes;
mod printer;
mod push;
mod push_producer;
mod replay;
mod retry;
mod run;
mod runs;
mod show;
mod tail;
mod timeline;
pub(crate) mod watch;
pub(crate) mod writer;

use std::future::Future;
use std::io::IsTerminal;
use std::time::Duration;

use runwire_client::{Client, ClientBuilder};

pub(crate) use answer::run as answer;
pub(crate) use cancel::run as cancel;
pub(crate) use inbox::run as inbox;
pub(crate) use push::run as push;
pub(crate) use replay::run as replay;
pub(crate) use retry::run as retry;
pub(crate) use run::run as start;
pub(crate) use runs::run as runs;
pub(crate) use show::run as show;
pub(crate) use tail::run as tail;

use crate::Verdict;
use crate::arguments::ServerArguments;
use crate::failure::Failure;
use crate::screen;

/// A response slower than this prints a note.
const SLOW_RESPONSE: Duration = Duration::from_secs(3);

/// Returns the client of a command; an unreachable server is an error at once.
pub(crate) fn connect(server: &ServerArguments) -> Result<Client, Failure> {
    Ok(builder(server)?.connect_attempts(1).build()?)
}

/// Returns the client builder of a command; at a terminal, a slow response prints a note.
pub(crate) fn builder(server: &ServerArguments) -> Result<ClientBuilder, Failure> {
    let builder = Client::builder().url(server.url()?.to_string()).env_token();
    if !std::io::stderr().is_terminal() {
        return Ok(builder);
    }
    Ok(builder
        .on_slow_response(SLOW_RESPONSE, |url| screen::say_note(format_args!("waiting for {url} to answer"))))
}

/// Runs a command on a single-threaded runtime.
pub(crate) fn block_on(command: impl Future<Output = Result<Verdict, Failure>>) -> Result<Verdict, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)?;
    runtime.block_on(command)
}
