//! A client that creates, cancels and deletes runs, and checks that acknowledged requests are kept.

use std::time::Instant;

use super::context::TestContext;
use super::frames::WriterDialect;
use super::http::{Answer, Exchange, get};
use super::random::Random;

/// What became of the runs that were created, one after the other.
#[derive(Debug)]
pub(crate) struct LifecycleWorkload {
    name: String,
    fates: Vec<RunFate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunFate {
    /// Created, and nothing else.
    Created,
    /// Written to, and left open.
    WriteCounts,
    /// Stopped before anything was written to it.
    Cancelled,
    /// Deleted with its thread, after something was written to it.
    Deleted,
}

const FRAMES: usize = 3;

impl LifecycleWorkload {
    /// Runs errands until there is enough; whatever is not acknowledged is asked for again.
    pub(crate) fn run(name: &str, context: &TestContext, mut random: Random) -> Self {
        let _watch = context.watch();
        let mut lifecycle = Self { name: name.to_owned(), fates: Vec::new() };
        while !context.are_writers_finishing() {
            let (run, thread) = lifecycle.ids(lifecycle.fates.len());
            let fate = [RunFate::Created, RunFate::WriteCounts, RunFate::Cancelled, RunFate::Deleted]
                [random.below(4)];
            let body = format!(r#"{{"run_id":"{run}","thread_id":"{thread}","message":"{thread}"}}"#);
            until(
                context,
                &[200, 201],
                "POST",
                "/v1/runs",
                &[("content-type", "application/json".to_owned())],
                &body,
            );
            if matches!(fate, RunFate::WriteCounts | RunFate::Deleted) {
                let frames: String =
                    (0..FRAMES).map(|at| WriterDialect::Runwire.frame(&run, at) + "\n").collect();
                let stamp = [("producer-id", run.clone()), ("producer-seq", "0".to_owned())];
                until(context, &[200], "POST", &format!("/v1/runs/{run}/events"), &stamp, &frames);
            }
            match fate {
                RunFate::Cancelled => {
                    until(context, &[200], "POST", &format!("/v1/runs/{run}/cancel"), &[], "")
                }
                // Once it is done, asking again finds the thread gone.
                RunFate::Deleted => until(
                    context,
                    &[204, 410],
                    "DELETE",
                    &format!("/v1/threads/{thread}?force=true"),
                    &[],
                    "",
                ),
                RunFate::Created | RunFate::WriteCounts => {}
            }
            lifecycle.fates.push(fate);
            std::thread::sleep(random.millis(10));
        }
        lifecycle
    }

    /// Everything that was acknowledged is as it was said.
    pub(crate) fn check(&self, context: &TestContext) {
        for (number, fate) in self.fates.iter().enumerate() {
            let (run, thread) = self.ids(number);
            let shown = |path: &str| get(context.server(), path).unwrap();
            let info = shown(&format!("/v1/runs/{run}"));
            if *fate == RunFate::Deleted {
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
                RunFate::Created => ("pending", 0),
                RunFate::WriteCounts => ("running", FRAMES),
                RunFate::Cancelled | RunFate::Deleted => ("cancelled", 1),
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
fn until(
    context: &TestContext,
    good: &[u16],
    method: &str,
    path: &str,
    fields: super::http::Fields,
    body: &str,
) {
    let since = Instant::now();
    loop {
        let asked = Exchange::begin(context.server(), method, path, fields, Some(body.as_bytes()));
        match asked.and_then(Exchange::answer) {
            Ok(Answer { status, .. }) if good.contains(&status) => return,
            Ok(answer) => assert_eq!(answer.status, 503, "{method} {path}: {answer:?}"),
            Err(_) => {}
        }
        context.pause(since);
    }
}
