//! Validates ids of threads, runs and producers; extracts them from request paths.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use percent_encoding::percent_decode_str;
use runwire_log::{RunKey, ThreadKey};
use runwire_model::ErrorCode;

use crate::auth::tenant_of;
use crate::limits;
use crate::problem::Problem;

/// Path parameter: the run.
pub(crate) struct RunParam(pub(crate) RunKey);

/// Path parameter: the thread.
pub(crate) struct ThreadParam(pub(crate) ThreadKey);

/// Path parameter: the producer.
pub(crate) struct ProducerParam(pub(crate) Arc<str>);

/// Path parameter: the interaction.
pub(crate) struct InteractionParam(pub(crate) Arc<str>);

impl<S: Send + Sync> FromRequestParts<S> for RunParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = path_param(parts, state, &["run", "run_id"]).await?;
        Ok(Self(RunKey { tenant: tenant_of(&parts.headers), id }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ThreadParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = path_param(parts, state, &["thread", "thread_id"]).await?;
        Ok(Self(ThreadKey { tenant: tenant_of(&parts.headers), id }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ProducerParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path_param(parts, state, &["producer"]).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InteractionParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Agents choose these ids: any text is allowed.
        raw_path_param(parts, state, &["interaction"]).await.map(|(_, id)| Self(id))
    }
}

async fn path_param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    names: &[&str],
) -> Result<Arc<str>, Problem> {
    let (name, id) = raw_path_param(parts, state, names).await?;
    check(&name, &id)?;
    Ok(id)
}

/// Returns the first path parameter with one of the names, and its name.
async fn raw_path_param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    names: &[&str],
) -> Result<(String, Arc<str>), Problem> {
    let not_text = || Problem::new(ErrorCode::BadId, "an id in the path is no UTF-8");
    let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_text())?;
    let found = params.iter().find(|(name, _)| names.contains(name)).ok_or_else(not_text)?;
    Ok((found.0.to_owned(), found.1.into()))
}

/// Decodes and validates an id from a path segment.
pub(crate) fn from_path_segment(name: &str, segment: &str) -> Result<Arc<str>, Problem> {
    let decoded = match segment.contains('%') {
        true => percent_decode_str(segment).decode_utf8(),
        false => Ok(Cow::Borrowed(segment)),
    };
    let id = decoded.map_err(|_| Problem::new(ErrorCode::BadId, "an id in the path is no UTF-8"))?;
    check(name, &id)?;
    Ok(id.into())
}

/// Validates an id; `name` is its name in the request, for the error.
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
    Err(Problem::new(ErrorCode::BadId, format!("the id `{name}` {wrong}")).with("field", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_the_path_says_after_decoding() {
        for (segment, id) in
            [("r1", "r1"), ("a%2Fb", "a/b"), ("%E4%BD%A0", "你"), ("50%", "50%"), ("a+b", "a+b")]
        {
            assert_eq!(&*from_path_segment("run", segment).unwrap(), id);
        }
    }

    #[test]
    fn an_id_that_was_written_into_a_path_is_read_from_it() {
        for id in ["r1", "a/b", "你", "50%", "a b?#", "x:y@z"] {
            let written = runwire_model::percent_encoded(id).to_string();
            assert!(written.is_ascii() && !written.contains(['/', '?', '#', ' ']));
            assert_eq!(&*from_path_segment("run", &written).unwrap(), id);
        }
    }

    #[test]
    fn invalid_ids_are_refused() {
        let long = "x".repeat(limits::ID_BYTES + 1);
        for segment in ["", "%00", "a%0Ab", "%FF", "%C2%85", &long] {
            assert_eq!(from_path_segment("run", segment).unwrap_err().code(), ErrorCode::BadId, "{segment}");
        }
        assert!(from_path_segment("run", &long[1..]).is_ok());
    }
}
