//! Problems of a configuration, with file, line, key and hint.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::layers::Origin;

/// A problem: where it is, which setting it is about, and a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigProblem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flag: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl ConfigProblem {
    fn anywhere(message: String) -> Self {
        Self { file: None, line: None, variable: None, flag: None, key: None, message, hint: None }
    }

    pub(super) fn in_file(path: &Path, line: usize, message: String) -> Self {
        Self { file: Some(path.to_owned()), line: Some(line), ..Self::anywhere(message) }
    }

    pub(super) fn in_variable(name: &str, key: &str, message: String) -> Self {
        Self { variable: Some(name.to_owned()), ..Self::anywhere(message) }.about(key)
    }

    /// Returns a problem of a setting at its origin.
    pub(super) fn at(origin: &Origin, key: &str, message: String) -> Self {
        let problem = match origin {
            Origin::File { path, line } => Self::in_file(path, *line, message),
            Origin::Variable(name) => Self::in_variable(name, key, message),
            Origin::Flag(name) => Self { flag: Some(name), ..Self::anywhere(message) },
            Origin::Default => Self::anywhere(message),
        };
        problem.about(key)
    }

    pub(super) fn about(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Returns true if it is about a table or a key in it.
    pub(super) fn is_about(&self, table: &[&str]) -> bool {
        let table = table.join(".");
        let rest = self.key.as_deref().and_then(|key| key.strip_prefix(&table));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    pub(super) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}:{}: ", file.display(), self.line.unwrap_or(1))?;
        }
        match (self.variable.as_deref().or(self.flag), &self.key) {
            (Some(place), _) => write!(formatter, "{place}: ")?,
            (None, Some(key)) => write!(formatter, "`{key}`: ")?,
            (None, None) => {}
        }
        formatter.write_str(&self.message)
    }
}
