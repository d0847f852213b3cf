//! The embedded store passes the suite.

use crate::bed::SqliteBed;

runwire_log::log_conformance!(SqliteBed::new());

#[test]
fn no_promise_of_the_suite_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let listed = std::fs::read_to_string(folder.join("mod.rs")).unwrap();
    let mut promises = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let topic = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let promise = rest.split('(').next().unwrap();
            assert!(listed.contains(&format!("{topic}::{promise},")), "{topic}::{promise} is not listed");
            promises += 1;
        }
    }
    // One that is listed and does not exist does not compile.
    assert!(promises > 80);
}
