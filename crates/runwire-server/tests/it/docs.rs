//! The documentation of errors and limits matches the code.
//!
//! `RUNWIRE_WRITE_DOCS=1 cargo test -p runwire-server --test it docs` writes the tables of limits anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runwire_model::ErrorCode;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("docs/errors/{name}: {error}"))
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| format!("{code}.md")).collect();
    let pages: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(pages, codes);
}

#[test]
fn a_page_says_what_the_server_says() {
    for code in ErrorCode::ALL {
        let page = read(&format!("{code}.md"));
        assert!(page.starts_with(&format!("# `{code}`\n")), "{code}: heading");
        for part in ["## Where you meet it", "## What to do", "## Example"] {
            assert!(page.contains(part), "{code}: {part}");
        }
        let example = page.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```"));
        let example: serde_json::Value = serde_json::from_str(example.unwrap().0).unwrap();
        for (member, expected) in [
            ("type", code.page().into()),
            ("title", code.title().into()),
            ("status", code.status().into()),
            ("code", code.as_str().into()),
            ("hint", code.hint().into()),
        ] as [(&str, serde_json::Value); 5]
        {
            assert_eq!(example[member], expected, "{code}: {member}");
        }
        assert!(example["detail"].is_string());
    }
}

#[test]
fn the_index_lists_every_code_with_its_status() {
    let index = read("README.md");
    for code in ErrorCode::ALL {
        let row = format!("| [`{code}`]({code}.md) | {} | {} |", code.status(), code.title());
        assert!(index.contains(&row), "docs/errors/README.md: {row}");
    }
}

/// Writes the constants of a `limits.rs` as a table: its names, values and doc comments.
fn table_of(source: &str) -> String {
    let mut table = "| limit | value | of what |\n|---|---|---|\n".to_owned();
    let mut doc = String::new();
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("/// ") {
            doc = format!("{doc} {text}");
        } else if let Some((name, rest)) =
            line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "))
        {
            let value = rest.split_once(" = ").map_or("", |(_, value)| value.trim_end_matches(';'));
            table.push_str(&format!(
                "| `{name}` | {} | {} |\n",
                shown(value),
                std::mem::take(&mut doc).trim()
            ));
        }
    }
    table
}

/// Shows a constant as people write it.
fn shown(value: &str) -> String {
    let within =
        |name: &str| value.strip_prefix(name)?.strip_suffix(')').map(|value| value.replace('_', " "));
    if let Some(seconds) = within("Duration::from_secs(") {
        return format!("{seconds} s");
    }
    if let Some(millis) = within("Duration::from_millis(") {
        return format!("{millis} ms");
    }
    if let Some(micros) = within("Duration::from_micros(") {
        return format!("{micros} µs");
    }
    match value.split_once(" << ") {
        Some((count, "10")) => format!("{count} KiB"),
        Some((count, "20")) => format!("{count} MiB"),
        _ if value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => value.replace('_', " "),
        _ => format!("`{value}`"),
    }
}

#[test]
fn the_limits_of_every_crate_are_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/limits.md");
    let found = fs::read_to_string(&page).unwrap();
    let mut wanted = found.clone();
    for name in ["check", "producer", "log", "agents", "server"] {
        let source = fs::read_to_string(root.join(format!("crates/runwire-{name}/src/limits.rs"))).unwrap();
        let (begin, end) = (format!("<!-- {name}-limits:begin -->\n"), format!("<!-- {name}-limits:end -->"));
        let (head, rest) = wanted.split_once(&begin).unwrap_or_else(|| panic!("there is no {begin}"));
        let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("there is no {end}"));
        wanted = format!("{head}{begin}{}{end}{tail}", table_of(&source));
    }
    if found != wanted && std::env::var_os("RUNWIRE_WRITE_DOCS").is_some() {
        fs::write(&page, &wanted).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "docs/limits.md is not what the limits.rs say; RUNWIRE_WRITE_DOCS=1 writes it anew"
    );
}
