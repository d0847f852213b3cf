//! Extractor for JSON request bodies, limited in size, parsed into a typed value.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use runwire_model::ErrorCode;
use runwire_model::json::check_nested;
use runwire_model::limits::JSON_DEPTH;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::memory_budget::MemoryShare;
use crate::problem::Problem;
use crate::{AppState, content_type, limits};

/// The JSON body of a request, limited to `LIMIT` bytes; an empty body counts as `{}`.
pub(crate) struct JsonBody<T, const LIMIT: usize = { limits::JSON_BODY_BYTES }>(pub(crate) T);

impl<T: DeserializeOwned, const LIMIT: usize> FromRequest<Arc<AppState>> for JsonBody<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, Problem> {
        let HeldJsonBody(value, _) = HeldJsonBody::<T, LIMIT>::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// The same for a large body, with its share of the memory budget.
pub(crate) struct HeldJsonBody<T, const LIMIT: usize>(pub(crate) T, pub(crate) MemoryShare);

impl<T: DeserializeOwned, const LIMIT: usize> FromRequest<Arc<AppState>> for HeldJsonBody<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, Problem> {
        content_type::expect_json(request.headers())?;
        let mut share = state.memory.request();
        let body = read(Limited::new(request.into_body(), LIMIT), LIMIT, &mut share);
        let bytes = tokio::time::timeout(limits::BODY_IDLE_TIME, body).await.map_err(|_| too_slow())??;
        parse(if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes }).map(|value| Self(value, share))
    }
}

/// Reads a body. Its share is taken before its bytes are kept: once for them, once for what they are parsed into; at once
/// where the length is known, so that bodies that arrive side by side do not wait for each other.
async fn read(mut body: Limited<Body>, limit: usize, share: &mut MemoryShare) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    if let Some(announced) = body.size_hint().exact().and_then(|announced| usize::try_from(announced).ok())
        && announced > limits::FREE_BYTES
        && announced <= limit
    {
        share.grow_in_time(2 * announced).await?;
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| body_error(&*error, limit))?;
        let Ok(data) = frame.into_data() else { continue };
        let len = bytes.len() + data.len();
        if len > limits::FREE_BYTES {
            share.grow_in_time(2 * len).await?;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Values that are passed on raw are not parsed, so their depth is checked here.
    if let Err(fault) = check_nested(bytes, JSON_DEPTH) {
        return Err(Problem::new(fault.code(), fault.to_string()));
    }
    // Derived deserializers would also accept an array, field by field.
    if bytes.trim_ascii_start().first() != Some(&b'{') && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
    {
        return Err(Problem::new(ErrorCode::BadBody, "the body is no JSON object").with("line", 1));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let code = match error.classify() {
            Category::Data => ErrorCode::BadBody,
            Category::Io | Category::Syntax | Category::Eof => ErrorCode::NotJson,
        };
        Problem::new(code, error.to_string()).with("line", error.line()).with("column", error.column())
    })
}

fn too_slow() -> Problem {
    Problem::new(ErrorCode::BodyIdle, "the body did not arrive in time")
}

fn body_error(error: &(dyn std::error::Error + 'static), limit: usize) -> Problem {
    if error.is::<http_body_util::LengthLimitError>() {
        let detail = format!("the body has more than {limit} bytes");
        return Problem::new(ErrorCode::BodyTooLarge, detail).with("limit", limit);
    }
    Problem::new(ErrorCode::BodyBroken, format!("the body broke off: {error}"))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        #[expect(dead_code, reason = "only whether it can be read matters")]
        name: Option<String>,
    }

    #[test]
    fn errors_of_a_body_have_line_and_column() {
        let refused = |body: &str| parse::<Named>(body.as_bytes()).unwrap_err().into_members();
        let unknown = refused("{\n \"nam\": 1}");
        assert_eq!((&unknown["code"], &unknown["line"]), (&"bad_body".into(), &2.into()));
        assert!(unknown["detail"].as_str().unwrap().contains("unknown field `nam`"));
        assert_eq!(refused("{\"name\": 1}")["code"], "bad_body");
        assert_eq!(refused("[]")["code"], "bad_body");
        assert_eq!(refused("{\"name\": \"a\"")["code"], "not_json");
        assert_eq!(refused(&"[".repeat(1000))["code"], "too_deep");
        assert!(parse::<Named>(b"{\"name\":null}").is_ok());
    }
}
