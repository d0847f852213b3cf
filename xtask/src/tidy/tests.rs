//! Canaries: every rule fails on a bad sample, and passes a good one.

use super::*;

fn findings(rule: &str, tree: &SourceTree) -> Vec<String> {
    let rule = RULES.iter().find(|known| known.name == rule).unwrap();
    (rule.check)(tree).iter().map(Finding::to_string).collect()
}

#[track_caller]
fn assert_found(rule: &str, files: &[(&str, &str)], expected: &str) {
    let found = findings(rule, &tree(files));
    assert!(
        found.len() == 1 && found[0].contains(expected),
        "wanted one finding `{expected}`, got {found:?}"
    );
}

#[track_caller]
fn assert_fine(rule: &str, files: &[(&str, &str)]) {
    assert_eq!(findings(rule, &tree(files)), [""; 0]);
}

fn tree(files: &[(&str, &str)]) -> SourceTree {
    files.iter().copied().collect()
}

/// One sample for each rule that it must refuse.
fn canaries() -> Vec<(&'static str, SourceTree)> {
    let one = |path: &str, text: &str| tree(&[(path, text)]);
    vec![
        ("long files", one("src/lib.rs", &"\n".repeat(LONG_FILE_LINES + 1))),
        ("unfinished code", one("src/lib.rs", &format!("fn later() {{ {}!() }}", "todo"))),
        ("machine paths", one("README.md", &format!("See /{}/me/notes.", "home"))),
        ("lock files", one("web/package-lock.json", "  \"resolved\": \"https://registry.example/a.tgz\",")),
        ("crate lints", one("crates/a/Cargo.toml", "[package]\nname = \"a\"\n")),
        ("trailing white space", one("src/lib.rs", "let a = 1; \n")),
        ("links", one("README.md", "[there](nowhere.md)")),
        ("translations", tree(&[("README.md", "# A\n## B\n"), ("README.zh-CN.md", "# A\n")])),
        (
            "type names",
            tree(&[("bench/src/a.rs", "pub struct Load;"), ("xtask/src/b.rs", "pub enum Load {}")]),
        ),
        ("doc comments", one("src/lib.rs", "/// Tells the time.\n")),
        ("retired words", one("src/lib.rs", "struct Desk;")),
        (
            "dialect names",
            tree(&[REGISTRY, ("crates/a/src/lib.rs", "if dialect == Dialect::StreamingEngine {")]),
        ),
    ]
}

#[test]
fn every_rule_has_a_canary_that_fails() {
    let canaries = canaries();
    assert!(canaries.iter().map(|(rule, _)| *rule).eq(RULES.iter().map(|rule| rule.name)));
    for (rule, tree) in &canaries {
        assert!(!findings(rule, tree).is_empty(), "`{rule}` let its canary pass");
    }
}

#[test]
fn long_files_are_only_a_warning_and_generated_ones_are_left_alone() {
    let long = "\n".repeat(LONG_FILE_LINES + 1);
    assert_found("long files", &[("a.rs", &long)], "warning: a.rs:701: 701 lines");
    assert_fine("long files", &[("a.rs", &format!("// @generated\n{long}")), ("a.md", &long)]);
    assert_fine("long files", &[("a.rs", &"\n".repeat(LONG_FILE_LINES))]);
}

#[test]
fn unfinished_macros_are_found() {
    for name in UNFINISHED_MACROS {
        assert_found("unfinished code", &[("a.rs", &format!("\n    {name}!(x);"))], "error: a.rs:2");
        assert_fine("unfinished code", &[("a.rs", &format!("my_{name}!(x); {name}(x)"))]);
    }
}

#[test]
fn paths_of_one_machine_are_found_but_not_in_recorded_runs() {
    for folder in MACHINE_FOLDERS {
        for line in ["cd /F/x", "\"/F/x\"", "file:///F/x", "(/F/x)"] {
            let line = line.replace('F', folder);
            assert_found("machine paths", &[("docs/a.md", &line)], "path of one machine");
            assert_found("machine paths", &[(".ci/run", &line)], "path of one machine");
            assert_fine(
                "machine paths",
                &[("vectors/loom/a/message.json", &line), ("vectors/loom/a/input.ndjson", &line)],
            );
        }
        for line in ["https://example.org/F/x", "docs/F/x", "../F/x", "{root}/F/x", "/Fing/x"] {
            assert_fine("machine paths", &[("docs/a.md", &line.replace('F', folder))]);
        }
    }
}

#[test]
fn lock_files_name_no_server_but_crates_io() {
    let cargo_lock = |source: &str| format!("name = \"a\"\nsource = \"{source}\"\n");
    assert_fine("lock files", &[("Cargo.lock", &cargo_lock(CRATES_IO))]);
    for source in [
        "registry+https://mirror.example/index",
        "sparse+https://mirror.example/",
        "git+https://example.org/a",
    ] {
        assert_found("lock files", &[("fuzz/Cargo.lock", &cargo_lock(source))], "fuzz/Cargo.lock:2");
    }
    assert_fine(
        "lock files",
        &[("package-lock.json", "\"version\": \"1.0.0\", \"integrity\": \"sha512-x\"")],
    );
}

#[test]
fn crates_take_the_lints_of_the_workspace() {
    let broken = "[package]\nname = \"a\"\n[lints]\n[features]\nworkspace = true\n";
    assert_found("crate lints", &[("a/Cargo.toml", broken)], "a/Cargo.toml");
    assert_fine("crate lints", &[("a/Cargo.toml", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n")]);
    assert_fine(
        "crate lints",
        &[("Cargo.toml", "[workspace]\n"), ("fuzz/Cargo.toml", "[package]\n[workspace]\n")],
    );
}

#[test]
fn white_space_at_the_end_of_a_line_is_found() {
    for line in ["a ", "a\t", "a\r", "  "] {
        assert_found("trailing white space", &[("a.rs", &format!("x\n{line}\n"))], "a.rs:2");
    }
    assert_fine("trailing white space", &[("a.rs", "  x\n\ny\n"), ("vectors/a/input.ndjson", "x \r\n")]);
}

#[test]
fn links_must_point_at_files_folders_and_headings() {
    let linking = |link: &str| format!("# Top\n\nSee [it]({link}).\n");
    for link in [
        "#top",
        "b.md",
        "b.md#the-one",
        "../README.md",
        "../docs",
        "../src/",
        "/docs/b.md",
        "https://x.example/#y",
    ] {
        let text = linking(link);
        let files = [
            ("docs/a.md", text.as_str()),
            ("docs/b.md", "## The one\n"),
            ("README.md", ""),
            ("src/lib.rs", ""),
        ];
        assert_fine("links", &files);
    }
    for link in ["#bottom", "b.md#other", "c.md", "README.md", "../src/main.rs", "../../outside.md"] {
        let text = linking(link);
        let files = [
            ("docs/a.md", text.as_str()),
            ("docs/b.md", "## The one\n"),
            ("README.md", ""),
            ("src/lib.rs", ""),
        ];
        assert_found("links", &files, "docs/a.md:3");
    }
    assert_fine("links", &[("a.md", "```\n[no](link.md)\n```\n`[no](link.md)`\n")]);
}

#[test]
fn a_translation_keeps_outline_and_commands() {
    let original = "# Runwire\n```sh\n# start it\nrunwire dev # here\n```\n```json\n{}\n```\n";
    let compared = |translation| {
        findings("translations", &tree(&[("README.md", original), ("README.zh-CN.md", translation)]))
    };
    assert_eq!(compared("# 润线\n```sh\n# 启动\nrunwire dev # 这里\n```\n```json\n{}\n```\n"), [""; 0]);
    for (translation, expected) in [
        ("## 润线\n```sh\nrunwire dev\n```\n```json\n{}\n```\n", "outline"),
        (
            "# 润线\n```sh\nrunwire serve\n```\n```json\n{}\n```\n",
            "README.zh-CN.md:2: the code block differs",
        ),
        ("# 润线\n```sh\nrunwire dev\n```\n```json\n[]\n```\n", "README.zh-CN.md:5: the code block differs"),
        ("# 润线\n```sh\nrunwire dev\n```\n", "1 code blocks, in the original 2"),
    ] {
        let found = compared(translation);
        assert!(found.len() == 1 && found[0].contains(expected), "wanted `{expected}`, got {found:?}");
    }
    assert_found("translations", &[("README.md", "")], "there is no README.zh-CN.md");
    assert_found("translations", &[("docs/a.zh-CN.md", "")], "there is no docs/a.md");
}

#[test]
fn a_public_type_name_is_defined_in_one_file() {
    let client = "crates/runwire-client/src/a.rs";
    for (first, second) in [
        ("pub struct Load;", "    pub(crate) enum Load {"),
        ("pub(super) trait Load<T> {}", "pub type Load = u8;"),
        ("pub(in crate::a) union Load {", "pub struct Load<'a>(&'a str);"),
    ] {
        let files = [(client, first), ("testing/engines/src/b.rs", second)];
        let expected = format!("testing/engines/src/b.rs:1: the type name `Load` is taken by {client}:1");
        assert_found("type names", &files, &expected);
    }
    // Private types, alternatives in one file, tests, and other names.
    assert_fine("type names", &[("bench/src/a.rs", "pub struct Load;\npub struct Load;")]);
    for (path, second) in [
        ("bench/src/b.rs", "struct Load;"),
        ("bench/src/b.rs", "pub struct Loader;"),
        ("bench/src/b.rs", "pub fn type_of() {}\npub const STRUCT: u8 = 0;"),
        ("bench/tests/it/b.rs", "pub struct Load;"),
    ] {
        assert_fine("type names", &[("bench/src/a.rs", "pub struct Load;"), (path, second)]);
    }
}

#[test]
fn dialects_and_mirrors_of_the_server_may_share_type_names() {
    let dialect = |name: &str| format!("crates/runwire-model/src/dialect/{name}.rs");
    let (loom, agio) = (dialect("loom"), dialect("agio"));
    assert_fine("type names", &[(&loom, "pub struct Encoder;"), (&agio, "pub struct Encoder;")]);
    assert_found("type names", &[(&loom, "pub struct Form;"), (&agio, "pub struct Form;")], "`Form`");
    let mirror = ("crates/runwire-client/src/info.rs", "pub struct RunInfo;");
    let log = ("crates/runwire-log/src/info.rs", "pub struct RunInfo;");
    assert_fine("type names", &[mirror, log]);
    let server = ("crates/runwire-server/src/info.rs", "pub struct RunInfo;");
    assert_found("type names", &[mirror, log, server], "crates/runwire-server/src/info.rs:1");
}

#[test]
fn doc_comments_say_what_a_thing_does() {
    for line in ["/// Tells the time.", "    //! Gives one.", "/** Tells it. */", " * Gives it."] {
        assert_found("doc comments", &[("a.rs", line)], "a.rs:1");
        assert_found("doc comments", &[("console/src/a.tsx", line)], "a.tsx:1");
        assert_fine("doc comments", &[("a.md", line)]);
    }
    for line in
        ["// Tells the time.", "/// Returns what it tells.", "/// Tellers count.", "let a = b * Gives;"]
    {
        assert_fine("doc comments", &[("a.rs", line)]);
    }
}

#[test]
fn retired_words_are_found_in_identifiers_and_file_names() {
    for (line, expected) in [
        ("struct Desk;", "`Desk` has the retired word `Desk`: call it FollowedThreads"),
        ("use a::SharedDesk;", "`SharedDesk`"),
        ("fn put_off() {}", "`put_off` has the retired word `put_off`: call it deferred"),
        ("let putOffLong = 1;", "`putOffLong`"),
        ("const PUT_OFF: u8 = b'\"';", "`PUT_OFF`"),
        ("enum PutOff {}", "`PutOff`"),
        ("fn a<'e>(b: &'e str) { wary(b) }", "`wary`"),
        ("/// The how-MANIETH it is.", "write `ordinal`"),
    ] {
        // Taken apart, so that this file does not have it.
        let line = line.replace("MANIETH", "manieth");
        assert_found("retired words", &[("a.rs", &line)], expected);
    }
    assert_found("retired words", &[("src/desk.rs", "")], "the file name has the retired word `Desk`");
    assert_found("retired words", &[("src/put_off/mod.rs", "")], "the file name");
    assert_found("retired words", &[("src/a.ts", "const wary = 'x';")], "src/a.ts:1");
    assert_found("retired words", &[("a.rs", "let a = \"\n\";\nlet wary = a;")], "a.rs:3");
}

#[test]
fn retired_words_in_texts_and_other_words_are_fine() {
    for line in [
        "let desk = 1;",
        "struct Desktop;",
        "let years = cleaning(input_offset);",
        "let a = \"a wary \\\" wary\";",
        "let a = r#\"a \" wary\"#;",
        "let a = br\"wary\";",
        "// wary",
        "/* wary */",
        "let a = '\\'' /* ' */; // wary",
    ] {
        assert_fine("retired words", &[("a.rs", line)]);
    }
    assert_fine(
        "retired words",
        &[("a.ts", "const a = 'wary' + \"wary\" + `\nwary`;"), ("a.md", "struct Desk;")],
    );
    assert_fine("retired words", &[("console/dist/a.ts", "struct Desk;")]);
}

#[test]
fn some_words_are_retired_in_the_product_only() {
    let line = "let told = 1;";
    for path in ["crates/a/src/lib.rs", "console/src/a.ts", "sdk/typescript/src/a.ts"] {
        assert_found("retired words", &[(path, line)], "retired word `told`");
    }
    for path in [
        "crates/a/tests/it/main.rs",
        "crates/a/src/conformance/mod.rs",
        "crates/a/src/tests.rs",
        "bench/src/a.rs",
    ] {
        assert_fine("retired words", &[(path, line)]);
    }
    let tested = format!("// told\n#[cfg(test)]\nmod tests {{ fn a() {{ {line} }} }}");
    assert_fine("retired words", &[("crates/a/src/lib.rs", &tested)]);
}

/// A registry with a dialect of the project's own and two others.
const REGISTRY: (&str, &str) = (
    "crates/runwire-model/src/dialect/registry.rs",
    "            Runwire => runwire,\n            StreamingEngine => streaming_engine,\n            Export => export,\n",
);

#[test]
fn dialects_are_named_in_their_folders_facades_tests_and_comments_only() {
    let refused = "names a dialect outside its folder";
    for line in
        ["\"streaming-engine\"", "fn to_streaming_engine() {}", "StreamingEngineDecoder", "Dialect::Export"]
    {
        assert_found("dialect names", &[REGISTRY, ("crates/a/src/lib.rs", line)], refused);
        assert_found("dialect names", &[REGISTRY, ("console/src/a.ts", line)], refused);
        for path in [
            "crates/runwire-model/src/dialect/streaming_engine/mod.rs",
            "crates/runwire-server/src/facade/mod.rs",
            "crates/a/tests/it/main.rs",
            "docs/a.md",
        ] {
            assert_fine("dialect names", &[REGISTRY, (path, line)]);
        }
        let tested = format!("// {line}\n#[cfg(test)]\nmod tests {{ {line} }}");
        assert_fine("dialect names", &[REGISTRY, ("crates/a/src/lib.rs", &tested)]);
    }
    assert_fine("dialect names", &[REGISTRY, ("crates/a/src/lib.rs", "Dialect::Runwire, streaming(engine)")]);
}
