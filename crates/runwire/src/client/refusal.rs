//! What the server says when it refuses (RFC 9457), as a person reads it.

use std::fmt::{self, Display};

use http::StatusCode;
use serde::Deserialize;

use crate::table::tame;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) status: StatusCode,
    problem: Problem,
}

/// The members of a problem that mean something to a person; others may come with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    code: Option<String>,
    hint: Option<String>,
    line: Option<u64>,
    field: Option<String>,
    accepted: Option<u64>,
    duplicates: Option<u64>,
}

impl Refusal {
    /// Reads the body of a refusal; one that is no problem document is shown by its status alone.
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Self {
        Self { status, problem: serde_json::from_slice(body).unwrap_or_default() }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.problem.hint.as_deref()
    }

    /// Tells how many frames were written before the one that was refused.
    pub(super) fn written(&self) -> Option<(u64, u64)> {
        let Problem { accepted, duplicates, .. } = self.problem;
        accepted.map(|accepted| (accepted, duplicates.unwrap_or(0)))
    }
}

impl Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { title, detail, code, line, field, .. } = &self.problem;
        let plain = |text: &str| text.chars().map(tame).collect::<String>();
        if let Some(line) = line {
            write!(formatter, "line {line}: ")?;
        }
        let what = detail.as_deref().or(title.as_deref()).map(plain);
        if let Some(field) = field
            && !what.as_deref().unwrap_or_default().contains(field.as_str())
        {
            write!(formatter, "field `{}`: ", plain(field))?;
        }
        match what {
            Some(what) => formatter.write_str(&what)?,
            None => write!(formatter, "the server answers {}", self.status)?,
        }
        match code {
            Some(code) => write!(formatter, " [{}]", plain(code)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_where_and_what_helps() {
        let body = br#"{"type":"docs/errors/bad_field.md","title":"A field","status":422,"code":"bad_field",
            "detail":"must be a string","hint":"Correct it.","line":2,"field":"content","accepted":1}"#;
        let refusal = Refusal::read(StatusCode::UNPROCESSABLE_ENTITY, body);
        assert_eq!(refusal.to_string(), "line 2: field `content`: must be a string [bad_field]");
        assert_eq!((refusal.hint(), refusal.written()), (Some("Correct it."), Some((1, 0))));
    }

    #[test]
    fn an_answer_that_is_no_problem_document_is_shown_by_its_status() {
        let refusal = Refusal::read(StatusCode::BAD_GATEWAY, b"<html>\x1b[2J</html>");
        assert_eq!(refusal.to_string(), "the server answers 502 Bad Gateway");
    }
}
