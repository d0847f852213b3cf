//! `runwire check-config`: prints each setting with its value and origin, or the problems of the configuration.

use std::io::{self, Write};

use serde_json::json;

use crate::Verdict;
use crate::arguments::CheckConfigArguments;
use crate::config::{self, ConfigProblem, Configuration, Origin};
use crate::failure::Failure;
use crate::screen;
use crate::table::Table;

/// Values wider than this overflow their column: a command may be long.
const MAX_VALUE_COLUMNS: usize = 48;

/// Prints the configuration, or its problems.
pub(crate) fn run(arguments: &CheckConfigArguments) -> Result<Verdict, Failure> {
    let configuration = config::read(&arguments.flags, Vec::new())?;
    let mut stdout = io::stdout().lock();
    if arguments.json {
        writeln!(stdout, "{:#}", as_json(&configuration)).map_err(Failure::Write)?;
    } else if configuration.problems.is_empty() {
        write!(stdout, "{}", as_table(&configuration).overflowing(MAX_VALUE_COLUMNS))
            .map_err(Failure::Write)?;
    }
    if arguments.json {
        return Ok(verdict(&configuration.problems));
    }
    for note in &configuration.notes {
        screen::say_note(note);
    }
    Ok(report(&configuration.problems))
}

/// Prints all problems.
pub(crate) fn report(problems: &[ConfigProblem]) -> Verdict {
    for problem in problems {
        screen::say_problem(problem, problem.hint.as_deref());
    }
    verdict(problems)
}

fn verdict(problems: &[ConfigProblem]) -> Verdict {
    if problems.is_empty() { Verdict::Fine } else { Verdict::HasProblems }
}

fn as_table(configuration: &Configuration) -> Table {
    let mut table = Table::new(["setting", "value", "from"]);
    for setting in &configuration.resolved {
        table.row([setting.key.clone().into_owned(), setting.value.clone(), setting.origin.to_string()]);
    }
    table
}

fn as_json(configuration: &Configuration) -> serde_json::Value {
    let settings: Vec<_> = configuration
        .resolved
        .iter()
        .map(|setting| {
            let from = match &setting.origin {
                Origin::Flag(name) => json!({"flag": name}),
                Origin::Variable(name) => json!({"variable": name}),
                Origin::File { path, line } => json!({"file": path, "line": line}),
                Origin::Default => json!("default"),
            };
            json!({"key": setting.key, "value": setting.value, "from": from})
        })
        .collect();
    json!({
        "valid": configuration.problems.is_empty(),
        "settings": settings,
        "problems": configuration.problems,
        "notes": configuration.notes,
    })
}
