//! Words that were replaced by words of the trade stay out of identifiers and file names.

use super::{Finding, SourceTree};

/// A retired word, and the word to use instead.
struct Retired {
    /// In lower case with `_` between its parts it is found in every identifier; with a capital, only in names of types.
    /// Both are found in file names.
    word: &'static str,
    instead: &'static str,
}

const fn retired(word: &'static str, instead: &'static str) -> Retired {
    Retired { word, instead }
}

const RETIRED: &[Retired] = &[
    retired("Arrivals", "subscriber"),
    retired("Blind", "NoVisitor"),
    retired("Desk", "FollowedThreads, or ConnectionSlot"),
    retired("Earlier", "History"),
    retired("Errand", "Lookup"),
    retired("Eyes", "HeadPoller"),
    retired("Heart", "heartbeat task"),
    retired("Keeper", "what it does, such as supervisor"),
    retired("Lanes", "WriterPool"),
    retired("Misfit", "what is invalid, such as InvalidValue"),
    retired("Moved", "transfer::Item"),
    retired("Parcel", "EncodedBatch"),
    retired("Patience", "RetryOptions"),
    retired("Place", "what it is, such as EventPosition"),
    retired("Said", "what it is, such as OutputItem"),
    retired("Sight", "StoreProbe"),
    retired("Sighting", "StoreProbe"),
    retired("Slip", "typo"),
    retired("Track", "ShownState"),
    retired("Turn", "EncodeContext"),
    retired("Unfit", "ReplayError"),
    retired("Unsealed", "pending commit"),
    retired("Woven", "what a RecordBuilder has added"),
    retired("acts", "a file per verb: create, cancel, heartbeat, sweep"),
    retired("bury", "mark deleted"),
    retired("doubt", "outcome unknown"),
    retired("drop_slowly", "drain and close"),
    retired("ears", "subscriber"),
    retired("is_anothers", "is_not_assistant"),
    retired("journal", "pending commits"),
    retired("lean", "raw_http"),
    retired("pass_on_to", "skip_to"),
    retired("peoples", "HUMAN_DECISIONS"),
    retired("put_off", "deferred"),
    retired("stand_at", "set_position"),
    retired("take_up", "claim"),
    retired("wary", "pessimistic"),
    retired("weave", "resolve, or add to a RecordBuilder"),
];

/// Words that tests may still use.
const RETIRED_IN_PRODUCT: &[Retired] = &[
    retired("noticed", "what it signals, such as outbox_changed"),
    retired("patience", "give_up_after, or a timeout"),
    retired("told", "what it is, such as shown, sent or delivered"),
];

/// Parts of paths of tests, and of the stores' conformance suite.
const TESTS: [&str; 3] = ["/tests/", "/tests.rs", "/conformance/"];

/// Retired in prose too; written in two parts, so that this file does not have it.
const RETIRED_PROSE: &[(&str, &str)] = &[(concat!("how-", "manieth"), "ordinal")];

pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let with_parts = |word: &'static Retired| (word, parts(word.word));
    let everywhere: Vec<(&Retired, Vec<String>)> = RETIRED.iter().map(with_parts).collect();
    let in_product: Vec<(&Retired, Vec<String>)> = RETIRED_IN_PRODUCT.iter().map(with_parts).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_code(path)) {
        let file_words: Vec<String> =
            path.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
        for (Retired { word, instead }, _) in
            everywhere.iter().filter(|(_, parts)| has_parts(&file_words, parts))
        {
            let message = format!("the file name has the retired word `{word}`: call it {instead}");
            findings.push(Finding::error(path, 0, message));
        }
        let tests_at = first_test_line(path, text);
        for (index, identifier) in identifiers(text, path.ends_with(".rs")) {
            let (is_type, parts) = (is_type_name(identifier), parts(identifier));
            let of_product = if index < tests_at { in_product.as_slice() } else { &[] };
            let found = everywhere.iter().chain(of_product).find(|(retired, wanted)| {
                (is_type || !is_type_name(retired.word)) && has_parts(&parts, wanted)
            });
            if let Some((Retired { word, instead }, _)) = found {
                let message = format!("`{identifier}` has the retired word `{word}`: call it {instead}");
                findings.push(Finding::error(path, index, message));
            }
        }
        for (index, line) in text.lines().enumerate() {
            for (word, instead) in RETIRED_PROSE.iter().filter(|(word, _)| line.contains(word)) {
                let message = format!("`{word}` is a retired word: write `{instead}`");
                findings.push(Finding::error(path, index, message));
            }
        }
    }
    findings
}

/// Returns the index of the line where the tests of a file begin: that of its module, or zero if it has nothing else.
fn first_test_line(path: &str, text: &str) -> usize {
    let is_product = path.starts_with("crates/") || path.starts_with("console/") || path.starts_with("sdk/");
    if !is_product || TESTS.iter().any(|part| path.contains(part)) {
        return 0;
    }
    let mut pairs = text.lines().zip(text.lines().skip(1));
    let begins = |(line, next): (&str, &str)| {
        line == "#[cfg(test)]" && next.starts_with("mod ") && !next.ends_with(';')
    };
    pairs.position(begins).unwrap_or(usize::MAX)
}

fn is_type_name(identifier: &str) -> bool {
    identifier.starts_with(char::is_uppercase) && identifier.contains(char::is_lowercase)
}

/// Returns true for Rust and TypeScript that people write.
fn is_code(path: &str) -> bool {
    let is_built = path.starts_with("console/dist/");
    !is_built && [".rs", ".ts", ".tsx"].iter().any(|extension| path.ends_with(extension))
}

/// Splits an identifier at `_` and at capitals, into lower case: `putOff`, `PutOff` and `PUT_OFF` are the same.
pub(super) fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for letter in identifier.chars() {
        if letter == '_' || (letter.is_uppercase() && after_small) {
            parts.push(String::new());
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
        if let Some(part) = parts.last_mut().filter(|_| letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

pub(super) fn has_parts(parts: &[String], wanted: &[String]) -> bool {
    parts.windows(wanted.len()).any(|window| window == wanted)
}

/// Lists the identifiers of a source with the index of their line, without those in strings and comments.
fn identifiers(text: &str, is_rust: bool) -> Vec<(usize, &str)> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 0);
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' if is_rust => character(rest),
            '"' if is_rust => quoted(rest, letter),
            '`' => quoted(rest, letter),
            // A string of TypeScript ends on its line; a text between tags may have a lone apostrophe.
            '"' | '\'' => quoted(rest.lines().next().unwrap_or(rest), letter),
            '_' | 'a'..='z' | 'A'..='Z' => match raw_string(rest).filter(|_| is_rust) {
                Some(length) => length,
                None => {
                    let length = word_length(rest);
                    found.push((line, &rest[..length]));
                    length
                }
            },
            // A number may have a suffix: `1u64`.
            '0'..='9' => word_length(rest),
            _ => letter.len_utf8(),
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Measures a string that begins and ends with a quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Measures a character of Rust, or only the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), _) => quoted(text, '\''),
        (_, Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Measures a raw string of Rust: `r"…"`, `r#"…"#`, `br#"…"#`.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = if text.starts_with("br") { 2 } else { 1 };
    let rest = text.strip_prefix("br").or(text.strip_prefix('r'))?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let start = prefix + hashes + 1;
    Some(text[start..].find(&closing).map_or(text.len(), |end| start + end + closing.len()))
}
