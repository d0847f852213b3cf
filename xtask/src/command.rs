//! Runs other programs, and prints their command lines.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a command failed, as a message for the terminal.
#[derive(Debug)]
pub(crate) struct TaskError(String);

impl TaskError {
    pub(crate) fn new(message: impl Into<String>) -> TaskError {
        TaskError(message.into())
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Builds a call of the cargo that started us, in `root`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Prints the command line, then runs it with our output and no input.
pub(crate) fn run(command: &mut Command) -> Result<(), TaskError> {
    let line = command_line(command);
    println!("$ {line}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::new(format!("`{line}` failed ({status})"))),
        Err(error) => Err(TaskError::new(format!("`{line}` could not be started: {error}"))),
    }
}

/// Returns the first line that the command prints; `None` if it is missing or fails.
pub(crate) fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}

/// Formats a command as one would type it, with the variables set for it.
pub(crate) fn command_line(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words =
        std::iter::once(program).chain(command.get_args()).map(|word| quoted(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) { format!("'{word}'") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(command_line(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_failing_command_is_named_with_its_status() {
        let failure = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(failure.contains("`false` failed") && failure.contains('1'), "{failure}");
    }

    #[test]
    fn a_missing_command_has_no_first_line() {
        assert_eq!(first_line(Command::new("echo").arg("v20.1.0")), Some("v20.1.0".to_owned()));
        assert_eq!(first_line(&mut Command::new("runwire-no-such-program")), None);
    }
}
