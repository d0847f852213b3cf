//! Checks the files in `deploy/` with the programs that read them.
//!
//! Docker and Kubernetes are not required: each file is checked by its reader's own checker or published schema. Each check
//! must also find a mistake that is put into the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{TaskError, command_line, run};
use crate::stages::{Context, target_folder};
use crate::tools;

/// The programs from PyPI that check the files.
const REQUIREMENTS: &str = "deploy/check/requirements.txt";

/// The program that the unit starts; replaced by an existing one for the check.
const INSTALLED: &str = "/usr/local/bin/runwire";

/// Maximum exposure of the unit in `systemd-analyze security`, in tenths of a point.
const MAX_EXPOSURE: &str = "--threshold=20";

/// A check of one file.
struct Check {
    file: &'static str,
    command: fn(&Tools) -> Command,
    /// A mistake that the check must find.
    mistake: Mistake,
}

struct Mistake {
    right: &'static str,
    wrong: &'static str,
}

/// The installed checkers.
struct Tools {
    python: PathBuf,
}

const CHECKS: &[Check] = &[
    Check {
        file: "deploy/compose/compose.yaml",
        command: |tools| {
            let mut command = tools.command("check-jsonschema");
            command.args(["--builtin-schema", "vendor.compose-spec"]);
            command
        },
        mistake: Mistake { right: "depends_on: [", wrong: "depend_on: [" },
    },
    Check {
        file: "deploy/compose/haproxy.cfg",
        command: |_| {
            let mut command = Command::new(tools::HAPROXY);
            command.args(["-c", "-q", "-f"]);
            command
        },
        mistake: Mistake { right: "timeout tunnel", wrong: "timeout tunel" },
    },
    Check {
        file: "deploy/Dockerfile",
        command: |tools| tools.command("hadolint"),
        mistake: Mistake { right: "ENTRYPOINT", wrong: "ENTRPOINT" },
    },
    Check {
        file: "deploy/kubernetes/runwire.yaml",
        command: |tools| {
            let mut command = tools.command("kubernetes-validate");
            command.args(["--quiet", "--strict"]);
            command
        },
        mistake: Mistake { right: "maxUnavailable: 0", wrong: "maxUnavailble: 0" },
    },
    Check {
        file: "deploy/systemd/runwire.service",
        command: |_| {
            let mut command = Command::new("systemd-analyze");
            command.args(["verify", "--man=no"]);
            command
        },
        mistake: Mistake { right: "KillMode=", wrong: "KilMode=" },
    },
    Check {
        file: "deploy/systemd/runwire.service",
        command: |_| {
            let mut command = Command::new("systemd-analyze");
            command.args(["security", "--offline=yes", "--no-pager", MAX_EXPOSURE]);
            command
        },
        mistake: Mistake { right: "CapabilityBoundingSet=\n", wrong: "" },
    },
];

/// Checks every file of `deploy/` that a program reads.
pub(crate) fn check(context: &Context) -> Result<(), TaskError> {
    tools::deploy()?;
    let folder = target_folder(context).join("deploy");
    let tools = Tools::install(&context.root, &folder)?;
    for check in CHECKS {
        let text = read(&context.root.join(check.file))?;
        if let Err(said) = check.apply(&tools, &folder, &text)? {
            return Err(TaskError::new(format!("{}:\n{said}", check.file)));
        }
        let spoiled = check.mistake.make(&text).ok_or_else(|| {
            let right = check.mistake.right;
            TaskError::new(format!("{}: there is no `{right}` to try a mistake with", check.file))
        })?;
        if check.apply(&tools, &folder, &spoiled)?.is_ok() {
            let mistake = check.mistake.wrong;
            return Err(TaskError::new(format!("{}: its check overlooks `{mistake}`", check.file)));
        }
    }
    println!("{} checks of deploy/, each of which finds a mistake", CHECKS.len());
    Ok(())
}

impl Check {
    /// Checks a text in place of the file; the inner error is the program's output.
    fn apply(&self, tools: &Tools, folder: &Path, text: &str) -> Result<Result<(), String>, TaskError> {
        let name = Path::new(self.file).file_name().unwrap_or_default();
        let copy = folder.join(name);
        let stand_in = std::env::current_exe()
            .map_err(|error| TaskError::new(format!("where this program is cannot be told: {error}")))?;
        let text = text.replace(INSTALLED, &stand_in.to_string_lossy());
        fs::write(&copy, text)
            .map_err(|error| TaskError::new(format!("`{}` could not be written: {error}", copy.display())))?;
        run_check((self.command)(tools).arg(&copy))
    }
}

impl Mistake {
    fn make(&self, text: &str) -> Option<String> {
        text.contains(self.right).then(|| text.replacen(self.right, self.wrong, 1))
    }
}

impl Tools {
    /// Installs the programs into a virtual environment, unless they are there.
    fn install(root: &Path, folder: &Path) -> Result<Self, TaskError> {
        let python = folder.join("python");
        if !python.join("bin/pip").is_file() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        }
        run(Command::new(python.join("bin/pip")).current_dir(root).args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
            REQUIREMENTS,
        ]))?;
        Ok(Self { python })
    }

    fn command(&self, program: &str) -> Command {
        Command::new(self.python.join("bin").join(program))
    }
}

/// Runs a check. Any output is a failure, even if the program exits with 0, as `systemd-analyze verify` does for unknown
/// keys.
fn run_check(command: &mut Command) -> Result<Result<(), String>, TaskError> {
    let line = command_line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| TaskError::new(format!("`{line}` could not be started: {error}")))?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() && errors.is_empty() {
        return Ok(Ok(()));
    }
    Ok(Err(format!("`{line}`: {}\n{}{errors}", output.status, String::from_utf8_lossy(&output.stdout))))
}

fn read(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path)
        .map_err(|error| TaskError::new(format!("`{}` could not be read: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_only_mutters_has_failed() {
        let output = |script: &str| run_check(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(output("echo fine"), Ok(()));
        assert!(output("echo 'Unknown key' >&2").unwrap_err().contains("Unknown key"));
        assert!(output("echo no; exit 1").unwrap_err().contains("no"));
    }

    #[test]
    fn a_mistake_is_made_only_where_something_was_right() {
        let mistake = Mistake { right: "listen", wrong: "lisen" };
        assert_eq!(mistake.make("listen, listen"), Some("lisen, listen".to_owned()));
        assert_eq!(mistake.make("silence"), None);
    }
}
