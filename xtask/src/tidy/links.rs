//! Checks that relative links in documents have a target.

use super::Finding;
use super::markdown::{self, MarkdownLine};
use super::tree::SourceTree;

pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in markdown::lines(text).into_iter().enumerate() {
            let MarkdownLine::Prose(line) = line else { continue };
            let problems =
                markdown::link_targets(line).into_iter().filter_map(|target| problem(tree, path, &target));
            findings.extend(problems.map(|message| Finding::error(path, index, message)));
        }
    }
    findings
}

fn problem(tree: &SourceTree, document: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, anchor) =
        link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
    let Some(path) = resolve(document, &target.replace("%20", " ")) else {
        return Some(format!("the link `{link}` leaves the repository"));
    };
    if !tree.contains(&path) {
        return Some(format!("the link `{link}` points at nothing: there is no `{path}`"));
    }
    let anchor = anchor.filter(|_| path.ends_with(".md"))?;
    let known = markdown::anchors(tree.text(&path)?);
    (!known.iter().any(|name| name == anchor))
        .then(|| format!("the link `{link}`: `{path}` has no heading `#{anchor}`"))
}

/// Resolves a link to a path from the root; `None` if it leaves the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(document.to_owned());
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
