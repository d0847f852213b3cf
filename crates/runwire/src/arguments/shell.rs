//! Arguments of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::EXIT_CODES;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  For bash, for this user:
    runwire completions bash > ~/.local/share/bash-completion/completions/runwire

  For zsh, in a folder of `fpath`:
    runwire completions zsh > ~/.zfunc/_runwire

  For fish:
    runwire completions fish > ~/.config/fish/completions/runwire.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  Read the overview:
    runwire man | man -l -

  Install all pages for this user:
    runwire man ~/.local/share/man/man1";

#[derive(Debug, Args)]
#[command(
    after_help = COMPLETIONS_EXAMPLES,
    after_long_help = format!("{COMPLETIONS_EXAMPLES}\n\n{EXIT_CODES}")
)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES, after_long_help = format!("{MAN_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ManArguments {
    /// The folder to write one page a command to; without it, the overview is printed
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}
