//! Checks that translated documents have the outline and code blocks of their originals.

use super::Finding;
use super::markdown::{self, CodeBlock};
use super::tree::SourceTree;

/// `README.zh-CN.md` is a translation of `README.md`, and so on.
const TRANSLATED: &str = ".zh-CN.md";

pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if tree.text("README.md").is_some() && tree.text("README.zh-CN.md").is_none() {
        findings.push(Finding::error("README.md", 0, "there is no README.zh-CN.md beside it"));
    }
    for (path, translation) in tree.files() {
        let Some(stem) = path.strip_suffix(TRANSLATED) else { continue };
        match tree.text(&format!("{stem}.md")) {
            Some(original) => findings.extend(compare(path, original, translation)),
            None => findings.push(Finding::error(
                path,
                0,
                format!("there is no {stem}.md that this could translate"),
            )),
        }
    }
    findings
}

fn compare(path: &str, original: &str, translation: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let levels = |text| markdown::headings(text).into_iter().map(|(level, _)| level).collect::<Vec<_>>();
    let (theirs, ours) = (levels(original), levels(translation));
    if theirs != ours {
        let message = format!("the outline differs: headings of levels {ours:?}, in the original {theirs:?}");
        findings.push(Finding::error(path, 0, message));
    }
    let (theirs, ours) = (markdown::code_blocks(original), markdown::code_blocks(translation));
    if theirs.len() != ours.len() {
        let message = format!("{} code blocks, in the original {}", ours.len(), theirs.len());
        findings.push(Finding::error(path, 0, message));
    }
    for (theirs, ours) in theirs.iter().zip(&ours) {
        if theirs.language != ours.language || untranslatable(theirs) != untranslatable(ours) {
            let message = format!("the code block differs from line {} of the original", theirs.start + 1);
            findings.push(Finding::error(path, ours.start, message));
        }
    }
    findings
}

/// Returns the lines that must not be translated: all but shell comments.
fn untranslatable<'a>(block: &CodeBlock<'a>) -> Vec<&'a str> {
    let is_shell = matches!(block.language, "sh" | "bash" | "shell" | "console");
    let without_comment = |line: &'a str| match line.split_once(" #") {
        _ if !is_shell => line,
        _ if line.starts_with('#') => "",
        Some((command, _)) => command.trim_end(),
        None => line,
    };
    block.lines.iter().map(|line| without_comment(line)).filter(|line| !line.is_empty()).collect()
}
