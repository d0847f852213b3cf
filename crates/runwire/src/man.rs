//! `runwire man`: the manual, one page per command.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::Verdict;
use crate::arguments::{Arguments, ManArguments};
use crate::failure::Failure;
use crate::screen;

/// Writes all pages to a folder, or prints the first.
pub(crate) fn run(arguments: &ManArguments) -> Result<Verdict, Failure> {
    let pages = pages().map_err(Failure::Write)?;
    let Some(folder) = &arguments.folder else {
        let first = pages.first().map(|(_, page)| page.as_slice()).unwrap_or_default();
        io::stdout().lock().write_all(first).map_err(Failure::Write)?;
        return Ok(Verdict::Fine);
    };
    let unwritable = |path: &Path, error| Failure::WriteFile { name: path.display().to_string(), error };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    for (name, page) in &pages {
        let path = folder.join(name);
        fs::write(&path, page).map_err(|error| unwritable(&path, error))?;
    }
    screen::say_plainly(format_args!("wrote {} pages to {}", pages.len(), folder.display()));
    Ok(Verdict::Fine)
}

/// Renders every page, the overview first, each with the name of its file.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut overview = Arguments::command();
    overview.build();
    let mut pages = vec![page("runwire", overview.clone())?];
    for command in overview.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("runwire-{}", command.get_name());
        pages.push(page(&name, command.clone())?);
    }
    Ok(pages)
}

fn page(name: &str, command: clap::Command) -> io::Result<(String, Vec<u8>)> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok((format!("{name}.1"), page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_every_command() {
        let pages = pages().unwrap();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "runwire.1");
        for command in Arguments::command().get_subcommands() {
            assert!(names.contains(&format!("runwire-{}.1", command.get_name()).as_str()), "{names:?}");
        }
        for (name, page) in &pages {
            let page = String::from_utf8(page.clone()).unwrap();
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        }
    }
}
