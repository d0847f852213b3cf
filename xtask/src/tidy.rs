//! `cargo xtask tidy`: checks rules of the repository that no compiler checks.
//!
//! Each rule is a function from the tree to its findings, and has a canary in
//! the tests: a sample on which it must fail.

mod dialect_names;
mod links;
mod markdown;
mod retired_words;
mod translation;
mod tree;
mod type_names;

use std::fmt;
use std::path::Path;

use crate::command::TaskError;
use tree::SourceTree;

/// Longer Rust files get a warning.
const LONG_FILE_LINES: usize = 700;

/// Root folders whose paths are specific to one machine.
const MACHINE_FOLDERS: [&str; 3] = ["home", "root", "work"];

/// Macros that must not be committed.
const UNFINISHED_MACROS: [&str; 2] = ["dbg", "todo"];

/// Verbs that do not say what a function does.
const VAGUE_VERBS: [&str; 2] = ["Gives", "Tells"];

/// The only source that a Cargo.lock may name.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks the tree in `root`: prints every finding, and fails if one is an error.
pub(crate) fn run(root: &Path) -> Result<(), TaskError> {
    let tree = SourceTree::read(root)?;
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(&tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    println!("{} files, {} rules, {errors} errors", tree.len(), RULES.len());
    if errors == 0 {
        Ok(())
    } else {
        Err(TaskError::new(format!("the tree breaks its own rules in {errors} places")))
    }
}

struct Rule {
    /// Its name in the tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the tests look a rule up"))]
    name: &'static str,
    check: fn(&SourceTree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "long files", check: long_files },
    Rule { name: "unfinished code", check: unfinished_code },
    Rule { name: "machine paths", check: machine_paths },
    Rule { name: "lock files", check: lock_files },
    Rule { name: "crate lints", check: crate_lints },
    Rule { name: "trailing white space", check: trailing_white_space },
    Rule { name: "links", check: links::check },
    Rule { name: "translations", check: translation::check },
    Rule { name: "type names", check: type_names::check },
    Rule { name: "doc comments", check: doc_comments },
    Rule { name: "retired words", check: retired_words::check },
    Rule { name: "dialect names", check: dialect_names::check },
];

#[derive(Debug, PartialEq, Eq)]
enum Severity {
    Warning,
    Error,
}

/// A violation of a rule.
#[derive(Debug)]
struct Finding {
    severity: Severity,
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    /// `index` counts lines from 0, as iterators do.
    fn error(path: &str, index: usize, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, path: path.to_owned(), line: index + 1, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(formatter, "{severity}: {}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks each line of the files that `wanted` selects; `problem` returns a message for a bad line.
fn check_lines(
    tree: &SourceTree,
    wanted: impl Fn(&str) -> bool,
    problem: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| wanted(path)) {
        // Not `lines()`: a carriage return counts as trailing white space.
        for (index, line) in text.split('\n').enumerate() {
            findings.extend(problem(line).map(|message| Finding::error(path, index, message)));
        }
    }
    findings
}

/// Warns of long Rust files, except generated ones.
fn long_files(tree: &SourceTree) -> Vec<Finding> {
    tree.files()
        .filter(|(path, text)| {
            path.ends_with(".rs") && !text.lines().take(5).any(|line| line.contains("@generated"))
        })
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LONG_FILE_LINES)
        .map(|(path, lines)| Finding {
            severity: Severity::Warning,
            path: path.to_owned(),
            line: lines,
            message: format!("{lines} lines: more than {LONG_FILE_LINES} is hard to hold in mind, split it"),
        })
        .collect()
}

fn unfinished_code(tree: &SourceTree) -> Vec<Finding> {
    check_lines(
        tree,
        |path| path.ends_with(".rs"),
        |line| {
            UNFINISHED_MACROS.iter().find_map(|name| {
                let call = format!("{name}!");
                let is_call = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                let found = line.match_indices(&call).any(|(at, _)| is_call(at));
                found.then(|| format!("`{call}` does not belong in the repository"))
            })
        },
    )
}

fn machine_paths(tree: &SourceTree) -> Vec<Finding> {
    // Recorded runs have paths of the machine that recorded them.
    let is_recorded =
        |path: &str| path.ends_with(".json") && (path.starts_with("vectors/") || path.contains("/test/"));
    check_lines(
        tree,
        |path| is_source(path) && !is_recorded(path),
        |line| {
            MACHINE_FOLDERS.iter().find_map(|folder| {
                let prefix = format!("/{folder}/");
                // `docs/home/` and `example.org/home/` are not absolute paths.
                let is_absolute = |at: usize| {
                    !line[..at]
                        .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '>'))
                };
                let found = line.match_indices(&prefix).any(|(at, _)| is_absolute(at));
                found.then(|| {
                    format!("`{prefix}…` is a path of one machine: make it relative to the repository")
                })
            })
        },
    )
}

/// Lock files must not name a registry, to work with any mirror.
fn lock_files(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = check_lines(
        tree,
        |path| has_name(path, "Cargo.lock"),
        |line| {
            let source = line.strip_prefix("source = ")?.trim_matches('"');
            (source != CRATES_IO).then(|| format!("the source `{source}` is not crates.io"))
        },
    );
    findings.extend(check_lines(
        tree,
        |path| has_name(path, "package-lock.json") || has_name(path, "npm-shrinkwrap.json"),
        |line| {
            let message = "`resolved` names the server it was downloaded from: npm install --omit-lockfile-registry-resolved";
            line.trim_start().starts_with("\"resolved\"").then(|| message.to_owned())
        },
    ));
    findings
}

/// Every crate inherits the workspace's lints, unless it is a workspace itself.
fn crate_lints(tree: &SourceTree) -> Vec<Finding> {
    tree.files()
        .filter(|(path, text)| {
            let has_table = |name: &str| text.lines().any(|line| line.trim_end() == name);
            has_name(path, "Cargo.toml") && has_table("[package]") && !has_table("[workspace]")
        })
        .filter(|(_, text)| {
            let mut lines =
                text.lines().map(|line| line.replace(' ', "")).skip_while(|line| line != "[lints]").skip(1);
            !lines.by_ref().take_while(|line| !line.starts_with('[')).any(|line| line == "workspace=true")
        })
        .map(|(path, _)| Finding::error(path, 0, "the crate lacks `[lints]` with `workspace = true`"))
        .collect()
}

fn trailing_white_space(tree: &SourceTree) -> Vec<Finding> {
    check_lines(tree, is_source, |line| {
        line.ends_with(char::is_whitespace).then(|| "white space at the end of the line".to_owned())
    })
}

/// Doc comments open with what the thing does; "Tells" and "Gives" are "Returns", "Prints" or "Reports".
fn doc_comments(tree: &SourceTree) -> Vec<Finding> {
    check_lines(
        tree,
        |path| [".rs", ".ts", ".tsx"].iter().any(|extension| path.ends_with(extension)),
        |line| {
            let comment = line.trim_start();
            let text = ["/// ", "//! ", "/** ", "* "].iter().find_map(|mark| comment.strip_prefix(mark))?;
            let verb = VAGUE_VERBS.iter().find(|verb| text.split(' ').next() == Some(**verb))?;
            Some(format!("the doc comment opens with `{verb}`: say `Returns`, or what it does"))
        },
    )
}

/// Returns true for files that people write, not programs record.
fn is_source(path: &str) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "css", "html", "js", "json", "lock", "md", "mjs", "py", "rs", "sh", "sql", "toml", "ts", "tsx",
        "yaml", "yml",
    ];
    match path.rsplit('/').next().unwrap_or(path).rsplit_once('.') {
        Some((_, extension)) => EXTENSIONS.contains(&extension),
        None => path.starts_with(".ci/"),
    }
}

fn has_name(path: &str, name: &str) -> bool {
    path.rsplit('/').next() == Some(name)
}

#[cfg(test)]
mod tests;
