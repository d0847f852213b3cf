//! A public type name means one thing in the workspace.

use std::collections::BTreeMap;

use super::{Finding, SourceTree};

/// Folder with a file or folder per dialect; each may have its own [`PER_DIALECT`] types.
const DIALECTS: &str = "crates/runwire-model/src/dialect/";
const PER_DIALECT: [&str; 2] = ["Decoder", "Encoder"];

/// The SDK, whose types may mirror the server's JSON under the same name.
const CLIENT: &str = "crates/runwire-client/";
const CLIENT_MIRRORS: [&str; 15] = [
    "Answer",
    "Cursor",
    "Imported",
    "Interaction",
    "InteractionInfo",
    "InteractionPage",
    "LatestRun",
    "NewRun",
    "NewThread",
    "Problem",
    "RunError",
    "RunInfo",
    "ThreadInfo",
    "Warning",
    "Warnings",
];

const TYPE_KEYWORDS: [&str; 5] = ["enum", "struct", "trait", "type", "union"];

/// Finds every public type whose name another file has defined before, in the order of paths.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut first: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_crate_source(path)) {
        for (index, line) in text.lines().enumerate() {
            let Some(name) = public_type(line).filter(|name| !is_exempt(path, name)) else { continue };
            let (first_path, first_index) = *first.entry(name).or_insert((path, index));
            // Within one file they are alternatives for different platforms or features.
            if first_path != path {
                let message = format!(
                    "the type name `{name}` is taken by {first_path}:{}: rename the less general one",
                    first_index + 1
                );
                findings.push(Finding::error(path, index, message));
            }
        }
    }
    findings
}

fn is_exempt(path: &str, name: &str) -> bool {
    path.starts_with(DIALECTS) && PER_DIALECT.contains(&name)
        || path.starts_with(CLIENT) && CLIENT_MIRRORS.contains(&name)
}

/// Returns true for the sources of a crate of the workspace, without integration tests and examples.
fn is_crate_source(path: &str) -> bool {
    let folders: Vec<&str> = path.split('/').collect();
    let in_crate =
        matches!(folders[..], ["crates" | "testing", _, "src", ..] | ["bench" | "xtask", "src", ..]);
    in_crate && path.ends_with(".rs")
}

/// Returns the name of the type that a line defines with any `pub`.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')')?.1,
        None => rest,
    };
    let (keyword, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (TYPE_KEYWORDS.contains(&keyword) && end > 0).then_some(&rest[..end])
}
