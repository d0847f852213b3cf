//! A second server on the same SQLite store does not start.

use std::os::unix::fs::symlink;

use super::context::TestContext;
use super::random::Seed;
use super::workload::Workload;
use crate::command::{Outcome, run_command, runwire};
use crate::server::Server;

#[test]
fn a_second_server_on_a_store_is_refused_and_does_no_harm() {
    let seed = Seed::from_environment();
    let mut random = seed.random().named("second");
    let mut server = Server::start();
    let context = TestContext::new(server.address());
    std::thread::scope(|threads| {
        let _watch = context.watch();
        let workload = Workload::begin(threads, &context, &random, "two", 0);
        for _ in 0..3 {
            std::thread::sleep(random.millis(50));
            is_refused(&second(&server, "runwire.db"), "runwire.db");
        }
        // Its place is free as soon as the first is gone, however it went.
        server.kill();
        server.restart();
        is_refused(&second(&server, "runwire.db"), "runwire.db");
        context.finish_writers();
        workload.end(&context).check(&context);
    });
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_store_under_another_name_is_the_same_store() {
    let server = Server::start();
    let store = server.store();
    let absolute = store.to_str().unwrap().to_owned();
    symlink(&store, server.directory().join("link.db")).unwrap();
    symlink(server.directory(), server.directory().join("folder")).unwrap();
    for name in ["./runwire.db", "folder/runwire.db", "link.db", absolute.as_str()] {
        is_refused(&second(&server, name), name.rsplit('/').next().unwrap());
    }
}

fn second(server: &Server, store: &str) -> Outcome {
    let store = format!("sqlite:{store}");
    let mut command = runwire(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    run_command(command.current_dir(server.directory()), "")
}

fn is_refused(outcome: &Outcome, store: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("in use by another server"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(store), "{}", outcome.stderr);
}
