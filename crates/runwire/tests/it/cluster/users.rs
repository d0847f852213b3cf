//! Simulated users: start agents, answer interactions and cancel, each time on another node; some abandon their runs.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::requests::{ask, events, shown, the_end};
use crate::command::TIMEOUT;
use crate::crash::context::TestContext;
use crate::crash::http::{Answer, post};
use crate::crash::kill_during_answers::http_agent;
use crate::crash::random::Random;
use crate::crash::readers::{ReaderLog, ReaderPlan, ReaderTransport, Scope as ReadScope};

/// How often a person looks whether anything has happened.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a run may take that goes through a lease and several outages.
const LONG: Duration = Duration::from_secs(2 * TIMEOUT.as_secs());

/// Runs that are left without an end; the lease of the last one is waited for.
const LEFT: usize = 20;

/// What people start: a demo that asks, a program that asks, one that goes on until it is stopped, an HTTP agent that
/// asks.
const AGENTS: [&str; 4] = ["demo", "asks", "counts", "http"];

/// The agents, as `runwire.toml` has them. Programs carry the mark on their command line.
pub(super) fn agents(mark: &str) -> String {
    let (http, open) = (http_agent(), open_stream());
    let asks = format!(
        r#"echo '{{"type":"tool_approval","name":"pay","arguments":{{}},"call_id":"q"}}'; read start; read answer; sleep 0.5; echo '{{"reply":"done"}}' # {mark}"#
    );
    let counts = format!(
        r#"echo '{{"type":"run_start"}}'; while sleep 0.1; do echo '{{"type":"message_chunk","content":"tick ","id":"n"}}'; done # {mark}"#
    );
    format!(
        "[agents.demo]\nkind = \"demo\"\nfast = true\n\n\
         [agents.endless]\nkind = \"demo\"\n\n\
         [agents.http]\nkind = \"http\"\nurl = \"http://{http}/\"\ndialect = \"ag-ui\"\n\n\
         [agents.streams]\nkind = \"http\"\nurl = \"http://{open}/\"\ndialect = \"loom\"\n\n\
         [agents.asks]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", '''{asks}''']\ndialect = \"loom\"\n\n\
         [agents.counts]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", '''{counts}''']\ndialect = \"loom\"\n"
    )
}

/// An agent that begins to say something, and stays.
fn open_stream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let frames =
                "{\"type\":\"run_start\"}\n{\"type\":\"message_chunk\",\"content\":\"so\",\"id\":\"n\"}\n";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
            std::thread::spawn(move || {
                // Whoever asks may be killed meanwhile; the stream is open until then.
                let _ = stream.read(&mut [0; 1 << 16]);
                let _ = stream.write_all(format!("{head}{frames}").as_bytes());
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    address
}

/// Everyone at work.
pub(super) struct Users<'scope> {
    users: Vec<ScopedJoinHandle<'scope, Vec<Watched>>>,
    leaver: ScopedJoinHandle<'scope, Vec<String>>,
}

/// What everyone has in the end.
pub(super) struct UserRecords {
    watched: Vec<Watched>,
    left: Vec<String>,
}

/// A run that somebody started, and what they were told about it.
#[derive(Debug)]
struct Watched {
    run: String,
    agent: &'static str,
    /// The answers that were acknowledged, by question.
    acknowledged: BTreeMap<String, Value>,
    cancelled: bool,
    /// What somebody saw who read it meanwhile.
    seen: Option<ReaderLog>,
}

impl<'scope> Users<'scope> {
    /// Lets so many people begin, and one who leaves runs without an end.
    pub(super) fn begin(
        threads: &'scope Scope<'scope, '_>,
        context: &'scope TestContext,
        random: &Random,
        name: &'scope str,
        count: usize,
    ) -> Self {
        let person = |at: usize| {
            let random = random.named(&format!("person {at}"));
            threads.spawn(move || work(context, name, at, random))
        };
        let mut chance = random.named("leaver");
        let leaver = threads.spawn(move || {
            let _watch = context.watch();
            let mut left = Vec::new();
            while !context.are_writers_finishing() && left.len() < LEFT {
                context.check();
                let run = format!("{name}-left-{}", left.len());
                let text = "{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"so\"}\n";
                ask(context, &[200], "POST", &format!("/v1/runs/{run}/events?dialect=runwire"), text);
                left.push(run);
                std::thread::sleep(chance.millis(1500));
            }
            left
        });
        Self { users: (0..count).map(person).collect(), leaver }
    }

    /// Waits until everyone has seen the end of what they started.
    pub(super) fn end(self) -> UserRecords {
        let watched = self.users.into_iter().flat_map(|person| person.join().expect("the person is content"));
        let watched = watched.collect();
        UserRecords { watched, left: self.leaver.join().expect("the leaver is gone") }
    }
}

fn work(context: &TestContext, name: &str, person: usize, mut random: Random) -> Vec<Watched> {
    let _watch = context.watch();
    let mut all: Vec<Watched> = Vec::new();
    while !context.are_writers_finishing() || all.is_empty() {
        let agent = AGENTS[random.below(AGENTS.len())];
        let run = format!("{name}-{agent}-{person}-{}", all.len());
        let body = json!({"run_id": run, "agent": agent, "message": "hi"}).to_string();
        ask(context, &[200, 201], "POST", "/v1/runs", &body);
        let watched = Watched { run, agent, acknowledged: BTreeMap::new(), cancelled: false, seen: None };
        all.push(if random.one_in(2) {
            watched.read_meanwhile(context, &mut random)
        } else {
            watched.drive(context, &mut random)
        });
    }
    all
}

impl Watched {
    /// Sees to a run while somebody reads it.
    fn read_meanwhile(self, context: &TestContext, random: &mut Random) -> Self {
        let plans = [
            ("runwire", ReaderTransport::WebSocket),
            ("agio", ReaderTransport::Sse),
            ("raw", ReaderTransport::Ndjson),
            ("loom", ReaderTransport::Sse),
            ("streaming-engine", ReaderTransport::Ndjson),
        ];
        let (dialect, over) = plans[random.below(plans.len())];
        let plan = ReaderPlan { scope: ReadScope::Run(self.run.clone()), dialect, over };
        let chance = random.named("reader");
        std::thread::scope(|threads| {
            let reader = threads.spawn(move || plan.follow(context, chance, "0".to_owned()));
            let watched = self.drive(context, random);
            Self { seen: Some(reader.join().expect("the reader is content")), ..watched }
        })
    }

    /// Answers whatever is asked, or cancels, until the run has ended.
    fn drive(mut self, context: &TestContext, random: &mut Random) -> Self {
        let begun = Instant::now();
        let mut patience = random.below(40);
        loop {
            let info = shown(context, &self.run);
            if info["ended_at"].is_string() {
                return self;
            }
            for asked in info["interactions"].as_array().unwrap() {
                if asked["status"] == "open" {
                    // People think. Meanwhile the agent waits on a node that may go.
                    std::thread::sleep(random.millis(2000));
                    self.answer(context, random, asked);
                }
            }
            if self.agent == "counts" && info["status"] == "running" {
                if patience == 0 && !self.cancelled {
                    ask(context, &[200, 202], "POST", &format!("/v1/runs/{}/cancel", self.run), "");
                    self.cancelled = true;
                }
                patience = patience.saturating_sub(1);
            }
            context.check();
            assert!(begun.elapsed() < LONG, "{} does not end: {info}", self.run);
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Two people answer a question at once, each something else, by other nodes.
    fn answer(&mut self, context: &TestContext, random: &mut Random, asked: &Value) {
        let question = asked["interaction_id"].as_str().unwrap();
        let path = format!("/v1/runs/{}/interactions/{question}", self.run);
        let answers: Vec<Value> = (0..=random.below(2)).map(|who| said(asked, who)).collect();
        let told: Vec<Answer> = std::thread::scope(|threads| {
            let path = &path;
            let say = |answer: &Value| {
                let body = answer.to_string();
                threads.spawn(move || ask(context, &[200, 409], "POST", path, &body))
            };
            let telling: Vec<_> = answers.iter().map(say).collect();
            telling.into_iter().map(|told| told.join().expect("the answer is told")).collect()
        });
        for (answer, told) in answers.into_iter().zip(told) {
            if told.status == 200 {
                let before = self.acknowledged.insert(question.to_owned(), answer);
                assert!(before.is_none(), "two were told that they won: {} {question} {told:?}", self.run);
            }
        }
    }
}

/// What somebody says to a question.
fn said(asked: &Value, who: usize) -> Value {
    if asked["kind"] == "approval" {
        return json!({"decision": "approved", "reason": format!("says {who}")});
    }
    let values = json!({"name": format!("Ann {who}"), "email": "ann@example.com"});
    json!({"decision": "submitted", "values": values})
}

impl UserRecords {
    /// What people were told is so, on this node: every run has one end, every question one answer, and the right one.
    /// Counts the runs by agent and end.
    pub(super) fn check(&self, node: SocketAddr) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::from([("left: producer_lost".to_owned(), self.left.len())]);
        let context = TestContext::new(node);
        for watched in &self.watched {
            let Watched { run, acknowledged, .. } = watched;
            let events = events(node, run);
            let end = the_end(run, &events);
            let how = end["error"]["code"].as_str().unwrap_or_else(|| end["type"].as_str().unwrap());
            *counts.entry(format!("{}: {how}", watched.agent)).or_default() += 1;
            if watched.cancelled {
                // Its node may have been lost before it could be told.
                assert!(
                    end["type"] == "run.cancelled" || end["type"] == "run.failed",
                    "{run} was cancelled: {end}"
                );
            }
            let mut settled = BTreeMap::new();
            for event in events.iter().filter(|event| event["type"] == "interaction.resolved") {
                let question = event["interaction_id"].as_str().unwrap();
                assert!(
                    settled.insert(question, event).is_none(),
                    "{run}: {question} has two answers: {events:#?}"
                );
            }
            for (question, answer) in acknowledged {
                let told =
                    settled.get(question.as_str()).unwrap_or_else(|| panic!("{run}: {question} is lost"));
                for field in ["decision", "values", "reason"] {
                    assert_eq!(
                        told[field], answer[field],
                        "{run}: the answer that won is not the one that is told"
                    );
                }
            }
            watched.seen.iter().for_each(|seen| seen.check(&context));
        }
        for run in &self.left {
            let events = events(node, run);
            let end = the_end(run, &events);
            assert_eq!(
                (&end["type"], &end["error"]["code"]),
                (&"run.failed".into(), &"producer_lost".into()),
                "{run}"
            );
        }
        counts
    }
}

/// Starts an agent on one node.
pub(super) fn start(node: SocketAddr, agent: &str, run: &str) {
    let body = json!({"run_id": run, "agent": agent, "message": "hi"}).to_string();
    let answer = post(node, "/v1/runs", &[], &body).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
}
