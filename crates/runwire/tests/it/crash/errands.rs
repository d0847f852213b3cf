//! Someone who creates, cancels and deletes, and remembers what was acknowledged.

use std::time::Instant;

use super::frames::Tongue;
use super::http::{Answer, Exchange, get};
use super::random::Random;
use super::world::World;

/// What became of the runs that were created, one after the other.
#[derive(Debug)]
pub(crate) struct Errands {
    name: String,
    fates: Vec<Fate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Created, and nothing else.
    Created,
    /// Written to, and left open.
    Written,
    /// Stopped before anything was written to it.
    Cancelled,
    /// Deleted with its thread, after something was written to it.
    Deleted,
}

const FRAMES: usize = 3;

impl Errands {
    /// Runs errands until there is enough; whatever is not acknowledged is asked for again.
    pub(crate) fn run(name: &str, world: &World, mut random: Random) -> Self {
        let _watch = world.watch();
        let mut errands = Self { name: name.to_owned(), fates: Vec::new() };
        while !world.writers_finish() {
            let (run, thread) = errands.ids(errands.fates.len());
            let fate = [Fate::Created, Fate::Written, Fate::Cancelled, Fate::Deleted][random.below(4)];
            let body = format!(r#"{{"run_id":"{run}","thread_id":"{thread}","message":"{thread}"}}"#);
            until(
                world,
                &[200, 201],
                "POST",
                "/v1/runs",
                &[("content-type", "application/json".to_owned())],
                &body,
            );
            if matches!(fate, Fate::Written | Fate::Deleted) {
                let frames: String = (0..FRAMES).map(|at| Tongue::Runwire.frame(&run, at) + "\n").collect();
                let stamp = [("producer-id", run.clone()), ("producer-seq", "0".to_owned())];
                until(world, &[200], "POST", &format!("/v1/runs/{run}/events"), &stamp, &frames);
            }
            match fate {
                Fate::Cancelled => until(world, &[200], "POST", &format!("/v1/runs/{run}/cancel"), &[], ""),
                // Once it is done, asking again finds the thread gone.
                Fate::Deleted => {
                    until(world, &[204, 410], "DELETE", &format!("/v1/threads/{thread}?force=true"), &[], "")
                }
                Fate::Created | Fate::Written => {}
            }
            errands.fates.push(fate);
            std::thread::sleep(random.millis(10));
        }
        errands
    }

    /// Everything that was acknowledged is as it was said.
    pub(crate) fn check(&self, world: &World) {
        for (number, fate) in self.fates.iter().enumerate() {
            let (run, thread) = self.ids(number);
            let shown = |path: &str| get(world.server(), path).unwrap();
            let info = shown(&format!("/v1/runs/{run}"));
            if *fate == Fate::Deleted {
                assert!(matches!(info.status, 404 | 410), "{run}: {info:?}");
                assert_eq!(shown(&format!("/v1/threads/{thread}")).status, 410, "{thread}");
                assert_eq!(
                    shown(&format!("/v1/threads/{thread}/events?follow=false")).status,
                    410,
                    "{thread}"
                );
                continue;
            }
            assert_eq!(info.status, 200, "{run}: {info:?}");
            let info = info.json();
            let expected = match fate {
                Fate::Created => ("pending", 0),
                Fate::Written => ("running", FRAMES),
                Fate::Cancelled | Fate::Deleted => ("cancelled", 1),
            };
            assert_eq!(
                (&info["status"], &info["counts"]["records"]),
                (&expected.0.into(), &expected.1.into()),
                "{info}"
            );
            assert_eq!(info["thread_id"], thread.as_str());
        }
    }

    fn ids(&self, number: usize) -> (String, String) {
        (format!("{}-errand-{number}", self.name), format!("{}-thread-{number}", self.name))
    }
}

/// Asks until the server answers as it should.
fn until(world: &World, good: &[u16], method: &str, path: &str, fields: super::http::Fields, body: &str) {
    let since = Instant::now();
    loop {
        let asked = Exchange::begin(world.server(), method, path, fields, Some(body.as_bytes()));
        match asked.and_then(Exchange::answer) {
            Ok(Answer { status, .. }) if good.contains(&status) => return,
            Ok(answer) => assert_eq!(answer.status, 503, "{method} {path}: {answer:?}"),
            Err(_) => {}
        }
        world.pause(since);
    }
}
