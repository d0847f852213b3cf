//! Ids of threads, runs and producers, checked where they come in.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use runwire_log::{RunKey, ThreadKey};

use crate::auth::tenant_of;
use crate::limits;
use crate::problem::Problem;

/// The run that a path names.
pub(crate) struct RunAt(pub(crate) RunKey);

/// The thread that a path names.
pub(crate) struct ThreadAt(pub(crate) ThreadKey);

/// The producer that a path names.
pub(crate) struct ProducerAt(pub(crate) Arc<str>);

/// The question that a path names.
pub(crate) struct InteractionAt(pub(crate) Arc<str>);

impl<S: Send + Sync> FromRequestParts<S> for RunAt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = in_path(parts, state, &["run", "run_id"]).await?;
        Ok(Self(RunKey { tenant: tenant_of(&parts.headers), id }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ThreadAt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = in_path(parts, state, &["thread", "thread_id"]).await?;
        Ok(Self(ThreadKey { tenant: tenant_of(&parts.headers), id }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ProducerAt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        in_path(parts, state, &["producer"]).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InteractionAt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // An agent has named it, in whatever letters.
        as_in_path(parts, state, &["interaction"]).await.map(|(_, id)| Self(id))
    }
}

async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S, names: &[&str]) -> Result<Arc<str>, Problem> {
    let (name, id) = as_in_path(parts, state, names).await?;
    check(&name, &id)?;
    Ok(id)
}

/// Finds the part of a path that has one of the names, and tells which.
async fn as_in_path<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    names: &[&str],
) -> Result<(String, Arc<str>), Problem> {
    let not_text = || Problem::new("bad_id", "an id in the path is no UTF-8");
    let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_text())?;
    let found = params.iter().find(|(name, _)| names.contains(name)).ok_or_else(not_text)?;
    Ok((found.0.to_owned(), found.1.into()))
}

/// Writes an id as a piece of a path.
pub(crate) fn segment(id: &str) -> String {
    const KEPT: AsciiSet =
        NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');
    utf8_percent_encode(id, &KEPT).to_string()
}

/// Reads an id from a piece of a path, as it stands there.
pub(crate) fn from_segment(name: &str, segment: &str) -> Result<Arc<str>, Problem> {
    let decoded = match segment.contains('%') {
        true => percent_decode_str(segment).decode_utf8(),
        false => Ok(Cow::Borrowed(segment)),
    };
    let id = decoded.map_err(|_| Problem::new("bad_id", "an id in the path is no UTF-8"))?;
    check(name, &id)?;
    Ok(id.into())
}

/// Checks an id; `name` is what the request calls it.
pub(crate) fn check(name: &str, id: &str) -> Result<(), Problem> {
    let wrong = if id.is_empty() {
        "is empty".to_owned()
    } else if id.len() > limits::ID_BYTES {
        format!("has {} bytes, and {} are allowed", id.len(), limits::ID_BYTES)
    } else if id.contains(char::is_control) {
        "contains a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Problem::new("bad_id", format!("the id `{name}` {wrong}")).with("field", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_the_path_says_after_decoding() {
        for (segment, id) in
            [("r1", "r1"), ("a%2Fb", "a/b"), ("%E4%BD%A0", "你"), ("50%", "50%"), ("a+b", "a+b")]
        {
            assert_eq!(&*from_segment("run", segment).unwrap(), id);
        }
    }

    #[test]
    fn an_id_that_was_written_into_a_path_is_read_from_it() {
        for id in ["r1", "a/b", "你", "50%", "a b?#", "x:y@z"] {
            let written = segment(id);
            assert!(written.is_ascii() && !written.contains(['/', '?', '#', ' ']));
            assert_eq!(&*from_segment("run", &written).unwrap(), id);
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let long = "x".repeat(limits::ID_BYTES + 1);
        for segment in ["", "%00", "a%0Ab", "%FF", "%C2%85", &long] {
            assert_eq!(from_segment("run", segment).unwrap_err().code(), "bad_id", "{segment}");
        }
        assert!(from_segment("run", &long[1..]).is_ok());
    }
}
