//! `runwire run`: starts an agent, and watches its run.

use std::io::{self, Write};

use runwire_client::{AgentInfo, NewRun};

use super::interrupt::Interrupt;
use super::tail::TailTarget;
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::screen;

/// Creates a run of an agent, and watches it.
pub(crate) fn run(arguments: &RunArguments) -> Result<Verdict, Failure> {
    let mode = arguments.output.print_mode()?;
    let client = connect(&arguments.server)?;
    block_on(async {
        // From here on a signal prints how to resume.
        let interrupt = Interrupt::listen().map_err(Failure::Start)?;
        let new = NewRun {
            run_id: arguments.run.clone(),
            thread_id: arguments.thread.clone(),
            agent: Some(arguments.agent.clone()),
            message: arguments.message.clone(),
            message_id: None,
            input: arguments.input.clone(),
        };
        // The server accepts any agent name as a label; here it must be one of its agents.
        exists(&client.agents().await?, &arguments.agent)?;
        let id = client.create_run(&new).await?.run_id;
        if arguments.detach {
            writeln!(io::stdout().lock(), "{id}").map_err(Failure::Write)?;
            return Ok(Verdict::Fine);
        }
        screen::say_plainly(format_args!("run {id}"));
        let exit_status = arguments.exit_status;
        let shown = TailTarget { client, id, is_thread: false, exit_status, flags: String::new() };
        shown.watch_whole(mode, interrupt, &arguments.server).await
    })
}

/// Returns an error if the server has no agent of this name.
fn exists(agents: &[AgentInfo], name: &str) -> Result<(), Failure> {
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let hint = match (nearest(name, &names), names.as_slice()) {
        (Some(near), _) => format!("is `{near}` meant? `runwire run` can start {}", names.join(", ")),
        (None, []) => {
            "the server has no agents: add `[agents.NAME]` to its runwire.toml; `runwire dev` has demos \
                       of its own"
                .to_owned()
        }
        (None, names) => format!("there are {}", names.join(", ")),
    };
    Err(Failure::NoAgent { name: name.to_owned(), hint })
}
