//! The fuzz target's seeds, replayed on every run of the tests.

use std::fs;
use std::path::Path;

use super::replay;

#[test]
fn every_fuzz_seed_is_translated_without_breaking_a_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut seeds: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "there are no seeds");
    for seed in seeds {
        // A panic below names the seed.
        eprintln!("{}", seed.display());
        replay::translate(&fs::read(&seed).unwrap());
    }
}
