//! Extractor for JSON request bodies, limited in size, parsed into a typed value.

use axum::extract::{FromRequest, Request};
use http_body_util::{BodyExt, Limited};
use runwire_model::json::check_nested;
use runwire_model::limits::JSON_DEPTH;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::problem::Problem;
use crate::{content_type, limits};

/// The JSON body of a request, limited to `LIMIT` bytes; an empty body counts as `{}`.
pub(crate) struct JsonBody<T, const LIMIT: usize = { limits::JSON_BODY_BYTES }>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync, const LIMIT: usize> FromRequest<S> for JsonBody<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        content_type::expect_json(request.headers())?;
        let body = Limited::new(request.into_body(), LIMIT).collect();
        let body = tokio::time::timeout(limits::BODY_IDLE_TIME, body).await.map_err(|_| too_slow())?;
        let bytes = body.map_err(|error| body_error(&*error, LIMIT))?.to_bytes();
        parse(if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes }).map(Self)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Values that are passed on raw are not parsed, so their depth is checked here.
    if let Err(fault) = check_nested(bytes, JSON_DEPTH) {
        return Err(Problem::new(fault.code(), fault.to_string()));
    }
    // Derived deserializers would also accept an array, field by field.
    if bytes.trim_ascii_start().first() != Some(&b'{') && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
    {
        return Err(Problem::new("bad_body", "the body is no JSON object").with("line", 1));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let code = match error.classify() {
            Category::Data => "bad_body",
            Category::Io | Category::Syntax | Category::Eof => "not_json",
        };
        Problem::new(code, error.to_string()).with("line", error.line()).with("column", error.column())
    })
}

fn too_slow() -> Problem {
    Problem::new("body_idle", "the body did not arrive in time")
}

fn body_error(error: &(dyn std::error::Error + 'static), limit: usize) -> Problem {
    if error.is::<http_body_util::LengthLimitError>() {
        let detail = format!("the body has more than {limit} bytes");
        return Problem::new("body_too_large", detail).with("limit", limit);
    }
    Problem::new("body_broken", format!("the body broke off: {error}"))
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
