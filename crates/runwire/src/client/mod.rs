//! The commands that talk to a server.

mod answer;
pub(crate) mod batch;
mod beats;
mod cancel;
mod inbox;
pub(crate) mod interrupt;
pub(crate) mod notes;
mod printer;
mod push;
mod replay;
mod resend;
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

/// Time after which a person wonders what is being waited for.
const SLOW_TIME: Duration = Duration::from_secs(3);

/// Makes the client of a command. A server that is not there at the very beginning is told at once.
pub(crate) fn connect(server: &ServerArguments) -> Result<Client, Failure> {
    Ok(builder(server)?.connect_attempts(1).build()?)
}

/// Begins the client of a command; a person is told when the server takes its time.
pub(crate) fn builder(server: &ServerArguments) -> Result<ClientBuilder, Failure> {
    let builder = Client::builder().url(server.url()?.to_string()).env_token();
    if !std::io::stderr().is_terminal() {
        return Ok(builder);
    }
    Ok(builder
        .on_slow_response(SLOW_TIME, |url| screen::say_note(format_args!("waiting for {url} to answer"))))
}

/// Runs a command that waits for one connection at a time: a thread is enough for it.
pub(crate) fn block_on(command: impl Future<Output = Result<Verdict, Failure>>) -> Result<Verdict, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)?;
    runtime.block_on(command)
}
