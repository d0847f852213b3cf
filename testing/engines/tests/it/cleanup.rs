//! Engines end with the process that started them, also when that is killed.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use runwire_engines::{Postgres, Redis};

const HOLDS: &str = "RUNWIRE_ENGINES_HOLD";

/// Not a test: the process that is killed.
#[test]
fn holds_engines() {
    let Ok(paused) = std::env::var(HOLDS) else { return };
    let (mut postgres, mut redis) = (Postgres::start().unwrap(), Redis::start().unwrap());
    if paused == "paused" {
        postgres.pause();
        redis.pause();
    }
    println!("\nengines {} {}", postgres.address(), redis.address());
    loop {
        thread::park();
    }
}

fn killed_holder_leaves_nothing(how: &str) {
    let folder = tempfile::tempdir().unwrap();
    // The engines may run as another user.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "cleanup::holds_engines", "--nocapture"])
        .env(HOLDS, how)
        .env("TMPDIR", folder.path());
    let mut holder = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("engines ")).unwrap();
    let addresses: Vec<SocketAddr> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
    assert!(works_in(folder.path()));
    assert!(addresses.iter().all(|address| TcpStream::connect(address).is_ok()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    while addresses.iter().any(|address| TcpStream::connect(address).is_ok()) || works_in(folder.path()) {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true if any process has its working directory in a folder, as engines do.
fn works_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    folders.into_iter().any(|place| place.starts_with(folder))
}

#[test]
fn engines_end_with_a_process_that_is_killed() {
    killed_holder_leaves_nothing("running");
}

#[test]
fn paused_engines_end_with_a_process_that_is_killed() {
    killed_holder_leaves_nothing("paused");
}
