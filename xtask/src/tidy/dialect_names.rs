//! A dialect is named in its own folder, in its façade, in tests and in examples, and nowhere else.
//!
//! What the rest of the workspace needs to know of a dialect, it asks the registry for.

use super::retired_words::{has_parts, parts};
use super::{Finding, SourceTree};

/// The list of dialects, in the folder with a folder for each of them.
const REGISTRY: &str = "crates/runwire-model/src/dialect/registry.rs";
const FOLDERS: &str = "crates/runwire-model/src/dialect/";

/// The model's own dialect, and the plain text of an answer: every part of the workspace may speak them.
const OWN_DIALECTS: [&str; 2] = ["Runwire", "Text"];

/// Where code is that must not name dialects.
const PRODUCT: [&str; 5] = ["bench/src/", "crates/", "console/src/", "sdk/typescript/src/", "testing/"];

/// Parts of paths of tests, of the stores' conformance suite and of façades.
const EXEMPT: [&str; 4] = ["/tests/", "/tests.rs", "/conformance/", "/facade/"];

/// Files that name a dialect all the same, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("bench/src/log.rs", "its reports name cases after the dialect that they write"),
    ("bench/src/wire/frame.rs", "the frames that benchmarks write, and the dialect that they read"),
    ("bench/src/wire/sdk.rs", "measures the writer of the Rust SDK"),
    ("crates/runwire-client/examples/", "examples"),
    ("crates/runwire-client/src/lib.rs", "exports the writer of `write/`"),
    ("crates/runwire-client/src/write/mod.rs", "exports the writer, which is named after its document"),
    ("crates/runwire-client/src/write/engine.rs", "the writer of StreamingEngine's document"),
    ("crates/runwire-client/src/write/builder.rs", "its builder"),
    ("crates/runwire-client/src/write/emit_document.rs", "its methods, which the document names"),
    ("crates/runwire-client/src/write/emit_canonical.rs", "its methods for other events"),
    ("crates/runwire-client/src/write/emit_thoughts.rs", "its methods for trees and graphs of thoughts"),
    ("crates/runwire-client/src/write/signals.rs", "its signals"),
    ("crates/runwire-server/src/openapi/", "parameters and bodies of the façades"),
    ("crates/runwire-server/src/routes.rs", "rows of the façades"),
    ("crates/runwire-server/src/read/raw_http.rs", "calls a façade"),
    ("crates/runwire-server/src/ws/mod.rs", "calls a façade"),
    ("crates/runwire/src/arguments.rs", "examples in help texts"),
    ("crates/runwire/src/arguments/client.rs", "examples in help texts"),
    ("crates/runwire/src/arguments/exec.rs", "an example in a help text"),
    ("crates/runwire/src/arguments/server.rs", "an example in a help text"),
    ("crates/runwire/src/arguments/watch.rs", "examples in help texts"),
    ("crates/runwire/src/serve/mod.rs", "an example for the first minute"),
    ("sdk/typescript/src/fold/", "folds frames of StreamingEngine's front ends as they come"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let dialects: Vec<Vec<String>> =
        tree.text(REGISTRY).unwrap_or_default().lines().filter_map(variant).map(parts).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, text)| is_checked(path, text)) {
        for (index, line) in product_lines(text) {
            let line = line.replace('-', "_");
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').map(parts);
            if let Some(word) = words.find(|word| dialects.iter().any(|dialect| has_parts(word, dialect))) {
                let message = format!(
                    "`{}` names a dialect outside its folder: make what is particular to it a field of its SPEC",
                    word.join("_")
                );
                findings.push(Finding::error(path, index, message));
            }
        }
    }
    findings
}

/// Reads the variant of a line of the registry, such as `Agio => agio,`.
fn variant(line: &str) -> Option<&str> {
    let (variant, module) = line.trim().split_once(" => ")?;
    let is_line = module.strip_suffix(',').is_some_and(|module| module.chars().all(is_of_module));
    let is_name = variant.chars().all(char::is_alphanumeric);
    (is_line && is_name && !OWN_DIALECTS.contains(&variant)).then_some(variant)
}

fn is_of_module(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter == '_'
}

fn is_checked(path: &str, text: &str) -> bool {
    let is_code = [".rs", ".ts", ".tsx"].iter().any(|extension| path.ends_with(extension));
    let in_folder = path.strip_prefix(FOLDERS).is_some_and(|rest| rest.contains('/'));
    let is_allowed = ALLOWED.iter().any(|(allowed, _)| path.starts_with(allowed));
    let is_generated = text.lines().next().is_some_and(|line| line.contains("Do not edit"));
    is_code
        && PRODUCT.iter().any(|product| path.starts_with(product))
        && !EXEMPT.iter().any(|exempt| path.contains(exempt))
        && !(in_folder || is_allowed || is_generated || path == REGISTRY)
}

/// Lists the lines of a file without comments and without the tests at its end.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().take_while(|(_, line)| *line != "#[cfg(test)]");
    lines.filter(|(_, line)| !["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark)))
}
