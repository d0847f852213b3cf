//! Resolves each setting: a flag wins over a variable, over the file, over the default.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use runwire_agents::Agent;
use runwire_server::webhooks::Webhook;

use super::file::{self, ConfigFile};
use super::problem::ConfigProblem;
use super::secret_url::without_password;
use super::tables::Section;
use super::value::{DefaultAgent, Setting};
use crate::failure::Failure;
use crate::nearest::nearest;

const PREFIX: &str = "RUNWIRE_";

/// Variables with this prefix that are not settings of the server.
const OTHER_VARIABLES: [&str; 3] = ["RUNWIRE_CONFIG", "RUNWIRE_TOKEN", "RUNWIRE_URL"];

/// The file and the environment, and the settings resolved so far.
pub(super) struct Layers {
    file: Option<ConfigFile>,
    variables: BTreeMap<String, String>,
    resolved: Vec<ResolvedSetting>,
    /// The named tables.
    named: Vec<ResolvedSetting>,
    problems: Vec<ConfigProblem>,
}

/// A setting with its value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedSetting {
    pub(crate) key: Cow<'static, str>,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(String),
    File { path: PathBuf, line: usize },
    Default,
}

impl Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => formatter.write_str(name),
            Self::Variable(name) => formatter.write_str(name),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

impl Layers {
    /// Reads the given file, else the default one if it exists.
    pub(super) fn new(
        named: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, Failure> {
        let variables: BTreeMap<String, String> = variables.collect();
        let variable = |name: &str| variables.get(name).cloned();
        let default = Path::new(file::DEFAULT_PATH);
        let mut problems = Vec::new();
        let file = match named.or_else(|| default.exists().then_some(default)) {
            Some(path) => {
                let file = ConfigFile::parse(path, &file::read_text(path)?, &variable);
                file.map_err(|problem| problems.push(*problem)).ok()
            }
            None => None,
        };
        let variables = variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        Ok(Self { file, variables, resolved: Vec::new(), named: Vec::new(), problems })
    }

    /// Resolves a setting. All layers are parsed, so that a problem is reported even if it is overridden.
    pub(super) fn take<T: Setting>(
        &mut self,
        key: &'static str,
        flag: Option<(&'static str, T)>,
        default: T,
    ) -> T {
        let in_file = self.read_file(key);
        let in_variable = self.read_variable(key);
        let (value, origin) = flag
            .map(|(name, value)| (value, Origin::Flag(name)))
            .or(in_variable)
            .or(in_file)
            .unwrap_or((default, Origin::Default));
        self.resolved.push(ResolvedSetting { key: key.into(), value: value.to_string(), origin });
        value
    }

    /// Takes the agents, in the order of the file.
    pub(super) fn take_agents(&mut self) -> Vec<Agent> {
        self.take_section("agents", |file| &mut file.agents)
    }

    /// Resolves the default agent, which must be one of `agents`.
    pub(super) fn take_default_agent(&mut self, agents: &[&str], default: Option<&str>) -> Option<String> {
        const KEY: &str = "default_agent";
        let default = DefaultAgent(default.map(ToOwned::to_owned));
        let DefaultAgent(Some(name)) = self.take(KEY, None, default) else { return None };
        // An agent with a problem of its own is not reported twice.
        let is_there = agents.contains(&&*name);
        let is_known = is_there || self.problems.iter().any(|problem| problem.is_about(&["agents", &name]));
        if !is_known {
            let message = format!("must be the name of an agent, and no agent is called `{name}`");
            let near = nearest(&name, agents).map(|near| format!("is `{near}` meant?"));
            let all = match agents {
                [] if self.problems.iter().any(|problem| problem.is_about(&["agents"])) => {
                    "the agents that there are have mistakes of their own".to_owned()
                }
                [] => "there are none: an agent is a table `[agents.NAME]`".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            self.add_problem(KEY, message, near.or(Some(all)));
        }
        is_there.then_some(name)
    }

    /// Takes the webhooks, in the order of the file.
    pub(super) fn take_webhooks(&mut self) -> Vec<Webhook> {
        self.take_section("webhooks", |file| &mut file.webhooks)
    }

    /// Adds a problem of a resolved setting.
    pub(super) fn add_problem(&mut self, key: &str, message: String, hint: Option<String>) {
        let origin = self.resolved.iter().find(|setting| setting.key == key).map(|setting| &setting.origin);
        let problem = ConfigProblem::at(origin.unwrap_or(&Origin::Default), key, message);
        self.problems.push(problem.hint(hint));
    }

    fn take_section<T>(
        &mut self,
        section: &str,
        of: impl FnOnce(&mut ConfigFile) -> &mut Section<T>,
    ) -> Vec<T> {
        let Some(file) = &mut self.file else { return Vec::new() };
        let (tables, problems) = std::mem::take(of(file));
        self.problems.extend(problems);
        let mut values = Vec::new();
        for found in tables {
            let origin = Origin::File { path: file.path.clone(), line: found.line };
            let key = format!("{section}.{}", found.name).into();
            self.named.push(ResolvedSetting { key, value: found.shown, origin });
            values.push(found.value);
        }
        values
    }

    fn read_file<T: Setting>(&mut self, key: &str) -> Option<(T, Origin)> {
        let file = self.file.as_mut()?;
        let entry = file.take(key)?;
        match entry.parse() {
            Ok(value) => Some((value, Origin::File { path: file.path.clone(), line: entry.line })),
            Err(wrong) => {
                self.problems.push(ConfigProblem::in_file(&file.path, entry.line, wrong).about(key));
                None
            }
        }
    }

    fn read_variable<T: Setting>(&mut self, key: &str) -> Option<(T, Origin)> {
        let name = variable(key);
        // An empty variable counts as not set.
        let text = self.variables.remove(&name).filter(|text| !text.is_empty())?;
        match text.parse() {
            Ok(value) => Some((value, Origin::Variable(name))),
            Err(wrong) => {
                let message = format!("{wrong}, and is `{}`", without_password(&text));
                self.problems.push(ConfigProblem::in_variable(&name, key, message));
                None
            }
        }
    }

    /// Returns the resolved settings, the problems, and notes on unknown variables.
    pub(super) fn finish(mut self) -> (Vec<ResolvedSetting>, Vec<ConfigProblem>, Vec<String>) {
        let keys: Vec<&str> = self.resolved.iter().map(|setting| &*setting.key).collect();
        if let Some(file) = &self.file {
            for entry in file.unused() {
                let near = nearest(&entry.key, &keys).map(|key| format!("is `{key}` meant?"));
                let all = format!("there are {}", keys.join(", "));
                let problem = ConfigProblem::in_file(&file.path, entry.line, "is no setting".to_owned());
                self.problems.push(problem.about(&entry.key).hint(near.or(Some(all))));
            }
        }
        // The file's problems in the order of its lines, then those of variables.
        self.problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        let names: Vec<String> = keys.iter().map(|key| variable(key)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let unknown = self.variables.keys().filter(|name| !OTHER_VARIABLES.contains(&name.as_str()));
        let notes = unknown
            .filter_map(|name| Some((name, nearest(name, &names)?)))
            .map(|(name, near)| format!("the variable {name} means nothing here; is {near} meant?"))
            .collect();
        self.resolved.append(&mut self.named);
        (self.resolved, self.problems, notes)
    }
}

/// Returns the variable of a setting: `log.level` is `RUNWIRE_LOG_LEVEL`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}
