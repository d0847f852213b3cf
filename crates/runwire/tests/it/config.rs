//! The configuration: precedence, origins of values, and messages for mistakes.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Outcome, run_command, runwire};

pub(crate) struct ConfigFolder {
    directory: TempDir,
}

impl ConfigFolder {
    pub(crate) fn with(file: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("runwire.toml"), file).unwrap();
        Self { directory }
    }

    pub(crate) fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
        let mut command = runwire(arguments);
        command.current_dir(self.directory.path()).envs(variables.iter().copied());
        run_command(&mut command, "")
    }

    /// Returns a setting's value and origin.
    fn setting(&self, key: &str, variables: &[(&str, &str)], flags: &[&str]) -> (String, Value) {
        let outcome = self.run(variables, &[&["check-config", "--json"], flags].concat());
        let all: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((outcome.code, &all["valid"]), (0, &json!(true)), "{all:#}");
        let settings = all["settings"].as_array().unwrap();
        let setting = settings.iter().find(|setting| setting["key"] == key).unwrap();
        (setting["value"].as_str().unwrap().to_owned(), setting["from"].clone())
    }
}

const EVERYTHING: &str = r#"
listen = "127.0.0.1:8001"
store = "postgres://ann@file/db"
tail = "redis://file:6379"
lease_seconds = 11
cancel_seconds = 12
keep_alive_seconds = 13
connections = 14
memory_budget = "64MiB"
console = false
agents_at_once = 15
agents_open = 16
default_agent = "show"
allowed_hosts = "file.example"

[log]
level = "warn"
format = "json"

[retention]
age = "15d"
bytes = "16GiB"

[slots]
agio = "all"
social_app = "none"

[agents.demo]
kind = "demo"

[agents.show]
kind = "demo"
script = "demo"
"#;

/// Key, its line in `EVERYTHING` and value there, variable and value, flag and value.
type Row =
    (&'static str, u64, &'static str, &'static str, &'static str, Option<(&'static str, &'static str)>);

const EVERY_SETTING: [Row; 18] = [
    ("listen", 2, "127.0.0.1:8001", "RUNWIRE_LISTEN", "127.0.0.1:8002", Some(("--listen", "127.0.0.1:8003"))),
    (
        "store",
        3,
        "postgres://ann@file/db",
        "RUNWIRE_STORE",
        "postgres://ann@variable/db",
        Some(("--store", "postgresql://ann@flag/db")),
    ),
    (
        "tail",
        4,
        "redis://file:6379",
        "RUNWIRE_TAIL",
        "redis://variable:6379",
        Some(("--tail", "rediss://flag:6379")),
    ),
    ("lease_seconds", 5, "11", "RUNWIRE_LEASE_SECONDS", "21", Some(("--lease", "31"))),
    ("cancel_seconds", 6, "12", "RUNWIRE_CANCEL_SECONDS", "22", None),
    ("keep_alive_seconds", 7, "13", "RUNWIRE_KEEP_ALIVE_SECONDS", "23", None),
    ("connections", 8, "14", "RUNWIRE_CONNECTIONS", "24", None),
    ("memory_budget", 9, "64MiB", "RUNWIRE_MEMORY_BUDGET", "128MiB", None),
    ("agents_at_once", 11, "15", "RUNWIRE_AGENTS_AT_ONCE", "25", None),
    ("agents_open", 12, "16", "RUNWIRE_AGENTS_OPEN", "26", None),
    ("default_agent", 13, "show", "RUNWIRE_DEFAULT_AGENT", "demo", None),
    (
        "allowed_hosts",
        14,
        "file.example",
        "RUNWIRE_ALLOWED_HOSTS",
        "*.variable, 192.0.2.7",
        Some(("--allowed-hosts", "*")),
    ),
    ("log.level", 17, "warn", "RUNWIRE_LOG_LEVEL", "debug", Some(("--log-level", "error"))),
    ("log.format", 18, "json", "RUNWIRE_LOG_FORMAT", "text", Some(("--log-format", "json"))),
    ("retention.age", 21, "15d", "RUNWIRE_RETENTION_AGE", "25h", Some(("--retention-age", "35m"))),
    ("retention.bytes", 22, "16GiB", "RUNWIRE_RETENTION_BYTES", "26MB", Some(("--retention-bytes", "36KiB"))),
    ("slots.agio", 25, "all", "RUNWIRE_SLOTS_AGIO", "none", None),
    ("slots.social_app", 26, "none", "RUNWIRE_SLOTS_SOCIAL_APP", "asks", None),
];

#[test]
fn a_flag_wins_over_a_variable_which_wins_over_the_file_which_wins_over_the_default() {
    let (nothing, file) = (ConfigFolder::with(""), ConfigFolder::with(EVERYTHING));
    for (key, line, in_file, variable, in_variable, flag) in EVERY_SETTING {
        let (default, from) = nothing.setting(key, &[], &[]);
        assert_eq!(from, "default", "{key}");
        assert_ne!(default, in_file, "{key}");
        let at = json!({"file": "runwire.toml", "line": line});
        assert_eq!(file.setting(key, &[], &[]), (in_file.to_owned(), at.clone()));
        assert_eq!(file.setting(key, &[(variable, "")], &[]), (in_file.to_owned(), at));
        let variables = [(variable, in_variable)];
        let from = json!({"variable": variable});
        assert_eq!(file.setting(key, &variables, &[]), (in_variable.to_owned(), from));
        if let Some((flag, on_flag)) = flag {
            let from = json!({"flag": flag});
            assert_eq!(file.setting(key, &variables, &[flag, on_flag]), (on_flag.to_owned(), from));
        }
    }
}

#[test]
fn check_config_shows_each_setting_with_its_value_and_where_it_comes_from() {
    let place = ConfigFolder::with("# ours\n[retention]\nage = \"30d\"\n");
    let outcome = place.run(&[("RUNWIRE_LEASE_SECONDS", "90")], &["check-config", "--listen", "127.0.0.1:0"]);
    let expected = "\
SETTING                 VALUE              FROM
listen                  127.0.0.1:0        --listen
allowed_hosts           none               default
store                   sqlite:runwire.db  default
tail                    none               default
tail_trust              none               default
lease_seconds           90                 RUNWIRE_LEASE_SECONDS
cancel_seconds          30                 default
keep_alive_seconds      15                 default
connections             50000              default
memory_budget           auto               default
agents_at_once          256                default
agents_open             4096               default
default_agent           none               default
console                 true               default
log.level               info               default
log.format              text               default
retention.age           30d                runwire.toml:3
retention.bytes         none               default
slots.ag_ui             all                default
slots.agio              asks               default
slots.easyflow_chat     all                default
slots.loom              all                default
slots.social_app        all                default
slots.streaming_engine  all                default
";
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (0, expected, ""));
}

#[test]
fn the_console_can_be_switched_off_in_every_place() {
    let (nothing, file) = (ConfigFolder::with(""), ConfigFolder::with(EVERYTHING));
    let told = |value: &str, from: Value| (value.to_owned(), from);
    assert_eq!(nothing.setting("console", &[], &[]), told("true", json!("default")));
    let at = json!({"file": "runwire.toml", "line": 10});
    assert_eq!(file.setting("console", &[], &[]), told("false", at));
    let variable = [("RUNWIRE_CONSOLE", "true")];
    assert_eq!(file.setting("console", &variable, &[]), told("true", json!({"variable": "RUNWIRE_CONSOLE"})));
    let flag = file.setting("console", &variable, &["--no-console"]);
    assert_eq!(flag, told("false", json!({"flag": "--no-console"})));
    let wrong = ConfigFolder::with("console = \"no\"\n").run(&[], &["check-config"]);
    let said =
        "runwire.toml:1: `console`: must be `true` or `false`, and is a string: write it without quotes";
    assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
}

#[test]
fn an_unknown_default_agent_is_reported_with_the_known_ones() {
    let agents = "\n[agents.planner]\nkind = \"demo\"\nscript = \"demo\"\n\n[agents.demo]\nkind = \"demo\"\n";
    let said = |file: &str| ConfigFolder::with(file).run(&[], &["check-config"]).stderr;
    let wrong = "runwire.toml:1: `default_agent`: must be the name of an agent, and no agent is called";
    assert_eq!(
        said(&format!("default_agent = \"planer\"\n{agents}")),
        format!("{wrong} `planer`\n  hint: is `planner` meant?\n")
    );
    assert_eq!(
        said(&format!("default_agent = \"else\"\n{agents}")),
        format!("{wrong} `else`\n  hint: there are planner, demo\n")
    );
    assert!(said("default_agent = \"demo\"\n").contains("there are none"));
    let mistaken = said("default_agent = \"demo\"\n[agents.planner]\nkind = \"http\"\n");
    assert!(mistaken.contains("mistakes of their own") && !mistaken.contains("there are none"), "{mistaken}");
    let variable = [("RUNWIRE_DEFAULT_AGENT", "else")];
    let told = ConfigFolder::with(agents).run(&variable, &["serve"]).stderr;
    assert!(told.starts_with("RUNWIRE_DEFAULT_AGENT: must be the name of an agent"), "{told}");
    // Of an agent that has a mistake of its own, that one alone is told.
    let told = said("default_agent = \"a\"\n\n[agents.a]\nkind = \"dmeo\"\n");
    assert!(told.contains("agents.a.kind") && !told.contains("default_agent"), "{told}");
}

#[test]
fn every_mistake_is_reported_with_file_line_key_and_allowed_values() {
    let place = ConfigFolder::with(
        r#"listen = 7420
stroe = "sqlite:runwire.db"
lease_seconds = "60"
connections = 0
keep_alive_seconds = true

[log]
level = "loud"
colour = "red"

[retention]
age = "30"

[agents.demo]
kind = "dmeo"
"#,
    );
    let variables =
        [("RUNWIRE_STORE", "mysql://ann:secret@localhost/runwire"), ("RUNWIRE_LISTN", "127.0.0.1:1")];
    let outcome = place.run(&variables, &["check-config"]);
    let all = "there are listen, allowed_hosts, store, tail, tail_trust, lease_seconds, cancel_seconds, keep_alive_seconds, connections, memory_budget, \
               agents_at_once, agents_open, default_agent, console, log.level, log.format, retention.age, retention.bytes, \
               slots.ag_ui, slots.agio, slots.easyflow_chat, slots.loom, slots.social_app, slots.streaming_engine";
    let expected = format!(
        "\
note: the variable RUNWIRE_LISTN means nothing here; is RUNWIRE_LISTEN meant?
runwire.toml:1: `listen`: must be an IP address and a port, such as `127.0.0.1:7420` (port 0: any that is free), and is a number: write it in quotes
runwire.toml:2: `stroe`: is no setting
  hint: is `store` meant?
runwire.toml:3: `lease_seconds`: must be a whole number of seconds from 1 to 86400, and is a string: write it without quotes
runwire.toml:4: `connections`: must be a whole number from 1 to 1000000, and is `0`
runwire.toml:5: `keep_alive_seconds`: must be a whole number of seconds from 1 to 86400, and is `true`
runwire.toml:8: `log.level`: must be `error`, `warn`, `info`, `debug` or `trace`, and is `loud`
runwire.toml:9: `log.colour`: is no setting
  hint: {all}
runwire.toml:12: `retention.age`: must be a whole number and a unit (`90s`, `15m`, `12h`, `30d`, `8w`), or `none`, and is `30`
runwire.toml:15: `agents.demo.kind`: must be `http`, `exec` or `demo`, and is `dmeo`
RUNWIRE_STORE: must be `sqlite:PATH`, such as `sqlite:runwire.db`, or `postgres://USER:PASSWORD@HOST/DATABASE`, and is `mysql://ann:***@localhost/runwire`
"
    );
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert_eq!(outcome.stderr, expected);
    let json: Value =
        serde_json::from_str(&place.run(&variables, &["check-config", "--json"]).stdout).unwrap();
    assert_eq!((&json["valid"], json["problems"].as_array().map(Vec::len)), (&json!(false), Some(10)));
    assert_eq!(json["problems"][1]["line"], 2);
}

#[test]
fn a_mistake_is_reported_even_if_it_is_overridden() {
    let place = ConfigFolder::with("lease_seconds = 0\n");
    let outcome = place.run(&[("RUNWIRE_LEASE_SECONDS", "soon")], &["check-config", "--lease", "5"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("runwire.toml:1: `lease_seconds`"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("RUNWIRE_LEASE_SECONDS: must be"), "{}", outcome.stderr);
}

#[test]
fn a_server_does_not_start_with_a_mistake() {
    let place = ConfigFolder::with("listen = \"127.0.0.1:0\"\nlease = 5\n");
    let outcome = place.run(&[], &["serve"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(outcome.stderr.contains("runwire.toml:2: `lease`: is no setting"), "{}", outcome.stderr);
    assert!(!place.directory.path().join("runwire.db").exists());
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let outcome =
        ConfigFolder::with("listen = \"127.0.0.1:0\"\nstore = sqlite\n").run(&[], &["check-config"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.starts_with("runwire.toml:2: is no TOML: "), "{}", outcome.stderr);
}

#[test]
fn the_given_file_is_read() {
    let place = ConfigFolder::with("connections = 1\n");
    fs::write(place.directory.path().join("other.toml"), "connections = 2\n").unwrap();
    let flag =
        place.setting("connections", &[("RUNWIRE_CONFIG", "runwire.toml")], &["--config", "other.toml"]);
    assert_eq!(flag, ("2".to_owned(), json!({"file": "other.toml", "line": 1})));
    let variable = place.setting("connections", &[("RUNWIRE_CONFIG", "other.toml")], &[]);
    assert_eq!(variable.0, "2");
    let missing = place.run(&[], &["check-config", "--config", "none.toml"]);
    assert_eq!(missing.code, 3);
    assert!(missing.stderr.contains("cannot read none.toml"), "{}", missing.stderr);
}

#[test]
fn the_document_names_every_setting_with_its_flag_and_default() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let document = fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let all = ConfigFolder::with("").run(&[], &["check-config", "--json"]).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let settings = all["settings"].as_array().unwrap();
    assert_eq!(rows.len(), settings.len());
    for (row, setting) in rows.iter().zip(settings) {
        let key = setting["key"].as_str().unwrap();
        let flag = EVERY_SETTING.iter().find(|(known, ..)| *known == key).and_then(|(.., flag)| *flag);
        let apart = [("console", "--no-console"), ("tail_trust", "--tail-trust")];
        let apart = apart.iter().find(|(known, _)| *known == key).map(|(_, flag)| *flag);
        let flag = flag.map(|(flag, _)| flag).or(apart);
        let flag = flag.map_or_else(|| "–".to_owned(), |flag| format!("`{flag}`"));
        let beginning = format!("| `{key}` | {flag} | `{}` |", setting["value"].as_str().unwrap());
        assert!(row.starts_with(&beginning), "{row}\nshould begin with\n{beginning}");
    }
    let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let outcome = ConfigFolder::with(example).run(&[], &["check-config"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    // All of them, and the agent that is the default.
    assert_eq!(outcome.stdout.matches("runwire.toml:").count(), settings.len() + 1);
}

const AGENTS: &str = r#"
[agents.planner]
kind = "http"
url = "https://agents.example.org/run?q={message}&key=${AGENT_KEY}"
dialect = "ag-ui"
headers = { authorization = "Bearer ${AGENT_KEY}", x-price = "5$$" }
silence_seconds = 20

[agents."my program"]
kind = "exec"
command = ["sh", "-c", "echo ${HOME}"]
dialect = "loom"
env = { KEY = "${AGENT_KEY}" }
cwd = "/tmp"

[agents.show]
kind = "demo"
script = "thought-tree"
fast = true
"#;

#[test]
fn agents_are_shown_without_values_of_the_environment() {
    let outcome = ConfigFolder::with(AGENTS).run(&[("AGENT_KEY", "s3cret")], &["check-config"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for line in [
        "agents.planner          http, ag-ui, https://agents.example.org/run?q={message}&key=${AGENT_KEY}  runwire.toml:2",
        "agents.my program       exec, loom, sh -c echo ${HOME}",
        "agents.show             demo, thought-tree, fast",
    ] {
        assert!(outcome.stdout.contains(line), "{line}\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("s3cret"));
}

#[test]
fn a_webhook_that_would_be_refused_is_noted() {
    let noted = |url: &str, more: &str| {
        let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
        let file = format!("[webhooks.chat]\nurl = \"{url}\"\nsecret = \"{secret}\"\n{more}");
        let outcome = ConfigFolder::with(&file).run(&[], &["check-config"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stderr.contains("the webhook chat is told nothing")
    };
    for (url, is_refused) in
        [("http://127.0.0.1:9/x", true), ("https://localhost/x", true), ("https://chat.example.com/x", false)]
    {
        assert_eq!(noted(url, ""), is_refused, "{url}");
        assert!(!noted(url, "allow_private = true\n"), "{url}");
    }
}

#[test]
fn every_mistake_in_an_agent_is_reported_with_its_line_and_key() {
    let place = ConfigFolder::with(
        r#"[agents.a]
kind = "http"
url = "agents.example.org"
dialect = "text"
headers = { authorization = "Bearer ${AGENT_KEY}" }
timeout = 5

[agents.b]
kind = "exec"
command = "python agent.py"

[agents.c]
kind = "demo"
fast = "yes"

[agents.d]
url = "http://x/"

[agents.e]
kind = "http"
url = "http://x/$HOME"
dialect = "loom"
silence_seconds = 0
ca = "none.pem"
headers = { "bad name" = "x" }
"#,
    );
    let outcome = place.run(&[], &["check-config"]);
    assert_eq!(outcome.code, 1);
    for expected in [
        "runwire.toml:3: `agents.a.url`: must be an address that begins with `http://` or `https://`",
        "runwire.toml:4: `agents.a.dialect`: must be `runwire`,",
        "runwire.toml:5: `agents.a.headers.authorization`: the variable AGENT_KEY is not set",
        "runwire.toml:6: `agents.a.timeout`: is no setting of this kind of agent\n  hint: there are kind, url",
        "runwire.toml:10: `agents.b.command`: must be an array of texts",
        "runwire.toml:8: `agents.b.dialect`: is missing: must be `runwire`,",
        "runwire.toml:12: `agents.c.script`: must be there: `demo`, `thought-tree`",
        "runwire.toml:14: `agents.c.fast`: must be `true` or `false`",
        "runwire.toml:16: `agents.d.kind`: is missing: must be `http`, `exec` or `demo`",
        "runwire.toml:21: `agents.e.url`: has a `$` that is no `${NAME}`",
        "runwire.toml:23: `agents.e.silence_seconds`: must be a whole number of seconds from 1 to 86400",
        "`agents.e.ca`: cannot read none.pem",
        "`agents.e.headers.bad name`: is no header of a request",
    ] {
        assert!(outcome.stderr.contains(expected), "{expected}\n{}", outcome.stderr);
    }
}

#[test]
fn every_agent_in_the_document_can_be_configured_so() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = fs::read_dir(docs.join("in-front-of")).unwrap().map(|page| page.unwrap().path());
    let pages = pages.chain([docs.join("agents.md")]);
    let document: String = pages.map(|page| fs::read_to_string(page).unwrap()).collect();
    let examples: Vec<_> =
        document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 7);
    for example in examples {
        let outcome = ConfigFolder::with(example).run(&[("PLANNER_KEY", "x")], &["check-config"]);
        assert_eq!(outcome.code, 0, "{example}\n{}", outcome.stderr);
        assert_eq!(outcome.stdout.matches("\nagents.").count(), example.matches("[agents.").count());
    }
}
