//! Who writes and who reads, all at once, and what must be true of it afterwards.

use std::collections::BTreeSet;
use std::thread::{Scope as Threads, ScopedJoinHandle};

use serde_json::Value;

use super::errands::Errands;
use super::frames::{Tongue, carries_token, numbers};
use super::http::post;
use super::random::Random;
use super::readers::{Frame, Over, Reading, Scope, Seen, present};
use super::world::World;
use super::writers::{Ledger, Writer};

/// Everyone at work on the runs of one name.
pub(crate) struct Cast<'scope> {
    name: String,
    writers: Vec<(Scope, ScopedJoinHandle<'scope, Ledger>)>,
    readers: Vec<ScopedJoinHandle<'scope, Seen>>,
    errands: Option<ScopedJoinHandle<'scope, Errands>>,
}

/// What everyone has in the end.
pub(crate) struct Outcome {
    scopes: Vec<Scope>,
    ledgers: Vec<(Scope, Ledger)>,
    seen: Vec<Seen>,
    errands: Option<Errands>,
}

/// How a writer writes.
type Way = fn(Writer, &World, Random) -> Ledger;

impl<'scope> Cast<'scope> {
    /// Lets everyone begin. Frames weigh so many bytes more than they must.
    pub(crate) fn begin<'env>(
        threads: &'scope Threads<'scope, 'env>,
        world: &'scope World,
        random: &Random,
        name: &str,
        weight: usize,
    ) -> Self {
        let mut cast = Self::without_errands(threads, world, random, name, weight);
        let (named, chance) = (name.to_owned(), random.named("errands"));
        cast.errands = Some(threads.spawn(move || Errands::run(&named, world, chance)));
        cast
    }

    /// Lets the writers and the readers begin; nobody leaves runs open that no one writes to.
    pub(crate) fn without_errands<'env>(
        threads: &'scope Threads<'scope, 'env>,
        world: &'scope World,
        random: &Random,
        name: &str,
        weight: usize,
    ) -> Self {
        let mut cast =
            Self { name: name.to_owned(), writers: Vec::new(), readers: Vec::new(), errands: None };
        let mut write = |run: &str, tongue: Tongue, writer: &str, way: Way| {
            let run = format!("{name}-{run}");
            let writer = Writer::new(format!("{name}-{writer}"), &run, tongue).weighing(weight);
            let scope = if writer.run.ends_with("-several") { Scope::Thread(run) } else { Scope::Run(run) };
            let random = random.named(&writer.name);
            cast.writers.push((scope, threads.spawn(move || way(writer, world, random))));
        };
        write("loom", Tongue::Loom, "stamped-loom", Writer::stamped);
        write("agui", Tongue::AgUi, "stamped-agui", Writer::stamped);
        write("shared", Tongue::Runwire, "stamped-one", Writer::stamped);
        write("shared", Tongue::Agio, "stamped-two", Writer::stamped);
        write("shared", Tongue::Runwire, "socket", Writer::over_socket);
        write("open", Tongue::Runwire, "open", Writer::open_body);
        write("anonymous", Tongue::Agio, "anonymous", Writer::anonymous);
        write("several", Tongue::AgUi, "several", Writer::several_runs);

        let mut read = |scope: Scope, dialect: &'static str, over: Over| {
            let reading = Reading { scope, dialect, over };
            let random = random.named(&format!("{reading:?}"));
            cast.readers.push(threads.spawn(move || reading.follow(world, random, "0".to_owned())));
        };
        let run = |run: &str| Scope::Run(format!("{name}-{run}"));
        read(run("loom"), "ag-ui", Over::Sse);
        read(run("loom"), "runwire", Over::Ndjson);
        read(run("agui"), "agio", Over::Sse);
        read(run("agui"), "streaming-engine", Over::WebSocket);
        read(run("shared"), "loom", Over::Sse);
        read(run("shared"), "runwire", Over::WebSocket);
        read(run("open"), "social-app", Over::Sse);
        read(run("open"), "raw", Over::Ndjson);
        read(run("anonymous"), "easyflow-chat", Over::Sse);
        let several = Scope::Thread(format!("{name}-several"));
        read(several.clone(), "runwire", Over::Sse);
        read(several, "agio", Over::Ndjson);
        cast
    }

    /// Adds a reader that begins at the present.
    pub(crate) fn join_late<'env>(
        &mut self,
        threads: &'scope Threads<'scope, 'env>,
        world: &'scope World,
        random: &Random,
    ) {
        let reading = Reading {
            scope: Scope::Run(format!("{}-shared", self.name)),
            dialect: "agio",
            over: Over::Ndjson,
        };
        let random = random.named("late");
        self.readers.push(threads.spawn(move || {
            let first = present(world, &reading.scope);
            reading.follow(world, random, first)
        }));
    }

    /// Waits until the writers are done.
    fn written(&mut self) -> Vec<(Scope, Ledger)> {
        self.writers.drain(..).map(|(scope, writer)| (scope, joined(writer))).collect()
    }

    /// Ends every run, waits for the readers, and gathers what everyone has.
    pub(crate) fn end(mut self, world: &World) -> Outcome {
        let ledgers = self.written();
        let mut scopes: Vec<Scope> = Vec::new();
        for (scope, _) in &ledgers {
            if scopes.last().is_none_or(|last| last.path() != scope.path()) {
                scopes.push(scope.clone());
            }
        }
        for scope in &scopes {
            if let Scope::Run(run) = scope {
                end_run(world, run);
            }
        }
        world.all_has_ended();
        let seen = self.readers.drain(..).map(joined).collect();
        Outcome { scopes, ledgers, seen, errands: self.errands.map(joined) }
    }
}

/// Ends a run as a producer of its own, twice: the second time changes nothing.
fn end_run(world: &World, run: &str) {
    let stamp = [("producer-id", "closer".to_owned()), ("producer-seq", "0".to_owned())];
    for _ in 0..2 {
        let path = format!("/v1/runs/{run}/events?dialect=runwire");
        let answer = post(world.server(), &path, &stamp, "{\"type\":\"run.completed\"}\n").unwrap();
        assert_eq!((answer.status, answer.written().all()), (200, 1), "{answer:?}");
    }
}

fn joined<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Outcome {
    /// Checks every promise.
    pub(crate) fn check(&self, world: &World) {
        for scope in &self.scopes {
            let raw = replay(world, scope, "raw");
            let events = replay(world, scope, "runwire");
            check_order(scope, &raw, &events);
            for (_, ledger) in self.ledgers.iter().filter(|(of, _)| of.path() == scope.path()) {
                ledger.check(&raw, &events);
            }
        }
        for seen in &self.seen {
            seen.check(world);
        }
        self.errands.iter().for_each(|errands| errands.check(world));
    }

    /// Counts the acknowledged frames, the times that writers were cut off, and the connections of readers.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let frames = self.ledgers.iter().map(|(_, ledger)| ledger.acknowledged).sum();
        let cuts = self.ledgers.iter().map(|(_, ledger)| ledger.cuts).sum();
        (frames, cuts, self.seen.iter().map(|seen| seen.connections).sum())
    }
}

impl Ledger {
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
        assert!(!said.is_empty(), "{writer} said nothing");
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

fn replay(world: &World, scope: &Scope, dialect: &'static str) -> Vec<Frame> {
    Reading { scope: scope.clone(), dialect, over: Over::Ndjson }.replay(world, "0")
}
