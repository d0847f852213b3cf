//! `runwire check-config`: what the server would go by, and where each part of it comes from.

use std::io::{self, Write};

use serde_json::json;

use crate::Verdict;
use crate::arguments::CheckConfigArguments;
use crate::config::{self, Configuration, Origin, Problem};
use crate::failure::Failure;
use crate::screen;
use crate::table::Table;

/// Columns that a value may take before it pushes what follows it aside: a command may be long.
const WIDEST: usize = 48;

/// Prints the configuration, or everything that is wrong with it.
pub(crate) fn run(arguments: &CheckConfigArguments) -> Result<Verdict, Failure> {
    let configuration = config::read(&arguments.flags, Vec::new())?;
    let mut stdout = io::stdout().lock();
    if arguments.json {
        writeln!(stdout, "{:#}", as_json(&configuration)).map_err(Failure::Write)?;
    } else if configuration.problems.is_empty() {
        write!(stdout, "{}", as_table(&configuration).overflowing(WIDEST)).map_err(Failure::Write)?;
    }
    if arguments.json {
        return Ok(verdict(&configuration.problems));
    }
    for note in &configuration.notes {
        screen::say_note(note);
    }
    Ok(report(&configuration.problems))
}

/// Says all that is wrong.
pub(crate) fn report(problems: &[Problem]) -> Verdict {
    for problem in problems {
        screen::say_problem(problem, problem.hint.as_deref());
    }
    verdict(problems)
}

fn verdict(problems: &[Problem]) -> Verdict {
    if problems.is_empty() { Verdict::Fine } else { Verdict::HasProblems }
}

fn as_table(configuration: &Configuration) -> Table {
    let mut table = Table::new(["setting", "value", "from"]);
    for line in &configuration.lines {
        table.row([line.key.clone().into_owned(), line.value.clone(), line.origin.to_string()]);
    }
    table
}

fn as_json(configuration: &Configuration) -> serde_json::Value {
    let settings: Vec<_> = configuration
        .lines
        .iter()
        .map(|line| {
            let from = match &line.origin {
                Origin::Flag(name) => json!({"flag": name}),
                Origin::Variable(name) => json!({"variable": name}),
                Origin::File { path, line } => json!({"file": path, "line": line}),
                Origin::Default => json!("default"),
            };
            json!({"key": line.key, "value": line.value, "from": from})
        })
        .collect();
    json!({
        "valid": configuration.problems.is_empty(),
        "settings": settings,
        "problems": configuration.problems,
        "notes": configuration.notes,
    })
}
