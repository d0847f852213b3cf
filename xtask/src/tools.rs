//! Finds or installs the programs that the stages need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{TaskError, cargo, first_line, run};

/// The oldest Node.js that the official AG-UI client is tested with.
const OLDEST_NODE: u32 = 20;

/// Names of Chromium on different systems.
const CHROMIUMS: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/// Path of HAProxy on Debian, which is only on root's PATH.
pub(crate) const HAPROXY: &str = "/usr/sbin/haproxy";

/// Folder of Debian's PostgreSQL versions.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Installs missing tools of the other stages, and prints the versions.
pub(crate) fn prepare(root: &Path) -> Result<(), TaskError> {
    report("cargo", first_line(cargo(root).arg("--version")).as_deref().unwrap_or("missing"));
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        report(component, &rust_component(root, tool, component)?);
    }
    report(
        "cargo-nextest",
        nextest(root).as_deref().unwrap_or("not found: `cargo test` runs the tests instead"),
    );
    if !node_is_recent() || npm().is_none() {
        apt_install(&["nodejs", "npm"])?;
    }
    let node = node().ok_or_else(|| TaskError::new("Node.js is missing, also after installing it"))?;
    match major_version(&node) {
        Some(major) if major >= OLDEST_NODE => report("node", &node),
        _ => {
            return Err(TaskError::new(format!(
                "Node.js {OLDEST_NODE} or newer is needed for the AG-UI oracle, and this is {node}: \
                 install a newer one from nodejs.org"
            )));
        }
    }
    report("npm", &npm().ok_or_else(|| TaskError::new("npm is missing, also after installing it"))?);
    Ok(())
}

/// Returns the version of cargo-nextest; `None` if it is not installed.
pub(crate) fn nextest(root: &Path) -> Option<String> {
    first_line(cargo(root).args(["nextest", "--version"]))
}

/// Finds or installs Chromium, and returns its name.
pub(crate) fn chromium() -> Result<String, TaskError> {
    let named = std::env::var("CHROMIUM").ok();
    let names = named.as_deref().into_iter().chain(CHROMIUMS);
    let found = || names.clone().find(|name| first_line(Command::new(name).arg("--version")).is_some());
    let found = match found() {
        Some(name) => Some(name),
        None => {
            apt_install(&["chromium"])?;
            found()
        }
    };
    let found = found.ok_or_else(|| TaskError::new("Chromium is missing, also after installing it"))?;
    report("chromium", first_line(Command::new(found).arg("--version")).as_deref().unwrap_or_default());
    Ok(found.to_owned())
}

/// Finds Redis and PostgreSQL, or installs them. The tests start servers of their own; one that the packages start is
/// never used.
pub(crate) fn engines() -> Result<(), TaskError> {
    ensure(&[
        Needed { name: "redis", package: "redis-server", version: || version("redis-server", "--version") },
        Needed { name: "postgres", package: "postgresql", version: postgres },
    ])
}

/// Finds Python, or installs it.
pub(crate) fn python() -> Result<(), TaskError> {
    ensure(&[Needed { name: "python", package: "python3", version: || version("python3", "--version") }])
}

/// Finds or installs the programs that check `deploy/`.
pub(crate) fn deploy() -> Result<(), TaskError> {
    ensure(&[
        Needed { name: "haproxy", package: "haproxy", version: || version(HAPROXY, "-v") },
        Needed { name: "systemd", package: "systemd", version: || version("systemd-analyze", "--version") },
        Needed { name: "python", package: "python3-venv", version: python_with_venv },
    ])
}

/// A program of a Debian package.
struct Needed {
    name: &'static str,
    package: &'static str,
    version: fn() -> Option<String>,
}

/// Installs the missing programs, and prints the versions of all.
fn ensure(programs: &[Needed]) -> Result<(), TaskError> {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|program| (program.version)().is_none())
        .map(|program| program.package)
        .collect();
    if !missing.is_empty() {
        apt_install(&missing)?;
    }
    for program in programs {
        let missing = || TaskError::new(format!("{} is missing, also after installing it", program.package));
        report(program.name, &(program.version)().ok_or_else(missing)?);
    }
    Ok(())
}

fn version(program: &str, flag: &str) -> Option<String> {
    first_line(Command::new(program).arg(flag))
}

/// Returns the version of PostgreSQL that is on the path, else of one that Debian's packages have installed.
fn postgres() -> Option<String> {
    let installed = std::fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let programs = installed.map(|version| version.path().join("bin/postgres"));
    std::iter::once(PathBuf::from("postgres"))
        .chain(programs)
        .find_map(|program| first_line(Command::new(program).arg("--version")))
}

/// Returns the version of Python, if it can make environments: Debian has that in a package of its own.
fn python_with_venv() -> Option<String> {
    first_line(Command::new("python3").args(["-c", "import ensurepip, sys; print(sys.version)"]))
}

fn report(tool: &str, found: &str) {
    println!("{tool:<14}{found}");
}

fn rust_component(root: &Path, tool: &str, component: &str) -> Result<String, TaskError> {
    let version = || first_line(cargo(root).args([tool, "--version"]));
    if let Some(version) = version() {
        return Ok(version);
    }
    run(Command::new("rustup").args(["component", "add", component]))?;
    version()
        .ok_or_else(|| TaskError::new(format!("{component} is missing, also after adding it with rustup")))
}

fn node() -> Option<String> {
    first_line(Command::new("node").arg("--version"))
}

fn npm() -> Option<String> {
    first_line(Command::new("npm").arg("--version"))
}

fn node_is_recent() -> bool {
    node().as_deref().and_then(major_version).is_some_and(|major| major >= OLDEST_NODE)
}

/// Reads the 20 of `v20.20.2`.
fn major_version(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn apt_install(packages: &[&str]) -> Result<(), TaskError> {
    let is_root = first_line(Command::new("id").arg("--user")).is_some_and(|user| user == "0");
    let apt_get = || {
        if is_root {
            return Command::new("apt-get");
        }
        let mut command = Command::new("sudo");
        // Fail instead of waiting for a password in CI.
        command.args(["--non-interactive", "apt-get"]);
        command
    };
    let needed = |failure: TaskError| {
        TaskError::new(format!("{failure}\nInstall these by hand, then try again: {}", packages.join(", ")))
    };
    run(apt_get().arg("update")).map_err(needed)?;
    run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages)).map_err(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_read() {
        assert_eq!(major_version("v20.20.2"), Some(20));
        assert_eq!(major_version("v9"), Some(9));
        assert_eq!(major_version("20.1"), None);
        assert_eq!(major_version(""), None);
    }
}
