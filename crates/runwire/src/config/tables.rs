//! Reader of named tables such as `[agents.NAME]`: typed values, interpolated variables, problems with lines.

use std::fs;
use std::path::Path;
use std::time::Duration;

use runwire_server::limits::ID_BYTES;
use toml::de::{DeTable, DeValue};

use super::file::line_of;
use super::problem::ConfigProblem;
use crate::nearest::nearest;

/// A parsed table with its line, and its text for `check-config`, which hides values from the environment.
#[derive(Debug, Clone)]
pub(super) struct NamedTable<T> {
    pub(super) name: String,
    pub(super) value: T,
    pub(super) line: usize,
    pub(super) shown: String,
}

/// The tables of a section, and their problems.
pub(super) type Section<T> = (Vec<NamedTable<T>>, Vec<ConfigProblem>);

/// The file, and the environment that its tables may refer to.
#[derive(Clone, Copy)]
pub(super) struct ConfigSource<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads the tables of a section in the order of the file; `one` returns a table's value and shown text.
pub(super) fn read<T>(
    source: ConfigSource<'_>,
    section: &'static str,
    tables: &DeTable<'_>,
    one: impl Fn(&mut TableReader<'_, '_>) -> Option<(T, String)>,
) -> Section<T> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in tables {
        let line = line_of(source.text, name.span().start);
        let name = name.get_ref().to_string();
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("must be a table, such as `[{section}.NAME]`");
            problems
                .push(ConfigProblem::in_file(source.path, line, message).about(&format!("{section}.{name}")));
            continue;
        };
        let mut reader = TableReader { source, section, name: &name, line, table, problems: &mut problems };
        if let Some((value, shown)) = reader.read_with(&one) {
            found.push(NamedTable { name, value, line, shown });
        }
    }
    found.sort_by_key(|found| found.line);
    (found, problems)
}

/// Reads one table and collects its problems.
pub(super) struct TableReader<'a, 't> {
    source: ConfigSource<'a>,
    section: &'static str,
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) table: &'a DeTable<'t>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl<'a, 't> TableReader<'a, 't> {
    /// Returns the value if the table has no problems.
    fn read_with<T>(&mut self, one: impl Fn(&mut TableReader<'a, 't>) -> Option<T>) -> Option<T> {
        let before = self.problems.len();
        if !(1..=ID_BYTES).contains(&self.name.len()) || self.name.contains(char::is_control) {
            self.add_problem(self.line, None, "a name has 1 to 256 bytes without control characters".into());
        }
        one(self).filter(|_| self.problems.len() == before)
    }

    /// Reports each key that `what` does not have.
    pub(super) fn check_keys(&mut self, what: &str, allowed: &[&str]) {
        let unknown = self.table.keys().filter(|key| !allowed.contains(&&**key.get_ref()));
        for key in unknown {
            let line = self.line_at(key.span().start);
            let near = nearest(key.get_ref(), allowed).map(|near| format!("is `{near}` meant?"));
            let hint = near.or_else(|| Some(format!("there are {}", allowed.join(", "))));
            let about = format!("{}.{}.{}", self.section, self.name, key.get_ref());
            let problem = ConfigProblem::in_file(self.source.path, line, format!("is no setting of {what}"));
            self.problems.push(problem.about(&about).hint(hint));
        }
    }

    pub(super) fn certificates(&mut self) -> Vec<u8> {
        let Some(file) = self.text("ca") else { return Vec::new() };
        fs::read(&file).unwrap_or_else(|error| {
            self.add_problem(self.line, Some("ca"), format!("cannot read {file}: {error}"));
            Vec::new()
        })
    }

    pub(super) fn seconds(&mut self, key: &str) -> Option<Duration> {
        let value = self.table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let seconds = number.filter(|seconds| (1..=86_400).contains(seconds));
        if seconds.is_none() {
            let message = "must be a whole number of seconds from 1 to 86400".to_owned();
            self.add_problem(self.line_at(value.span().start), Some(key), message);
        }
        seconds.map(Duration::from_secs)
    }

    /// Reads a table of strings with interpolated variables.
    pub(super) fn text_map(&mut self, key: &str) -> Vec<(String, String)> {
        let Some(value) = self.table.get(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            let message = "must be a table of texts, such as `{ name = \"value\" }`".to_owned();
            self.add_problem(self.line_at(value.span().start), Some(key), message);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (name, value) in table {
            let line = self.line_at(name.span().start);
            let about = format!("{key}.{}", name.get_ref());
            match text_of(value.get_ref()) {
                Some(text) => match self.interpolate(&text) {
                    Ok(text) => texts.push((name.get_ref().to_string(), text)),
                    Err(wrong) => self.add_problem(line, Some(&about), wrong),
                },
                None => self.add_problem(line, Some(&about), "must be a text".to_owned()),
            }
        }
        texts
    }

    /// Reads a string without interpolation.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.table.get(key)?;
        let text = text_of(value.get_ref());
        if text.is_none() {
            self.add_problem(self.line_at(value.span().start), Some(key), "must be a text".to_owned());
        }
        text
    }

    pub(super) fn required(
        &mut self,
        key: &str,
        parse: impl Fn(String) -> Result<String, String>,
    ) -> Option<String> {
        if self.table.get(key).is_none() {
            let must = parse(String::new()).err().unwrap_or_default();
            self.add_problem(self.line, Some(key), format!("is missing: {must}"));
            return None;
        }
        self.optional(key, parse)
    }

    pub(super) fn optional(
        &mut self,
        key: &str,
        parse: impl Fn(String) -> Result<String, String>,
    ) -> Option<String> {
        let line = self.line_at(self.table.get(key)?.span().start);
        let text = self.text(key)?;
        match self.interpolate(&text).and_then(parse) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.add_problem(line, Some(key), wrong);
                None
            }
        }
    }

    pub(super) fn one_of(names: &[&str]) -> impl Fn(String) -> Result<String, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        move |text| {
            if names.contains(&text) {
                return Ok(text);
            }
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            let is = if text.is_empty() { String::new() } else { format!(", and is `{text}`") };
            Err(format!("must be {}{is}", alternatives(&all)))
        }
    }

    /// Interpolates variables: `${NAME}` is a variable's value, `$$` a dollar.
    fn interpolate(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            filled.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                filled.push('$');
                rest = after;
                continue;
            }
            let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let Some((name, after)) = name else {
                return Err("has a `$` that is no `${NAME}`; a dollar is written `$$`".to_owned());
            };
            match (self.source.variable)(name).filter(|value| !value.is_empty()) {
                Some(value) => filled.push_str(&value),
                None => return Err(format!("the variable {name} is not set")),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Reads a boolean; false if it is absent.
    pub(super) fn flag(&mut self, key: &str) -> bool {
        match self.table.get(key).map(|value| (value.get_ref(), value.span())) {
            None => false,
            Some((DeValue::Boolean(flag), _)) => *flag,
            Some((_, span)) => {
                self.add_problem(self.line_at(span.start), Some(key), "must be `true` or `false`".into());
                false
            }
        }
    }

    /// Returns the line of an offset in the file.
    pub(super) fn line_at(&self, at: usize) -> usize {
        line_of(self.source.text, at)
    }

    /// Adds a problem.
    pub(super) fn add_problem(&mut self, line: usize, key: Option<&str>, message: String) {
        let key = key.map(|key| format!(".{key}")).unwrap_or_default();
        let about = format!("{}.{}{key}", self.section, self.name);
        self.problems.push(ConfigProblem::in_file(self.source.path, line, message).about(&about));
    }
}

/// Returns the value if it is a string.
pub(super) fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    }
}

/// Formats names as "`a`, `b` or `c`".
pub(super) fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
