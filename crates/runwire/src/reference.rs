//! Checks that `docs/cli.md` is the printed help of every command.
//!
//! `RUNWIRE_WRITE_DOCS=1 cargo test -p runwire reference` rewrites it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::arguments::Arguments;

/// Width of the help, whatever the terminal.
const COLUMNS: usize = 100;

const INTRODUCTION: &str = "\
# Command line reference

What `runwire COMMAND --help` prints, for every command. [commands.md](commands.md) tells what the commands have in
common and what they promise to scripts.

This page is written from the program: `RUNWIRE_WRITE_DOCS=1 cargo test -p runwire reference`.
";

fn reference() -> String {
    let mut all = Arguments::command().term_width(COLUMNS);
    all.build();
    let mut page = INTRODUCTION.to_owned();
    section(&mut page, "runwire", &mut all.clone());
    for command in all.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("runwire {}", command.get_name());
        section(&mut page, &name, &mut command.clone().term_width(COLUMNS));
    }
    page
}

fn section(page: &mut String, name: &str, command: &mut clap::Command) {
    let help = command.render_long_help().to_string();
    let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.trim()).unwrap();
}

#[test]
fn the_reference_is_the_help_of_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let (found, wanted) = (fs::read_to_string(&path).unwrap_or_default(), reference());
    if std::env::var_os("RUNWIRE_WRITE_DOCS").is_some() {
        return fs::write(&path, &wanted).unwrap();
    }
    assert!(
        found == wanted,
        "docs/cli.md is not what the commands say; RUNWIRE_WRITE_DOCS=1 cargo test -p runwire reference writes it anew"
    );
}
