//! Problem details of a refused request (RFC 9457).

use std::fmt::{self, Display};
use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use runwire_model::ErrorCode;
use serde_json::{Map, Value};

/// The status and problem details of a refused request.
///
/// A proxy may refuse a request too, with a page of its own: then there is a status and no
/// [`code`](Self::code).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    /// Content type of a body that is not a problem.
    media: Option<String>,
    retry_after: Option<Duration>,
    members: Map<String, Value>,
}

impl Problem {
    /// Parses the response of a refused request.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let retry_after = text(RETRY_AFTER).and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        match serde_json::from_slice(body) {
            Ok(Value::Object(members)) if members.contains_key("code") => {
                Self { status, media: None, retry_after, members }
            }
            _ => {
                let media = text(CONTENT_TYPE).unwrap_or("no content type").chars().take(80).collect();
                Self { status, media: Some(media), retry_after, members: Map::new() }
            }
        }
    }

    /// Makes a problem of a message's members.
    pub(crate) fn of_members(members: Map<String, Value>) -> Self {
        let status = members.get("status").and_then(Value::as_u64).and_then(|status| status.try_into().ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            media: None,
            retry_after: None,
            members,
        }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns the stable error code, which has a page in the docs.
    ///
    /// `None` if a proxy answered, or a newer server with a code that this version does not know: then
    /// [`code_text`](Self::code_text) has it.
    pub fn code(&self) -> Option<ErrorCode> {
        self.code_text()?.parse().ok()
    }

    /// Returns the error code as the server sent it; `None` if a proxy answered.
    pub fn code_text(&self) -> Option<&str> {
        self.text("code")
    }

    /// Returns the title: what this code means.
    pub fn title(&self) -> Option<&str> {
        self.text("title")
    }

    /// Returns the detail: what happened this time.
    pub fn detail(&self) -> Option<&str> {
        self.text("detail")
    }

    /// Returns the hint: what to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.text("hint")
    }

    /// Returns the docs page of the code.
    pub fn page(&self) -> Option<&str> {
        self.text("type")
    }

    /// Returns the line, or the position in a list, of the refused frame.
    pub fn line(&self) -> Option<u64> {
        self.number("line")
    }

    /// Returns the invalid field.
    pub fn field(&self) -> Option<&str> {
        self.text("field")
    }

    /// Returns the number of frames written before the refused one.
    pub fn accepted(&self) -> Option<u64> {
        self.number("accepted")
    }

    /// Returns the number of duplicate frames before the refused one.
    pub fn duplicates(&self) -> Option<u64> {
        self.number("duplicates")
    }

    /// Returns a numeric member, such as `expected` or `oldest`.
    pub fn number(&self, member: &str) -> Option<u64> {
        self.members.get(member)?.as_u64()
    }

    /// Returns a string member, such as `run_id` or `after`.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.as_str()
    }

    /// Returns all members.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Returns the server's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
    }
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line() {
            write!(formatter, "line {line}: ")?;
        }
        let message = self.detail().or(self.title());
        if let Some(field) = self.field()
            && !message.unwrap_or_default().contains(field)
        {
            write!(formatter, "field `{field}`: ")?;
        }
        match (message, &self.media) {
            (Some(message), _) => formatter.write_str(message)?,
            (None, Some(media)) => {
                write!(formatter, "the server answers {}, and not as Runwire does ({media})", self.status)?;
            }
            (None, None) => write!(formatter, "the server answers {}", self.status)?,
        }
        match self.code_text() {
            Some(code) => write!(formatter, " [{code}]"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_where_and_what_helps() {
        let body = br#"{"type":"docs/errors/bad_field.md","title":"A field","status":422,"code":"bad_field",
            "detail":"must be a string","hint":"Correct it.","line":2,"field":"content","accepted":1}"#;
        let problem = Problem::read(StatusCode::UNPROCESSABLE_ENTITY, &HeaderMap::new(), body);
        assert_eq!(problem.to_string(), "line 2: field `content`: must be a string [bad_field]");
        assert_eq!((problem.status(), problem.code()), (422, Some(ErrorCode::BadField)));
        assert_eq!((problem.hint(), problem.accepted()), (Some("Correct it."), Some(1)));
        assert!(!problem.is_temporary());
    }

    #[test]
    fn the_page_of_a_proxy_is_shown_by_its_status() {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, "text/html".parse().unwrap()),
            (RETRY_AFTER, "7".parse().unwrap()),
        ]);
        let problem = Problem::read(StatusCode::BAD_GATEWAY, &headers, b"<html>\x1b[2J</html>");
        assert_eq!(problem.code(), None);
        let said = "the server answers 502 Bad Gateway, and not as Runwire does (text/html)";
        assert_eq!(problem.to_string(), said);
        assert_eq!((problem.is_temporary(), problem.retry_after()), (true, Some(Duration::from_secs(7))));
    }
}
