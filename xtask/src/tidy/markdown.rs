//! A minimal Markdown parser: fenced code, `#` headings, links.

/// A line of a document, by its context.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MarkdownLine<'a> {
    Prose(&'a str),
    Code(&'a str),
    /// A line that opens or closes a code block, with its language.
    Fence(&'a str),
}

/// Classifies each line as prose or fenced code.
pub(super) fn lines(text: &str) -> Vec<MarkdownLine<'_>> {
    let mut open: Option<&str> = None;
    text.lines()
        .map(|line| {
            let trimmed = line.trim();
            let ticks = trimmed.trim_start_matches(if trimmed.starts_with('~') { '~' } else { '`' });
            let fence = &trimmed[..trimmed.len() - ticks.len()];
            match open {
                Some(opening) if fence.starts_with(opening) && ticks.is_empty() => {
                    open = None;
                    MarkdownLine::Fence("")
                }
                Some(_) => MarkdownLine::Code(line),
                None if fence.len() >= 3 && !ticks.contains('`') => {
                    open = Some(fence);
                    MarkdownLine::Fence(ticks.trim())
                }
                None => MarkdownLine::Prose(line),
            }
        })
        .collect()
}

/// A fenced block: its language, the line it starts at (from 0), and its lines.
pub(super) struct CodeBlock<'a> {
    pub(super) language: &'a str,
    pub(super) start: usize,
    pub(super) lines: Vec<&'a str>,
}

pub(super) fn code_blocks(text: &str) -> Vec<CodeBlock<'_>> {
    let mut blocks: Vec<CodeBlock<'_>> = Vec::new();
    let mut inside = false;
    for (start, line) in lines(text).into_iter().enumerate() {
        match line {
            MarkdownLine::Fence(language) => {
                inside = !inside;
                if inside {
                    blocks.push(CodeBlock { language, start, lines: Vec::new() });
                }
            }
            MarkdownLine::Code(code) => {
                blocks.last_mut().into_iter().for_each(|block| block.lines.push(code))
            }
            MarkdownLine::Prose(_) => {}
        }
    }
    blocks
}

/// Returns level and title of each heading that is written with `#`.
pub(super) fn headings(text: &str) -> Vec<(usize, &str)> {
    lines(text)
        .into_iter()
        .filter_map(|line| {
            let MarkdownLine::Prose(line) = line else { return None };
            let title = line.trim_start_matches('#');
            let level = line.len() - title.len();
            ((1..=6).contains(&level) && title.starts_with(' ')).then(|| (level, title.trim()))
        })
        .collect()
}

/// Returns the anchors of all headings, as GitHub derives them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, title) in headings(text) {
        let slug = slug(title);
        let repeated = (1..).map(|count| format!("{slug}-{count}"));
        let name = std::iter::once(slug.clone()).chain(repeated).find(|name| !anchors.contains(name));
        anchors.extend(name);
    }
    for line in text.lines() {
        anchors
            .extend(["id=\"", "name=\""].iter().flat_map(|name| quoted_after(line, name)).map(str::to_owned));
    }
    anchors
}

fn slug(title: &str) -> String {
    let mut words = String::new();
    let mut rest = title;
    // Only the text of a link counts.
    while let Some((before, after)) = rest.split_once("](") {
        words.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    words.push_str(rest);
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the targets of the links and images in one line of prose.
pub(super) fn link_targets(line: &str) -> Vec<String> {
    let line = without_code_spans(line);
    let inline =
        line.match_indices("](").filter_map(|(at, opening)| inline_target(&line[at + opening.len()..]));
    let definition = line.trim_start().strip_prefix('[').filter(|rest| !rest.starts_with('^'));
    let definition = definition.and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    let html = ["href=\"", "src=\""].into_iter().flat_map(|name| quoted_after(&line, name));
    inline.chain(definition).chain(html).filter_map(without_title).map(str::to_owned).collect()
}

/// Returns the text up to the matching closing parenthesis.
fn inline_target(rest: &str) -> Option<&str> {
    let mut depth = 1;
    let end = rest.find(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(&rest[..end])
}

fn without_title(target: &str) -> Option<&str> {
    match target.trim().strip_prefix('<') {
        Some(bracketed) => bracketed.split('>').next(),
        None => target.split_whitespace().next(),
    }
}

fn quoted_after<'a>(line: &'a str, opening: &str) -> Vec<&'a str> {
    line.split(opening).skip(1).filter_map(|rest| rest.split_once('"')).map(|(value, _)| value).collect()
}

/// Removes `code` spans, whose brackets are not links.
fn without_code_spans(line: &str) -> String {
    let mut prose = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let code = rest[start..].trim_start_matches('`');
        let ticks = &rest[start..rest.len() - code.len()];
        prose.push_str(&rest[..start]);
        prose.push(' ');
        rest = code.split_once(ticks).map_or(code, |(_, after)| after);
    }
    prose.push_str(rest);
    prose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_prose_are_distinguished() {
        let text = "a\n````md\n```\n# b\n````\nc ``` d\n~~~\n```\n~~~\n";
        let expected = [
            MarkdownLine::Prose("a"),
            MarkdownLine::Fence("md"),
            MarkdownLine::Code("```"),
            MarkdownLine::Code("# b"),
            MarkdownLine::Fence(""),
            MarkdownLine::Prose("c ``` d"),
            MarkdownLine::Fence(""),
            MarkdownLine::Code("```"),
            MarkdownLine::Fence(""),
        ];
        assert_eq!(lines(text), expected);
        assert_eq!(headings(text), []);
        let blocks = code_blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].language, blocks[0].start, blocks[0].lines.len()), ("md", 1, 2));
    }

    #[test]
    fn anchors_are_named_as_github_names_them() {
        let text = "# `ag-ui`: What's native?\n## A [link](b.md) here\n## Same\n## Same\n## 方言（表）\n<a id=\"own\"></a>\n";
        let expected = ["ag-ui-whats-native", "a-link-here", "same", "same-1", "方言表", "own"];
        assert_eq!(anchors(text), expected);
    }

    #[test]
    fn links_are_found_in_all_their_forms() {
        let found = |line| link_targets(line).join(" ");
        assert_eq!(
            found("see [`a`](a.md), ![b](b_(1).png \"title\") and [c](<c d.md>)"),
            "a.md b_(1).png c d.md"
        );
        assert_eq!(found("[name]: there.md#x 'title'"), "there.md#x");
        assert_eq!(found("<img src=\"a.svg\"> <a href=\"b.md\">"), "b.md a.svg");
        assert_eq!(found("`[a](b.md)` and ``x ` [c](d.md)`` and [^1]: e.md"), "");
    }
}
