//! Proves that a dialect is one folder and one line of the registry.
//!
//! A kept patch adds one to a copy of the repository; then everything that is generated is written anew, and the checks
//! run over ten dialects.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{TaskError, cargo, first_line, run};
use crate::stages::{Context, target_folder};

/// Adds a folder below `dialect/`, and a line to the registry.
const PATCH: &str = "testing/new-dialect.patch";

/// Stages of `cargo xtask test` that run over ten dialects. The tests build the whole workspace.
const STAGES: &str = "format,lint,tests,docs,sdk,console,tidy";

/// Applies the patch to a copy of what is committed, and checks the copy.
///
/// The copy is a git worktree below the target folder. It stays there with its build, so that the next proof builds
/// only what has changed since; `target` is the target folder of that build.
pub(crate) fn check(context: &Context, target: Option<PathBuf>) -> Result<(), TaskError> {
    let folder = target_folder(context).join("new-dialect");
    let copy = folder.join("copy");
    // The copy has a working directory of its own.
    let target = target.map_or_else(|| folder.join("build"), |target| context.root.join(target));
    check_out(&context.root, &copy)?;
    run(git(&copy).arg("apply").arg(context.root.join(PATCH)))?;
    check_copy(&copy, &target)
}

/// Makes the copy, or brings the one of an earlier proof up to date.
fn check_out(root: &Path, copy: &Path) -> Result<(), TaskError> {
    let commit = first_line(git(root).args(["rev-parse", "HEAD"]));
    let commit = commit.ok_or_else(|| TaskError::new("`git rev-parse HEAD` failed"))?;
    if !copy.join(".git").exists() {
        // With --force also where a copy was deleted without telling git.
        return run(git(root).args(["worktree", "add", "--force", "--detach"]).arg(copy).arg(commit));
    }
    run(git(copy).args(["checkout", "--quiet", "--force", "--detach"]).arg(commit))?;
    // Ignored files stay: node's modules.
    run(git(copy).args(["clean", "--quiet", "--force", "-d"]))
}

fn check_copy(copy: &Path, target: &Path) -> Result<(), TaskError> {
    let cargo = |arguments: &[&str]| {
        let mut command = cargo(copy);
        command.args(arguments).env("CARGO_TARGET_DIR", target);
        command
    };
    let xtask =
        |arguments: &[&str]| run(cargo(&["run", "--quiet", "--package", "xtask", "--"]).args(arguments));
    xtask(&["vectors"])?;
    run(cargo(&["test", "--package", "runwire", "--bins", "reference"]).env("RUNWIRE_WRITE_DOCS", "1"))?;
    run(Command::new("node").current_dir(copy).arg("sdk/typescript/scripts/types.mjs"))?;
    // The committed bundle holds the list of dialects.
    xtask(&["console"])?;
    xtask(&["test", "--only", STAGES])
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_adds_one_folder_and_one_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let patch = std::fs::read_to_string(root.join(PATCH)).unwrap();
        let files: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
        let dialects = "crates/runwire-model/src/dialect/";
        let (folder, others): (Vec<&str>, Vec<&str>) = files
            .iter()
            .partition(|file| file.strip_prefix(dialects).is_some_and(|rest| rest.starts_with("courier/")));
        assert!(!folder.is_empty());
        assert_eq!(others, [format!("{dialects}registry.rs")]);
        let registry = patch.split("diff --git ").find(|part| part.contains("registry.rs")).unwrap();
        let added = |line: &&str| line.starts_with('+') && !line.starts_with("+++") && !line.contains("///");
        assert_eq!(registry.lines().filter(added).count(), 1);
        assert!(!registry.lines().any(|line| line.starts_with('-') && !line.starts_with("---")));
    }
}
