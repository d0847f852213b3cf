//! Reads `[agents.NAME]`: the agents that the server starts.

use http::{HeaderName, HeaderValue, Uri};
use runwire_agents::{Agent, AgentKind, DemoAgent, ExecAgent, HttpAgent, demo_names};
use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;
use toml::de::{DeTable, DeValue};

use super::tables::{self, ConfigSource, Section, TableReader, alternatives, text_of};

const KINDS: [&str; 3] = ["http", "exec", "demo"];
const HTTP: [&str; 12] = [
    "kind",
    "url",
    "dialect",
    "strict",
    "whole",
    "headers",
    "answer_url",
    "cancel_url",
    "ca",
    "connect_seconds",
    "answer_seconds",
    "silence_seconds",
];
const EXEC: [&str; 7] = ["kind", "command", "dialect", "strict", "whole", "env", "cwd"];
const DEMO: [&str; 3] = ["kind", "script", "fast"];

/// Reads the agents, and reports all problems.
pub(super) fn read(source: ConfigSource<'_>, agents: &DeTable<'_>) -> Section<Agent> {
    tables::read(source, "agents", agents, agent)
}

fn agent(table: &mut TableReader<'_, '_>) -> Option<(Agent, String)> {
    let kind = table.required("kind", TableReader::one_of(&KINDS))?;
    let keys: &[&str] = match kind.as_str() {
        "http" => &HTTP,
        "exec" => &EXEC,
        _ => &DEMO,
    };
    table.check_keys("this kind of agent", keys);
    let (kind, shown) = match kind.as_str() {
        "http" => table.http(),
        "exec" => table.exec(),
        _ => table.demo(),
    }?;
    Some((Agent { name: table.name.to_owned(), kind }, shown))
}

fn strictly(strict: bool) -> &'static str {
    if strict { " (strict)" } else { "" }
}

impl TableReader<'_, '_> {
    fn http(&mut self) -> Option<(AgentKind, String)> {
        let shown = self.text("url");
        let url = self.required("url", address);
        let dialect = self.dialect();
        let strict = self.flag("strict");
        let whole = self.whole_policy();
        let headers = self.headers();
        let answer_url = self.optional("answer_url", address);
        let cancel_url = self.optional("cancel_url", address);
        let trusted = self.certificates();
        let times = ["connect_seconds", "answer_seconds", "silence_seconds"].map(|key| self.seconds(key));
        // All keys are read first, so that all problems are reported at once.
        let mut agent = HttpAgent::new(url?, dialect?);
        (agent.headers, agent.answer_url, agent.cancel_url) = (headers, answer_url, cancel_url);
        (agent.trusted, agent.strict, agent.whole) = (trusted, strict, whole);
        let own = [&mut agent.connect_time, &mut agent.answer_time, &mut agent.silence_time];
        for (own, time) in own.into_iter().zip(times) {
            *own = time.unwrap_or(*own);
        }
        let shown =
            format!("http, {}{}, {}", agent.dialect.name(), strictly(strict), shown.unwrap_or_default());
        Some((AgentKind::Http(agent), shown))
    }

    fn exec(&mut self) -> Option<(AgentKind, String)> {
        let command = self.command();
        let dialect = self.dialect();
        let strict = self.flag("strict");
        let whole = self.whole_policy();
        let env = self.text_map("env");
        let cwd = self.text("cwd");
        let mut agent = ExecAgent::new(command?, dialect?);
        (agent.env, agent.directory) = (env, cwd.map(Into::into));
        (agent.strict, agent.whole) = (strict, whole);
        let shown =
            format!("exec, {}{}, {}", agent.dialect.name(), strictly(strict), agent.command.join(" "));
        Some((AgentKind::Exec(agent), shown))
    }

    fn whole_policy(&mut self) -> WholePolicy {
        let names = WholePolicy::ALL.map(WholePolicy::name);
        let name = self.optional("whole", Self::one_of(&names));
        name.and_then(|name| WholePolicy::from_name(&name)).unwrap_or_default()
    }

    fn demo(&mut self) -> Option<(AgentKind, String)> {
        let fast = self.flag("fast");
        let names: Vec<_> = demo_names().collect();
        let script = match self.table.get("script") {
            Some(_) => self.required("script", Self::one_of(&names))?,
            None if names.contains(&self.name) => self.name.to_owned(),
            None => {
                let message = format!("must be there: {}", alternatives(&names));
                self.add_problem(self.line, Some("script"), message);
                return None;
            }
        };
        let shown = format!("demo, {script}{}", if fast { ", fast" } else { "" });
        Some((AgentKind::Demo(DemoAgent { script, fast }), shown))
    }

    fn dialect(&mut self) -> Option<Dialect> {
        let names: Vec<_> = Dialect::READABLE.iter().map(|dialect| dialect.name()).collect();
        self.required("dialect", Self::one_of(&names)).and_then(|name| Dialect::from_name(&name))
    }

    fn command(&mut self) -> Option<Vec<String>> {
        let must = "must be an array of texts, the program first, such as `[\"python3\", \"agent.py\"]`";
        let Some(value) = self.table.get("command") else {
            self.add_problem(self.line, Some("command"), must.to_owned());
            return None;
        };
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(words) => words.iter().map(|word| text_of(word.get_ref())).collect(),
            _ => None,
        };
        let words = words.filter(|words| words.first().is_some_and(|program| !program.is_empty()));
        if words.is_none() {
            self.add_problem(self.line_at(value.span().start), Some("command"), must.to_owned());
        }
        words
    }

    fn headers(&mut self) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        for (name, text) in self.text_map("headers") {
            let value = HeaderValue::from_str(&text).ok().map(|mut value| {
                value.set_sensitive(true);
                value
            });
            match (name.parse::<HeaderName>().ok(), value) {
                (Some(name), Some(value)) => headers.push((name, value)),
                _ => {
                    let key = format!("headers.{name}");
                    self.add_problem(self.line, Some(&key), "is no header of a request".to_owned());
                }
            }
        }
        headers
    }
}

fn address(text: String) -> Result<String, String> {
    // Placeholders are filled in for each run.
    let filled =
        ["{message}", "{run}", "{thread}"].iter().fold(text.clone(), |text, name| text.replace(name, "x"));
    let uri = filled.parse::<Uri>().ok();
    let is_http =
        uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    // The value may hold a secret from the environment, so it is not quoted.
    if is_http {
        Ok(text)
    } else {
        Err("must be an address that begins with `http://` or `https://`".to_owned())
    }
}
