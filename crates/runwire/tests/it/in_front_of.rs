//! The pages of `docs/in-front-of`: their configuration, their commands, and the requests that an agent gets.
//!
//! Each page is tried as a reader would: the server is started with its `toml`, its `sh` blocks are run one after the
//! other, and an agent of the test's own expects its `http` blocks and answers with its `sse` blocks.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{TIMEOUT, run};
use crate::server::Server;

const SCRIPT: &str = "# agent.sh\n";

struct Page {
    name: String,
    blocks: Vec<(String, String)>,
}

impl Page {
    fn read(name: &str) -> Self {
        let text = fs::read_to_string(folder().join(name)).unwrap();
        let mut blocks = Vec::new();
        for (at, piece) in text.split("```").enumerate() {
            if let (1, Some((language, block))) = (at % 2, piece.split_once('\n')) {
                blocks.push((language.to_owned(), block.to_owned()));
            }
        }
        Self { name: name.to_owned(), blocks }
    }

    fn blocks(&self, language: &str) -> Vec<String> {
        let those = self.blocks.iter().filter(|(of, _)| of == language);
        those.map(|(_, block)| block.clone()).collect()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/in-front-of")
}

/// Takes the documented requests one after the other, and answers each as is documented.
fn agent(page: &Page) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let exchanges: Vec<_> = page.blocks("http").into_iter().zip(page.blocks("sse")).collect();
    let serving = std::thread::spawn(move || {
        for (expected, answer) in exchanges {
            let (mut stream, _) = listener.accept().unwrap();
            let (line, body) = request(&mut stream);
            let (head, told) = expected.split_once("\n\n").unwrap();
            assert_eq!(line, head.lines().next().unwrap());
            let told: Value = serde_json::from_str(told).unwrap();
            assert!(fits(&body, &told), "the agent got {body}\nand the page says {told}");
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(format!("{head}{answer}\n").as_bytes()).unwrap();
        }
    });
    (port, serving)
}

fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head.lines().next().unwrap().to_owned(), serde_json::from_slice(&body).unwrap())
}

/// Compares; `…` stands for anything.
fn fits(got: &Value, told: &Value) -> bool {
    match (got, told) {
        (_, Value::String(told)) if told == "…" => true,
        (Value::Object(got), Value::Object(told)) => {
            got.len() == told.len()
                && told.iter().all(|(name, told)| got.get(name).is_some_and(|got| fits(got, told)))
        }
        (got, told) => got == told,
    }
}

/// A reader of a page with a shell.
struct Reader<'s> {
    server: &'s Server,
    children: Vec<(String, Child)>,
}

impl Reader<'_> {
    /// Runs a block; comes back when it has ended, or its run waits for a person.
    fn run(&mut self, block: &str) {
        if block.contains("cancel") {
            // What is to be shown before is not cut off.
            self.finish();
        }
        let block = block.replace("http://127.0.0.1:7420", &self.server.url());
        let waited = self.questions().is_empty();
        let child = self.shell(&block).spawn().unwrap();
        self.children.push((block, child));
        self.until("the command neither ends nor asks", |reader| {
            let ended = reader.children.last_mut().unwrap().1.try_wait().unwrap().is_some();
            ended || (waited && !reader.questions().is_empty())
        });
    }

    fn shell(&self, block: &str) -> Command {
        let mut shell = Command::new("sh");
        let programs = Path::new(env!("CARGO_BIN_EXE_runwire")).parent().unwrap().to_str().unwrap();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let newest = self.runs().first().map(|run| run["run_id"].as_str().unwrap().to_owned());
        shell.args(["-e", "-c", block]).current_dir(self.server.directory());
        shell.env("PATH", path).env("RUNWIRE_URL", self.server.url()).env("RUN", newest.unwrap_or_default());
        // curl counts a refusal as a success, unless it is told otherwise.
        fs::write(self.server.directory().join(".curlrc"), "fail\nsilent\nshow-error\n").unwrap();
        shell.env("CURL_HOME", self.server.directory());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        shell
    }

    /// Waits until every run and every command has ended; what nobody has answered is approved.
    fn finish(&mut self) {
        for question in self.questions() {
            let of = |member: &str| question[member].as_str().unwrap();
            let url = self.server.url();
            let all = ["answer", of("run_id"), of("interaction_id"), "--approve", "--url", &url];
            let answered = run(&all, "");
            assert_eq!(answered.code, 0, "{}", answered.stderr);
        }
        self.until("a run does not end", |reader| {
            reader.runs().iter().all(|run| run["status"] == "completed")
        });
        for (block, child) in self.children.drain(..) {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{block}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < TIMEOUT, "{what}: {:?}", self.runs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn questions(&self) -> Vec<Value> {
        self.list(&["inbox", "--json"], "interactions")
    }

    fn runs(&self) -> Vec<Value> {
        self.list(&["runs", "--json"], "runs")
    }

    fn list(&self, command: &[&str], member: &str) -> Vec<Value> {
        let listed = run(&[command, &["--url", &self.server.url()]].concat(), "");
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        listed[member].as_array().unwrap().clone()
    }
}

fn works_as_written(name: &str, text: &str) {
    let page = Page::read(name);
    let (port, serving) = agent(&page);
    let configuration = page.blocks("toml").concat().replace("127.0.0.1:9000", &format!("127.0.0.1:{port}"));
    let server = Server::configured(&configuration);
    let mut reader = Reader { server: &server, children: Vec::new() };
    for block in page.blocks("sh") {
        match block.strip_prefix(SCRIPT) {
            Some(script) => fs::write(server.directory().join("agent.sh"), script).unwrap(),
            None => reader.run(&block),
        }
    }
    reader.finish();
    serving.join().unwrap();
    let oldest = reader.runs().last().unwrap()["run_id"].as_str().unwrap().to_owned();
    let said = run(&["tail", &oldest, "-o", "text", "--url", &server.url()], "");
    assert_eq!(said.stdout.trim(), text, "{}", page.name);
}

#[test]
fn the_page_of_ag_ui_works_as_written() {
    works_as_written("ag-ui.md", "Paid.");
}

#[test]
fn the_page_of_agio_works_as_written() {
    works_as_written("agio.md", "Sunny, 21°C.");
}

#[test]
fn the_page_of_streaming_engine_works_as_written() {
    works_as_written("streaming-engine.md", "Sunny, 21°C.");
}

#[test]
fn the_page_of_easyflow_works_as_written() {
    works_as_written("easyflow.md", "Sunny, 21°C.");
}

#[test]
fn the_page_of_social_app_works_as_written() {
    works_as_written("social-app.md", "Sunny, 21°C.");
}

#[test]
fn the_page_of_loom_works_as_written() {
    works_as_written("loom.md", "It is gone.");
}

#[test]
fn every_page_is_tried_and_stands_in_the_index() {
    let own = include_str!("in_front_of.rs");
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.starts_with("README") {
            assert!(index.contains(&format!("]({name})")), "README.md does not name {name}");
            assert!(own.contains(&format!("works_as_written(\"{name}\"")), "{name} is not tried");
        }
    }
}
