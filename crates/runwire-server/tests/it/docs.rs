//! The pages about errors, which may not drift from the table of codes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runwire_server::problem::CODES;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("docs/errors/{name}: {error}"))
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<_> = CODES.iter().map(|code| format!("{}.md", code.code)).collect();
    let pages: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(pages, codes);
}

#[test]
fn a_page_says_what_the_server_says() {
    for code in CODES {
        let page = read(&format!("{}.md", code.code));
        assert!(page.starts_with(&format!("# `{}`\n", code.code)), "{}: heading", code.code);
        for part in ["## Where you meet it", "## What to do", "## Example"] {
            assert!(page.contains(part), "{}: {part}", code.code);
        }
        let example = page.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```"));
        let example: serde_json::Value = serde_json::from_str(example.unwrap().0).unwrap();
        for (member, expected) in [
            ("type", code.page().into()),
            ("title", code.title.into()),
            ("status", code.status.into()),
            ("code", code.code.into()),
            ("hint", code.hint.into()),
        ] as [(&str, serde_json::Value); 5]
        {
            assert_eq!(example[member], expected, "{}: {member}", code.code);
        }
        assert!(example["detail"].is_string());
    }
}

#[test]
fn the_index_lists_every_code_with_its_status() {
    let index = read("README.md");
    for code in CODES {
        let row = format!("| [`{0}`]({0}.md) | {1} | {2} |", code.code, code.status, code.title);
        assert!(index.contains(&row), "docs/errors/README.md: {row}");
    }
}
