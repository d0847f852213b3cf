//! The configuration file: TOML, flattened to dotted keys with line numbers.

use std::fs;
use std::path::{Path, PathBuf};

use runwire_agents::Agent;
use runwire_server::webhooks::Webhook;
use toml::de::{DeTable, DeValue};

use super::problem::ConfigProblem;
use super::secret_url::without_password;
use super::tables::{ConfigSource, Section};
use super::value::{InvalidValue, Setting, TomlType};
use super::{agents, webhooks};
use crate::failure::Failure;

/// The default configuration file.
pub(super) const DEFAULT_PATH: &str = "runwire.toml";
/// Sections with named tables.
const AGENTS: &str = "agents";
const WEBHOOKS: &str = "webhooks";

/// A parsed file; entries are removed as they are taken.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    entries: Vec<FileEntry>,
    pub(super) agents: Section<Agent>,
    pub(super) webhooks: Section<Webhook>,
}

#[derive(Debug)]
pub(super) struct FileEntry {
    /// The key with the tables it is in: `log.level`.
    pub(super) key: String,
    pub(super) line: usize,
    value: FileValue,
}

#[derive(Debug)]
enum FileValue {
    Text(String),
    Number(String),
    Switch(bool),
    Other(&'static str),
}

/// Reads the text of a file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::Read { name: path.display().to_string(), error })
}

impl ConfigFile {
    /// Parses the text of a file.
    ///
    /// `variable` looks up environment variables, which agents and webhooks may refer to.
    pub(super) fn parse(
        path: &Path,
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Box<ConfigProblem>> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            Box::new(ConfigProblem::in_file(
                path,
                line,
                format!("is no TOML: {}", error.message().trim_end()),
            ))
        })?;
        let mut entries = Vec::new();
        flatten(text, "", table.get_ref(), &mut entries);
        entries.sort_by_key(|entry| entry.line);
        let source = ConfigSource { path, text, variable };
        let section = |name: &str| match table.get_ref().get(name).map(toml::Spanned::get_ref) {
            Some(DeValue::Table(table)) => Some(table),
            _ => None,
        };
        let agents = section(AGENTS).map(|table| agents::read(source, table)).unwrap_or_default();
        let webhooks = section(WEBHOOKS).map(|table| webhooks::read(source, table)).unwrap_or_default();
        Ok(Self { path: path.to_owned(), entries, agents, webhooks })
    }

    /// Takes the entry of a key.
    pub(super) fn take(&mut self, key: &str) -> Option<FileEntry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Returns the entries that were not taken.
    pub(super) fn unused(&self) -> impl Iterator<Item = &FileEntry> {
        self.entries.iter()
    }
}

impl FileEntry {
    pub(super) fn parse<T: Setting>(&self) -> Result<T, String> {
        let wrong = |is: &str| Err(format!("{}, and is {is}", InvalidValue::not_allowed::<T>()));
        let text = match &self.value {
            FileValue::Text(text) if matches!(T::TOML_TYPE, TomlType::Text | TomlType::TextOrNumber) => text,
            FileValue::Number(number)
                if matches!(T::TOML_TYPE, TomlType::Number | TomlType::TextOrNumber) =>
            {
                number
            }
            FileValue::Switch(on) if T::TOML_TYPE == TomlType::Switch => &on.to_string(),
            FileValue::Text(_) => return wrong("a string: write it without quotes"),
            FileValue::Number(_) if T::TOML_TYPE == TomlType::Switch => return wrong("a number"),
            FileValue::Number(_) => return wrong("a number: write it in quotes"),
            FileValue::Switch(on) => return wrong(&format!("`{on}`")),
            FileValue::Other(kind) => return wrong(kind),
        };
        text.parse::<T>().map_err(|wrong| format!("{wrong}, and is `{}`", without_password(text)))
    }
}

fn flatten(text: &str, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<FileEntry>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let line = line_of(text, name.span().start);
        let value = match value.get_ref() {
            // These are read as named tables.
            DeValue::Table(_) if key == AGENTS || key == WEBHOOKS => continue,
            DeValue::Table(table) if !table.is_empty() => {
                flatten(text, &format!("{key}."), table, entries);
                continue;
            }
            DeValue::String(text) => FileValue::Text(text.clone().into_owned()),
            DeValue::Integer(number) => FileValue::Number(in_decimal(number.as_str(), number.radix())),
            DeValue::Float(number) => FileValue::Number(number.as_str().to_owned()),
            DeValue::Boolean(on) => FileValue::Switch(*on),
            DeValue::Datetime(_) => FileValue::Other("a date"),
            DeValue::Array(_) => FileValue::Other("an array"),
            DeValue::Table(_) => FileValue::Other("a table"),
        };
        entries.push(FileEntry { key, line, value });
    }
}

fn in_decimal(digits: &str, radix: u32) -> String {
    i128::from_str_radix(digits, radix).map_or_else(|_| digits.to_owned(), |number| number.to_string())
}

/// Returns the line of an offset, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
