//! Checks the TypeScript parts: the SDK, the console, and the console's committed bundle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{TaskError, run};
use crate::stages::{Context, build_runwire, target_folder};
use crate::tools;

const SDK: &str = "sdk/typescript";
const CONSOLE: &str = "console";
/// Folder of the committed bundle, which the server embeds.
const BUNDLE: &str = "console/dist";

/// Variable with the path of the server that the tests start.
const PROGRAM: &str = "RUNWIRE_PROGRAM";

/// A folder with a `package.json`.
pub(crate) struct Package {
    folder: PathBuf,
}

impl Package {
    /// Installs the dependencies of a package.
    pub(crate) fn install(root: &Path, folder: &str) -> Result<Self, TaskError> {
        let package = Self { folder: root.join(folder) };
        run(package.npm().args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))?;
        Ok(package)
    }

    fn npm(&self) -> Command {
        let mut npm = Command::new("npm");
        npm.current_dir(&self.folder);
        npm
    }

    fn script(&self, name: &str) -> Command {
        let mut npm = self.npm();
        npm.args(["run", "--silent", name]);
        npm
    }

    /// Returns a call of a program of the package.
    pub(crate) fn node(&self, program: &str) -> Command {
        let mut node = Command::new("node");
        node.current_dir(&self.folder).arg(program);
        node
    }
}

/// Checks the SDK: its types against the model, its tests against a server, its size.
pub(crate) fn sdk(context: &Context) -> Result<(), TaskError> {
    let program = build_runwire(context)?;
    let sdk = Package::install(&context.root, SDK)?;
    for script in ["check-types", "typecheck"] {
        run(&mut sdk.script(script))?;
    }
    run(sdk.script("test").env(PROGRAM, program))?;
    for script in ["build", "size"] {
        run(&mut sdk.script(script))?;
    }
    Ok(())
}

/// Checks the console, and that the committed bundle is up to date.
pub(crate) fn console(context: &Context) -> Result<(), TaskError> {
    let console = install_console(&context.root)?;
    for script in ["typecheck", "test"] {
        run(&mut console.script(script))?;
    }
    let fresh = target_folder(context).join("console");
    run(console.script("build").args(["--", "--emptyOutDir", "--outDir"]).arg(&fresh))?;
    let differences = differences(&files_below(&context.root.join(BUNDLE))?, &files_below(&fresh)?);
    if !differences.is_empty() {
        return Err(TaskError::new(format!(
            "{BUNDLE} is stale ({}): run `cargo xtask console`, and commit what it writes",
            differences.join(", ")
        )));
    }
    println!("{BUNDLE} is what the sources become");
    run(&mut console.script("size"))
}

/// Tests the console in a browser.
pub(crate) fn browser(context: &Context) -> Result<(), TaskError> {
    let chromium = tools::chromium()?;
    let program = build_runwire(context)?;
    let console = install_console(&context.root)?;
    run(console.script("test:browser").env("CHROMIUM", chromium).env(PROGRAM, program))
}

/// Rebuilds the bundle.
pub(crate) fn build_console(root: &Path) -> Result<(), TaskError> {
    let console = install_console(root)?;
    run(&mut console.script("build"))?;
    run(&mut console.script("size"))
}

/// Installs the console and the SDK, whose sources it uses.
fn install_console(root: &Path) -> Result<Package, TaskError> {
    Package::install(root, SDK)?;
    Package::install(root, CONSOLE)
}

type Files = BTreeMap<String, Vec<u8>>;

fn files_below(folder: &Path) -> Result<Files, TaskError> {
    let failed = |error| TaskError::new(format!("`{}` could not be read: {error}", folder.display()));
    let mut files = Files::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(failed)?.is_dir() {
            let inner = files_below(&entry.path())?;
            files.extend(inner.into_iter().map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else {
            files.insert(name, fs::read(entry.path()).map_err(failed)?);
        }
    }
    Ok(files)
}

/// Lists the files that are in one folder only, or differ.
fn differences(committed: &Files, fresh: &Files) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, bytes) in committed {
        match fresh.get(path) {
            None => differences.push(format!("{path} is left over")),
            Some(fresh) if fresh != bytes => differences.push(format!("{path} differs")),
            Some(_) => {}
        }
    }
    let missing = fresh.keys().filter(|path| !committed.contains_key(*path));
    differences.extend(missing.map(|path| format!("{path} is missing")));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn an_outdated_bundle_is_reported_file_by_file() {
        let committed = files(&[("index.html", "a"), ("assets/app-1.js", "x"), ("icon.svg", "i")]);
        assert_eq!(differences(&committed, &committed), [""; 0]);
        let fresh = files(&[("index.html", "b"), ("assets/app-2.js", "y"), ("icon.svg", "i")]);
        let told = ["assets/app-1.js is left over", "index.html differs", "assets/app-2.js is missing"];
        assert_eq!(differences(&committed, &fresh), told);
    }
}
