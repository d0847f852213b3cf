//! `cargo xtask test`: runs the stages in order, and prints the time of each.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::command::{TaskError, cargo, run};
use crate::web::Package;
use crate::{deploy, fuzz, new_dialect, tidy, tools, web};

/// Cases of each property with `--long`.
const LONG_PROPTEST_CASES: &str = "20000";

/// Rounds of the crash tests with `--long`.
const LONG_CRASH_ROUNDS: &str = "200";

/// Duration of the chaos test with `--long`.
const LONG_CHAOS_SECONDS: &str = "3600";

/// Name prefixes of tests that start PostgreSQL or Redis. They have their own stage.
const ENGINE_TESTS: [&str; 5] = ["cluster", "node_departure", "nodes", "postgres", "redis"];

/// The package whose tests all start engines.
const ENGINES: &str = "runwire-engines";

/// Concurrent engine tests per core: they mostly wait for servers and disks.
const ENGINE_TESTS_PER_CORE: usize = 2;

/// The folder with a folder for each dialect.
const DIALECTS: &str = "crates/runwire-model/src/dialect";

/// The options of all stages.
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    pub(crate) long: bool,
    pub(crate) fuzz_minutes: u64,
}

/// One part of `cargo xtask test`.
struct Stage {
    name: &'static str,
    run: fn(&Context) -> Result<(), TaskError>,
}

/// The stages in the order they run. Lint comes before the tests and shares
/// their profile and target folder, so dependencies are built once.
fn stages(context: &Context) -> Vec<Stage> {
    let mut stages = vec![
        Stage { name: "tools", run: |context| tools::prepare(&context.root) },
        Stage { name: "format", run: format },
        Stage { name: "lint", run: lint },
        Stage { name: "tests", run: tests },
        Stage { name: "cluster", run: cluster },
        Stage { name: "docs", run: docs },
        Stage { name: "ag-ui oracle", run: ag_ui_oracle },
        Stage { name: "clients", run: clients },
        Stage { name: "sdk", run: web::sdk },
        // After the SDK, whose build it uses.
        Stage { name: "documents", run: documents },
        Stage { name: "console", run: web::console },
        Stage { name: "browser", run: web::browser },
        Stage { name: "deploy", run: deploy::check },
        Stage { name: "tidy", run: |context| tidy::run(&context.root) },
    ];
    if context.long {
        stages.push(Stage { name: "new dialect", run: |context| new_dialect::check(context, None) });
        stages
            .push(Stage { name: "fuzz", run: |context| fuzz::run_for(&context.root, context.fuzz_minutes) });
    }
    stages
}

/// Runs all stages, or those of the given names, up to the first that fails, and prints the times.
pub(crate) fn run_all(context: &Context, only: Option<&[String]>) -> Result<(), TaskError> {
    let mut stages = stages(context);
    if let Some(names) = only {
        chosen(&mut stages, names)?;
    }
    let (times, outcome) = run_in_order(&stages, context);
    println!("\n{}", table(&times, stages.len()));
    outcome
}

/// Keeps the stages of these names; in a name, `-` is also a space.
fn chosen(stages: &mut Vec<Stage>, names: &[String]) -> Result<(), TaskError> {
    let plain = |stage: &Stage| stage.name.replace('-', " ");
    if let Some(unknown) = names.iter().find(|name| stages.iter().all(|stage| plain(stage) != **name)) {
        return Err(TaskError::new(format!("there is no stage `{unknown}`")));
    }
    stages.retain(|stage| names.contains(&plain(stage)));
    Ok(())
}

fn run_in_order(stages: &[Stage], context: &Context) -> (Vec<StageTime>, Result<(), TaskError>) {
    let mut times = Vec::with_capacity(stages.len());
    for stage in stages {
        println!("\n=== {} ===", stage.name);
        let start = Instant::now();
        let outcome = (stage.run)(context);
        times.push(StageTime { name: stage.name, took: start.elapsed(), passed: outcome.is_ok() });
        if let Err(failure) = outcome {
            return (times, Err(TaskError::new(format!("stage `{}`: {failure}", stage.name))));
        }
    }
    (times, Ok(()))
}

struct StageTime {
    name: &'static str,
    took: Duration,
    passed: bool,
}

fn table(times: &[StageTime], planned: usize) -> String {
    let line = |name: &str, took: Duration, remark: &str| {
        format!("{name:<14}{:>9.1} s  {remark}", took.as_secs_f64())
    };
    let mut lines: Vec<String> = times
        .iter()
        .map(|stage| line(stage.name, stage.took, if stage.passed { "ok" } else { "FAILED" }))
        .collect();
    let total = times.iter().map(|stage| stage.took).sum();
    let skipped = match planned - times.len() {
        0 => String::new(),
        1 => "1 stage not run".to_owned(),
        count => format!("{count} stages not run"),
    };
    lines.push(line("total", total, &skipped));
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

fn format(context: &Context) -> Result<(), TaskError> {
    rustfmt(&context.root, &["--check"])
}

/// Formats all Rust files, or checks them with `--check`.
///
/// The registry of dialects declares its modules by a macro, which `cargo fmt` does not look into.
pub(crate) fn rustfmt(root: &Path, options: &[&str]) -> Result<(), TaskError> {
    run(cargo(root).args(["fmt", "--all", "--"]).args(options))?;
    let unreadable = |error: io::Error| TaskError::new(format!("{DIALECTS}: {error}"));
    let mut modules = Vec::new();
    for entry in fs::read_dir(root.join(DIALECTS)).map_err(unreadable)? {
        modules.push(entry.map_err(unreadable)?.path().join("mod.rs"));
    }
    modules.retain(|path| path.is_file());
    modules.sort();
    run(Command::new("rustfmt").current_dir(root).args(["--edition", "2024"]).args(options).args(modules))
}

fn lint(context: &Context) -> Result<(), TaskError> {
    run(cargo(&context.root).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

fn tests(context: &Context) -> Result<(), TaskError> {
    let command = |arguments: &[&str]| {
        let mut command = cargo(&context.root);
        command.args(arguments);
        if context.long {
            command.env("PROPTEST_CASES", LONG_PROPTEST_CASES).env("RUNWIRE_LONG", "1");
            command.env("RUNWIRE_CRASH_ROUNDS", LONG_CRASH_ROUNDS);
        }
        command
    };
    if tools::nextest(&context.root).is_none() {
        let skip = ENGINE_TESTS.iter().flat_map(|name| ["--skip".to_owned(), format!("{name}::")]);
        let everything = ["test", "--workspace", "--exclude", ENGINES, "--locked", "--"];
        return run(command(&everything).args(skip));
    }
    let without_engines = format!("not ({})", engine_tests());
    run(command(&["nextest", "run", "--workspace", "--locked", "--filterset"]).arg(without_engines))?;
    // nextest does not run doc tests.
    run(&mut command(&["test", "--doc", "--workspace", "--locked"]))
}

/// Runs the tests with PostgreSQL and Redis.
pub(crate) fn cluster(context: &Context) -> Result<(), TaskError> {
    tools::engines()?;
    let command = |arguments: &[&str]| {
        let mut command = cargo(&context.root);
        command.args(arguments);
        if context.long {
            command.env("RUNWIRE_LONG", "1").env("RUNWIRE_CHAOS_SECONDS", LONG_CHAOS_SECONDS);
        }
        command
    };
    if tools::nextest(&context.root).is_none() {
        let only = ENGINE_TESTS.iter().map(|name| format!("{name}::"));
        run(command(&["test", "--workspace", "--test", "it", "--locked", "--"]).args(only))?;
        return run(&mut command(&["test", "--package", ENGINES, "--locked"]));
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get) * ENGINE_TESTS_PER_CORE;
    run(command(&["nextest", "run", "--workspace", "--locked", "--filterset"])
        .arg(engine_tests())
        .args(["--test-threads", &threads.to_string()]))
}

/// Returns the nextest filter of tests that need engines.
fn engine_tests() -> String {
    format!("package({ENGINES}) or (binary(it) and test(/^({})::/))", ENGINE_TESTS.join("|"))
}

fn docs(context: &Context) -> Result<(), TaskError> {
    run(cargo(&context.root)
        .args(["doc", "--no-deps", "--workspace", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings"))
}

/// Feeds our AG-UI output to the official client, then lets it attach to a
/// server, start runs there and answer them. The canary comes first: it shows
/// that the check refuses streams known to be broken.
fn ag_ui_oracle(context: &Context) -> Result<(), TaskError> {
    let oracle = Package::install(&context.root, "oracles/ag-ui")?;
    run(&mut oracle.node("canary.mjs"))?;
    run(oracle.node("check.mjs").arg("../../vectors"))?;
    let built = build_runwire(context)?;
    run(oracle.node("served.mjs").arg(&built))?;
    run(oracle.node("running.mjs").arg(&built))
}

/// Tests the façades with clients written from the other systems' documents alone.
fn clients(context: &Context) -> Result<(), TaskError> {
    let oracle = Package::install(&context.root, "oracles/clients")?;
    // Documents with TypeScript samples have clients that are compiled strictly.
    run(&mut oracle.node("node_modules/typescript/bin/tsc"))?;
    run(oracle.node("check.mjs").arg(build_runwire(context)?))
}

/// Tests every requirement of the five documents. The canary comes first: it shows that broken checklists are found.
fn documents(context: &Context) -> Result<(), TaskError> {
    tools::python()?;
    let oracle = Package::install(&context.root, "oracles/documents")?;
    run(&mut oracle.node("canary.mjs"))?;
    run(oracle.node("check.mjs").arg(build_runwire(context)?))
}

/// Builds the program for the tests, and returns its path.
pub(crate) fn build_runwire(context: &Context) -> Result<PathBuf, TaskError> {
    run(cargo(&context.root).args(["build", "--package", "runwire", "--locked"]))?;
    Ok(target_folder(context).join("debug").join(format!("runwire{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the target folder.
pub(crate) fn target_folder(context: &Context) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    context.root.join(target)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn context(long: bool) -> Context {
        Context { root: PathBuf::new(), long, fuzz_minutes: 1 }
    }

    #[test]
    fn only_a_long_run_fuzzes() {
        let names = |long| stages(&context(long)).iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert!(!names(false).contains(&"fuzz"));
        assert_eq!(names(true).last(), Some(&"fuzz"));
    }

    #[test]
    fn stages_are_chosen_by_their_names() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut stages = stages(&context(false));
        chosen(&mut stages, &names("tidy,ag ui oracle")).unwrap();
        assert_eq!(stages.iter().map(|stage| stage.name).collect::<Vec<_>>(), ["ag-ui oracle", "tidy"]);
        assert!(
            chosen(&mut stages, &names("tests")).is_err_and(|problem| problem.to_string().contains("tests"))
        );
    }

    #[test]
    fn tests_that_start_engines_are_in_their_own_stage() {
        let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let tests = fs::read_dir(crates).unwrap().map(|each| each.unwrap().path().join("tests/it"));
        let modules = tests.filter(|tests| tests.is_dir()).flat_map(|tests| fs::read_dir(tests).unwrap());
        for module in modules.map(|module| module.unwrap().path()) {
            let name = module.file_stem().unwrap().to_str().unwrap();
            let is_known = ENGINE_TESTS.contains(&name);
            assert!(is_known || !mentions_engines(&module), "`{}`: see ENGINE_TESTS", module.display());
        }
    }

    fn mentions_engines(path: &Path) -> bool {
        if path.is_dir() {
            return fs::read_dir(path).unwrap().any(|file| mentions_engines(&file.unwrap().path()));
        }
        fs::read_to_string(path).is_ok_and(|text| text.contains("runwire_engines"))
    }

    #[test]
    fn the_first_failing_stage_is_named_and_ends_the_run() {
        let stages = [
            Stage { name: "good", run: |_| Ok(()) },
            Stage { name: "bad", run: |_| Err(TaskError::new("no luck")) },
            Stage { name: "after", run: |_| Ok(()) },
        ];
        let (times, outcome) = run_in_order(&stages, &context(false));
        assert_eq!(outcome.unwrap_err().to_string(), "stage `bad`: no luck");
        let table = table(&times, stages.len());
        assert!(table.contains("good") && table.contains("FAILED") && !table.contains("after"), "{table}");
        assert!(table.ends_with("1 stage not run"), "{table}");
    }
}
