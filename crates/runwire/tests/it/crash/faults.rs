//! Disk faults (`faults.c`): the server exits instead of acknowledging a failed write, and a restart recovers everything
//! else.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::context::TestContext;
use super::http::{get, loop_requests};
use super::random::{Random, Seed, rounds};
use super::workload::Workload;
use crate::command::{TIMEOUT, run_command, runwire};
use crate::server::Server;

/// The exit code of a server whose store failed.
const STORE_FAILED: i32 = 70;

/// What fails, and how.
#[derive(Debug, Clone)]
struct Fault {
    kind: &'static str,
    /// How the names of the files end that fail.
    file: &'static str,
    /// The ordinal of the write or flush.
    at: usize,
    /// Bytes that frames weigh more than they must, so that the write-ahead log is soon folded into the file.
    weight: usize,
}

/// The write-ahead log, which every commit is written to and flushed in.
const LOG: &str = "-wal";
/// The file that the write-ahead log is folded into now and then.
const STORE: &str = ".db";

/// Both of them.
const BOTH: &str = "*";

#[test]
fn a_failed_write_or_flush_ends_the_server_and_nothing_acknowledged_is_lost() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("faults");
    for _ in 0..rounds().div_ceil(40) {
        for kind in ["write-error", "write-full", "full"] {
            let fault = Fault { kind, file: LOG, at: random.below(120) + 1, weight: 0 };
            let (_, status) = with_fault(&fault, &mut random);
            assert_eq!(status.and_then(|status| status.code()), Some(STORE_FAILED), "{fault:?}");
        }
        for kind in ["flush-error", "flush-lost"] {
            let fault = Fault { kind, file: LOG, at: random.below(20) + 1, weight: 0 };
            let (log, status) = with_fault(&fault, &mut random);
            assert_eq!(status.and_then(|status| status.code()), Some(STORE_FAILED), "{fault:?}");
            assert!(log.contains("the store failed"), "{log}");
        }
    }
}

#[test]
fn a_short_write_is_finished() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("short");
    let fault = Fault { kind: "write-short", file: LOG, at: random.below(100) + 1, weight: 0 };
    let (_, status) = with_fault(&fault, &mut random);
    assert!(status.is_none(), "the server ended: {status:?}");
}

#[test]
fn a_failed_read_cuts_readers_off_rather_than_tell_them_something_else() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("reads");
    for _ in 0..rounds().div_ceil(10) {
        let fault = Fault { kind: "read-error", file: BOTH, at: random.below(400) + 1, weight: 0 };
        let (_, status) = with_fault(&fault, &mut random);
        let code = status.and_then(|status| status.code());
        assert!(matches!(code, None | Some(STORE_FAILED)), "{fault:?}: {status:?}");
    }
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged_or_shown() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("power");
    for _ in 0..rounds().div_ceil(5) {
        let fault = Fault { kind: "power-cut", file: BOTH, at: random.below(60) + 1, weight: 0 };
        let (_, status) = with_fault(&fault, &mut random);
        assert_eq!(status.and_then(|status| status.signal()), Some(9), "{fault:?}");
    }
}

#[test]
fn a_fault_while_the_log_is_folded_into_the_file_takes_nothing() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("folding");
    let kinds = ["write-error", "flush-lost", "full", "power-cut"];
    let count = if rounds() > 10 { 8 } else { 2 };
    for kind in kinds.into_iter().cycle().skip(random.below(kinds.len())).take(count) {
        let at = if kind.contains("flush") || kind == "power-cut" { 1 } else { random.below(500) + 1 };
        let fault = Fault { kind, file: STORE, at, weight: 6 << 10 };
        let (_, status) = with_fault(&fault, &mut random);
        // The log has everything still, so that the server may go on as well as end.
        let ended = status.map(|status| status.code().or(status.signal()));
        assert!(matches!(ended, None | Some(Some(STORE_FAILED | 9))), "{fault:?}: {status:?}");
    }
}

#[test]
fn a_full_disk_ends_the_server_and_the_store_recovers_when_there_is_room() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("full");
    let mut server = Server::start();
    let context = TestContext::new(server.address());
    std::thread::scope(|threads| {
        let _watch = context.watch();
        let workload = Workload::begin(threads, &context, &random, "full", 0);
        let armed = server.directory().join("armed");
        File::create(&armed).unwrap();
        for at in [300, 60, 1, 1] {
            std::thread::sleep(random.millis(100));
            server.kill();
            // Wherever it ends: at the start, with the first write, or later.
            let address = server.address().to_string();
            let mut command = runwire(&["serve", "--listen", &address, "--store", "sqlite:runwire.db"]);
            command.envs(variables(&Fault { kind: "full", file: LOG, at, weight: 0 }, &armed, 1));
            let outcome = run_command(command.current_dir(server.directory()), "");
            assert!(matches!(outcome.code, 3 | STORE_FAILED), "{}: {}", outcome.code, outcome.stderr);
            assert!(outcome.stderr.contains("full"), "{}", outcome.stderr);
            server.restart();
        }
        fs::remove_file(armed).unwrap();
        context.finish_writers();
        workload.end(&context).check(&context);
    });
    assert_eq!(server.stop().code(), Some(0));
}

/// Runs the workload while the disk fails, then on a sound one, and checks every promise. Returns the server's log and
/// exit status.
fn with_fault(fault: &Fault, random: &mut Random) -> (String, Option<ExitStatus>) {
    let mut server = Server::start();
    let armed = server.directory().join("armed");
    let said = server.directory().join("failing.log");
    server.kill();
    let mut failing = Failing::start(&server, &variables(fault, &armed, random.next()), &said);
    let context = TestContext::new(server.address());
    let status = std::thread::scope(|threads| {
        let _watch = context.watch();
        let workload = Workload::begin(threads, &context, &random.named(fault.kind), "f", fault.weight);
        std::thread::sleep(random.millis(150));
        // What most producers and readers meet, meets the fault.
        let begun = Instant::now();
        while !loop_requests(server.address()).unwrap().iter().all(|count| *count > 0) {
            assert!(begun.elapsed() < TIMEOUT, "{fault:?}: socket loops serve nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        File::create(&armed).unwrap();
        let may_go_on = matches!(fault.kind, "write-short" | "read-error") || fault.file == STORE;
        let begun = Instant::now();
        while !fs::read_to_string(&said).unwrap().contains("the disk fails") {
            assert!(begun.elapsed() < TIMEOUT, "{fault:?}: the disk did not fail");
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = failing.wait(if may_go_on { Duration::from_millis(500) } else { TIMEOUT });
        if status.is_none() {
            assert!(may_go_on && is_well(&context), "{fault:?}: it neither serves nor ends");
        }
        drop(failing);
        server.restart();
        std::thread::sleep(random.millis(100));
        context.finish_writers();
        let outcome = workload.end(&context);
        outcome.check(&context);
        assert!(outcome.counts().0 > 0);
        status
    });
    assert_eq!(server.stop().code(), Some(0));
    (fs::read_to_string(said).unwrap(), status)
}

/// A server in the place of another, on a disk that fails.
struct Failing(Child);

impl Failing {
    fn start(server: &Server, variables: &[(&str, String)], said: &Path) -> Self {
        let address = server.address();
        let listen = address.to_string();
        let mut command = runwire(&["serve", "--listen", &listen, "--store", "sqlite:runwire.db"]);
        let command =
            command.current_dir(server.directory()).envs(variables.iter().map(|(name, value)| (name, value)));
        let child = command.stdout(Stdio::null()).stderr(File::create(said).unwrap()).spawn().unwrap();
        let (failing, begun) = (Self(child), Instant::now());
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < TIMEOUT, "the server does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        failing
    }

    /// Waits for its end, and for no longer than it may take.
    fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < longest {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks the server whether all is well.
fn is_well(context: &TestContext) -> bool {
    ["/healthz", "/readyz"]
        .iter()
        .all(|path| get(context.server(), path).is_ok_and(|answer| answer.status == 200))
}

fn variables(fault: &Fault, armed: &Path, seed: u64) -> Vec<(&'static str, String)> {
    vec![
        ("LD_PRELOAD", failing_disk().to_str().unwrap().to_owned()),
        ("FAULT_WHEN", armed.to_str().unwrap().to_owned()),
        ("FAULT_FILE", fault.file.to_owned()),
        ("FAULT_AT", fault.at.to_string()),
        ("FAULT_KIND", fault.kind.to_owned()),
        ("FAULT_SEED", seed.to_string()),
    ]
}

/// Builds the library that fails, once.
fn failing_disk() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/crash/faults.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Tests of several processes may build it at once: each under a name of its own, until it is whole.
        let built = folder.join(format!("faults-{}.so", std::process::id()));
        let library = folder.join("faults.so");
        let done = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&built, &source])
            .args(["-ldl", "-lpthread"])
            .status();
        assert!(done.expect("there is a C compiler, as SQLite needs one").success());
        fs::rename(built, &library).unwrap();
        library
    })
}
