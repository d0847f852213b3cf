//! Parses query parameters; unknown and repeated ones are errors.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;

use crate::ids;
use crate::problem::Problem;

/// The query parameters of a request.
pub(crate) struct Query<'a> {
    unread: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    known_names: Vec<&'static str>,
}

impl<'a> Query<'a> {
    /// Parses a query string.
    pub(crate) fn parse(query: Option<&'a str>) -> Self {
        let pairs = query.filter(|query| !query.is_empty());
        let unread =
            pairs.map(|query| form_urlencoded::parse(query.as_bytes()).collect()).unwrap_or_default();
        Self { unread, known_names: Vec::new() }
    }

    /// Takes a parameter; fails if it is repeated.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<Cow<'a, str>>, Problem> {
        self.known_names.push(name);
        let Some(at) = self.unread.iter().position(|(key, _)| key == name) else { return Ok(None) };
        let (_, value) = self.unread.remove(at);
        if self.unread.iter().any(|(key, _)| key == name) {
            return Err(Problem::bad_query(name, format!("`{name}` is given more than once")));
        }
        Ok(Some(value))
    }

    /// Takes `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.take(name)?.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(Problem::bad_query(
                name,
                format!("`{name}` is `true` or `false`, not `{}`", truncated(other)),
            )),
        }
    }

    /// Takes a number within a range.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        allowed: RangeInclusive<usize>,
    ) -> Result<Option<usize>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let number = value.parse().ok().filter(|number| allowed.contains(number));
        let wrong = || {
            let (min, max) = (allowed.start(), allowed.end());
            let detail = format!("`{name}` is a number from {min} to {max}, not `{}`", truncated(&value));
            Problem::bad_query(name, detail)
        };
        number.map(Some).ok_or_else(wrong)
    }

    /// Takes an id.
    pub(crate) fn id(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        ids::check(name, &value)?;
        Ok(Some(value.into_owned()))
    }

    /// Takes a timestamp in RFC 3339 format.
    pub(crate) fn timestamp(&mut self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let wrong = || {
            let detail =
                format!("`{name}` is a time such as 2026-11-15T02:44:33Z, not `{}`", truncated(&value));
            Problem::bad_query(name, detail)
        };
        Timestamp::parse(&value).map(Some).ok_or_else(wrong)
    }

    /// Takes one of the given dialects.
    pub(crate) fn dialect(
        &mut self,
        name: &'static str,
        allowed: &[Dialect],
    ) -> Result<Option<Dialect>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let known = Dialect::from_name(&value).filter(|dialect| allowed.contains(dialect));
        let wrong = || {
            let names: Vec<_> = allowed.iter().map(|dialect| dialect.name()).collect();
            let detail = format!("`{name}` is `{}`; it can be {}", truncated(&value), names.join(", "));
            Problem::bad_query(name, detail).with("expected", names)
        };
        known.map(Some).ok_or_else(wrong)
    }

    /// Fails if a parameter was not taken.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let Some((name, _)) = self.unread.first() else { return Ok(()) };
        let name = truncated(name);
        let known = match self.known_names.is_empty() {
            true => "there are none here".to_owned(),
            false => format!("known are {}", self.known_names.join(", ")),
        };
        Err(Problem::bad_query(&name, format!("there is no parameter `{name}`; {known}")))
    }
}

/// Truncates a value for an error message.
fn truncated(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_once_and_the_rest_is_refused_by_name() {
        let mut query = Query::parse(Some("end=true&limit=7&thread=a%20b&dialct=loom"));
        assert_eq!(query.flag("end").unwrap(), Some(true));
        assert_eq!(query.number("limit", 1..=9).unwrap(), Some(7));
        assert_eq!(query.id("thread").unwrap().as_deref(), Some("a b"));
        assert_eq!(query.dialect("dialect", &Dialect::READABLE).unwrap(), None);
        let problem = query.finish().unwrap_err().into_members();
        assert_eq!(problem["parameter"], "dialct");
        assert_eq!(
            problem["detail"],
            "there is no parameter `dialct`; known are end, limit, thread, dialect"
        );
    }

    #[test]
    fn a_bad_parameter_is_named_with_what_is_allowed() {
        let refused = |result: Result<(), Problem>| result.unwrap_err().into_members()["parameter"].clone();
        let query = |text| Query::parse(Some(text));
        assert_eq!(refused(query("end=1").flag("end").map(drop)), "end");
        assert_eq!(refused(query("limit=0").number("limit", 1..=9).map(drop)), "limit");
        assert_eq!(refused(query("a=1&a=1").take("a").map(drop)), "a");
        assert_eq!(refused(query("since=yesterday").timestamp("since").map(drop)), "since");
        let text = query("dialect=text").dialect("dialect", &Dialect::READABLE).unwrap_err().into_members();
        assert_eq!(text["expected"].as_array().unwrap().len(), Dialect::READABLE.len());
    }
}
