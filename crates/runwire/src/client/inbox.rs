//! `runwire inbox`: lists or watches open interactions.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use runwire_client::{Client, Interaction, InteractionFilter, InteractionPage};
use runwire_model::event::InteractionKind;

use super::runs::moment;
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::InboxArguments;
use crate::failure::{Failure, plain};
use crate::screen;
use crate::table::Table;
use runwire_view::terminal_columns_and_rows;

/// Interval of polling with `--watch`.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Prints the open interactions, newest first.
pub(crate) fn run(arguments: &InboxArguments) -> Result<Verdict, Failure> {
    block_on(async {
        let client = connect(&arguments.server)?;
        let filter = InteractionFilter {
            run: arguments.run.clone(),
            agent: arguments.agent.clone(),
            thread: arguments.thread.clone(),
            before: None,
            limit: Some(arguments.limit),
        };
        let page = client.interactions(&filter).await?;
        if arguments.watch {
            return watch(&client, &filter, page, arguments.json).await;
        }
        if arguments.json {
            let json = serde_json::to_string_pretty(&page).map_err(|error| Failure::Write(error.into()))?;
            return say(&json).map(|()| Verdict::Fine);
        }
        if page.interactions.is_empty() {
            screen::say_note("nothing waits for a person");
            return Ok(Verdict::Fine);
        }
        let shown = table(&page.interactions).fitted(terminal_columns_and_rows().0).to_string();
        say(shown.trim_end())?;
        if page.next.is_some() {
            screen::say_note("there are more; --limit shows up to 200");
        }
        Ok(Verdict::Fine)
    })
}

/// Polls, and prints each new interaction once.
async fn watch(
    client: &Client,
    filter: &InteractionFilter,
    first: InteractionPage,
    json: bool,
) -> Result<Verdict, Failure> {
    let mut shown: HashSet<(String, String)> = HashSet::new();
    let (mut page, mut has_warned) = (Some(first), false);
    if !json {
        say(table(&[]).to_string().trim_end())?;
    }
    loop {
        if let Some(page) = page.take() {
            let key = |asked: &Interaction| (asked.run_id.clone(), asked.interaction_id.clone());
            for asked in page.interactions.iter().rev().filter(|asked| !shown.contains(&key(asked))) {
                if json {
                    say(&serde_json::to_string(asked).map_err(|error| Failure::Write(error.into()))?)?;
                } else {
                    let rows = table(std::slice::from_ref(asked)).to_string();
                    say(rows.lines().nth(1).unwrap_or_default())?;
                }
            }
            // Forget interactions that are no longer open.
            shown = page.interactions.iter().map(key).collect();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        match client.interactions(filter).await {
            Ok(next) => (page, has_warned) = (Some(next), false),
            Err(error) if error.is_temporary() => {
                if !std::mem::replace(&mut has_warned, true) {
                    screen::say_note(format_args!("{}; trying again", plain(&error)));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::Write)
}

fn table(questions: &[Interaction]) -> Table {
    let mut table = Table::new(["run", "question", "kind", "title", "agent", "asked", "until"]);
    let none = || "-".to_owned();
    for asked in questions {
        let kind = match asked.kind {
            InteractionKind::Form => "form",
            InteractionKind::Approval => "approval",
        };
        let title = asked.title.clone().or_else(|| asked.name.clone());
        table.row([
            asked.run_id.clone(),
            asked.interaction_id.clone(),
            kind.to_owned(),
            title.unwrap_or_else(none),
            asked.agent.clone().unwrap_or_else(none),
            asked.asked_at.map_or_else(none, moment),
            asked.expires_at.map_or_else(none, moment),
        ]);
    }
    table
}
