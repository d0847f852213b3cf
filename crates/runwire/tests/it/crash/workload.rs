//! The workload of crash tests: concurrent writers and readers, and the checks afterwards.

use std::collections::BTreeSet;
use std::thread::{Scope as Threads, ScopedJoinHandle};

use serde_json::Value;

use super::context::TestContext;
use super::frames::{WriterDialect, carries_token, numbers};
use super::http::post;
use super::lifecycle::LifecycleWorkload;
use super::random::Random;
use super::readers::{Frame, ReaderLog, ReaderPlan, ReaderTransport, Scope, wait_for_cursor};
use super::writers::{WriteLog, Writer};

/// Everyone at work on the runs of one name.
pub(crate) struct Workload<'scope> {
    name: String,
    writers: Vec<(Scope, ScopedJoinHandle<'scope, WriteLog>)>,
    readers: Vec<ScopedJoinHandle<'scope, ReaderLog>>,
    lifecycle: Option<ScopedJoinHandle<'scope, LifecycleWorkload>>,
}

/// What everyone has in the end.
pub(crate) struct Outcome {
    scopes: Vec<Scope>,
    ledgers: Vec<(Scope, WriteLog)>,
    seen: Vec<ReaderLog>,
    lifecycle: Option<LifecycleWorkload>,
}

/// How a writer writes.
type Way = fn(Writer, &TestContext, Random) -> WriteLog;

impl<'scope> Workload<'scope> {
    /// Lets everyone begin. Frames weigh so many bytes more than they must.
    pub(crate) fn begin<'env>(
        threads: &'scope Threads<'scope, 'env>,
        context: &'scope TestContext,
        random: &Random,
        name: &str,
        weight: usize,
    ) -> Self {
        let mut workload = Self::without_lifecycle(threads, context, random, name, weight);
        let (named, chance) = (name.to_owned(), random.named("errands"));
        workload.lifecycle = Some(threads.spawn(move || LifecycleWorkload::run(&named, context, chance)));
        workload
    }

    /// Lets the writers and the readers begin; nobody leaves runs open that no one writes to.
    pub(crate) fn without_lifecycle<'env>(
        threads: &'scope Threads<'scope, 'env>,
        context: &'scope TestContext,
        random: &Random,
        name: &str,
        weight: usize,
    ) -> Self {
        let mut workload =
            Self { name: name.to_owned(), writers: Vec::new(), readers: Vec::new(), lifecycle: None };
        let mut write = |run: &str, dialect: WriterDialect, writer: &str, way: Way| {
            let run = format!("{name}-{run}");
            let writer = Writer::new(format!("{name}-{writer}"), &run, dialect).weighing(weight);
            let scope = if writer.run.ends_with("-several") { Scope::Thread(run) } else { Scope::Run(run) };
            let random = random.named(&writer.name);
            workload.writers.push((scope, threads.spawn(move || way(writer, context, random))));
        };
        write("loom", WriterDialect::Loom, "stamped-loom", Writer::stamped);
        write("agui", WriterDialect::AgUi, "stamped-agui", Writer::stamped);
        write("shared", WriterDialect::Runwire, "stamped-one", Writer::stamped);
        write("shared", WriterDialect::Agio, "stamped-two", Writer::stamped);
        write("shared", WriterDialect::Runwire, "socket", Writer::over_socket);
        write("open", WriterDialect::Runwire, "open", Writer::open_body);
        write("anonymous", WriterDialect::Agio, "anonymous", Writer::anonymous);
        write("several", WriterDialect::AgUi, "several", Writer::several_runs);

        let mut read = |scope: Scope, dialect: &'static str, over: ReaderTransport| {
            let plan = ReaderPlan { scope, dialect, over };
            let random = random.named(&format!("{plan:?}"));
            workload.readers.push(threads.spawn(move || plan.follow(context, random, "0".to_owned())));
        };
        let run = |run: &str| Scope::Run(format!("{name}-{run}"));
        read(run("loom"), "ag-ui", ReaderTransport::Sse);
        read(run("loom"), "runwire", ReaderTransport::Ndjson);
        read(run("agui"), "agio", ReaderTransport::Sse);
        read(run("agui"), "streaming-engine", ReaderTransport::WebSocket);
        read(run("shared"), "loom", ReaderTransport::Sse);
        read(run("shared"), "runwire", ReaderTransport::WebSocket);
        read(run("open"), "social-app", ReaderTransport::Sse);
        read(run("open"), "raw", ReaderTransport::Ndjson);
        read(run("anonymous"), "easyflow-chat", ReaderTransport::Sse);
        let several = Scope::Thread(format!("{name}-several"));
        read(several.clone(), "runwire", ReaderTransport::Sse);
        read(several, "agio", ReaderTransport::Ndjson);
        workload
    }

    /// Adds a reader that begins at the present.
    pub(crate) fn join_late<'env>(
        &mut self,
        threads: &'scope Threads<'scope, 'env>,
        context: &'scope TestContext,
        random: &Random,
    ) {
        let plan = ReaderPlan {
            scope: Scope::Run(format!("{}-shared", self.name)),
            dialect: "agio",
            over: ReaderTransport::Ndjson,
        };
        let random = random.named("late");
        self.readers.push(threads.spawn(move || {
            let first = wait_for_cursor(context, &plan.scope);
            plan.follow(context, random, first)
        }));
    }

    /// Waits until the writers are done.
    fn written(&mut self) -> Vec<(Scope, WriteLog)> {
        self.writers.drain(..).map(|(scope, writer)| (scope, joined(writer))).collect()
    }

    /// Ends every run, waits for the readers, and gathers what everyone has.
    pub(crate) fn end(mut self, context: &TestContext) -> Outcome {
        let ledgers = self.written();
        let mut scopes: Vec<Scope> = Vec::new();
        for (scope, _) in &ledgers {
            if scopes.last().is_none_or(|last| last.path() != scope.path()) {
                scopes.push(scope.clone());
            }
        }
        for scope in &scopes {
            if let Scope::Run(run) = scope {
                end_run(context, run);
            }
        }
        context.finish_readers();
        let seen = self.readers.drain(..).map(joined).collect();
        Outcome { scopes, ledgers, seen, lifecycle: self.lifecycle.map(joined) }
    }
}

/// Ends a run as a producer of its own, twice: the second time changes nothing.
fn end_run(context: &TestContext, run: &str) {
    let stamp = [("producer-id", "closer".to_owned()), ("producer-seq", "0".to_owned())];
    for _ in 0..2 {
        let path = format!("/v1/runs/{run}/events?dialect=runwire");
        let answer = post(context.server(), &path, &stamp, "{\"type\":\"run.completed\"}\n").unwrap();
        assert_eq!((answer.status, answer.written().all()), (200, 1), "{answer:?}");
    }
}

fn joined<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Outcome {
    /// Checks every promise.
    pub(crate) fn check(&self, context: &TestContext) {
        for scope in &self.scopes {
            let raw = replay(context, scope, "raw");
            let events = replay(context, scope, "runwire");
            check_order(scope, &raw, &events);
            for (_, log) in self.ledgers.iter().filter(|(of, _)| of.path() == scope.path()) {
                log.check(&raw, &events);
            }
        }
        for seen in &self.seen {
            seen.check(context);
        }
        self.lifecycle.iter().for_each(|lifecycle| lifecycle.check(context));
    }

    /// Counts the acknowledged frames, the times that writers were cut off, and the connections of readers.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let frames = self.ledgers.iter().map(|(_, log)| log.acknowledged).sum();
        let cuts = self.ledgers.iter().map(|(_, log)| log.cuts).sum();
        (frames, cuts, self.seen.iter().map(|seen| seen.connections).sum())
    }
}

impl WriteLog {
    /// What was acknowledged is there exactly once, in the order and with the bytes in which it was sent.
    fn check(&self, raw: &[Frame], events: &[Frame]) {
        let writer = &self.writer;
        let expected: Vec<&String> = match &self.tries {
            None => {
                assert_eq!(self.acknowledged, self.sent.len(), "{writer}");
                self.sent.iter().collect()
            }
            // Of what was not acknowledged, any beginning may have been written, and once.
            Some(tries) => {
                let there: BTreeSet<&str> = raw.iter().map(|frame| frame.data.as_str()).collect();
                let mut expected = Vec::new();
                for one in tries {
                    let frames = &self.sent[one.from..one.to];
                    let written = frames.iter().take_while(|frame| there.contains(frame.as_str())).count();
                    assert!(
                        !one.acknowledged || written == frames.len(),
                        "{writer}: {one:?}, {written} written"
                    );
                    expected.extend(&frames[..written]);
                }
                expected
            }
        };
        let mark = format!("\"{writer}");
        let stored = raw.iter().map(|frame| &frame.data).filter(|frame| frame.contains(&mark));
        let stored: Vec<&String> = stored.collect();
        for (at, (stored, expected)) in stored.iter().zip(&expected).enumerate() {
            assert_eq!(stored, expected, "{writer}: frame {at}");
        }
        assert_eq!(stored.len(), expected.len(), "{writer}: frames lost, or written twice");

        let said = expected.iter().filter(|frame| carries_token(frame, writer));
        let said: Vec<usize> = said.flat_map(|frame| numbers(writer, frame)).collect();
        let told = events.iter().filter(|event| {
            let kind: Value = serde_json::from_str(&event.data).unwrap();
            matches!(kind["type"].as_str(), Some("text.delta" | "thinking.delta" | "custom"))
        });
        let told: Vec<usize> = told.flat_map(|event| numbers(writer, &event.data)).collect();
        assert_eq!(told, said, "{writer}: what was said and what is told");
        // A writer without a producer does not retry, so a fault before its first write leaves it silent.
        assert!(!said.is_empty() || writer.ends_with("anonymous"), "{writer} said nothing");
    }
}

/// `seq` has no gaps, and `at` never goes backwards.
fn check_order(scope: &Scope, raw: &[Frame], events: &[Frame]) {
    let mut last = 0;
    for frame in raw {
        let (seq, frame) = frame.cursor.split_once('-').unwrap();
        let seq: u64 = seq.parse().unwrap();
        let follows = if frame == "0" { last + 1 } else { last };
        assert_eq!(seq, follows, "{scope:?}");
        last = seq;
    }
    let mut before = String::new();
    for event in events {
        let event: Value = serde_json::from_str(&event.data).unwrap();
        let at = event["at"].as_str().unwrap().to_owned();
        assert!(at >= before, "{scope:?}: {at} after {before}");
        before = at;
    }
}

fn replay(context: &TestContext, scope: &Scope, dialect: &'static str) -> Vec<Frame> {
    ReaderPlan { scope: scope.clone(), dialect, over: ReaderTransport::Ndjson }.replay(context, "0")
}
