//! Parses `Content-Type` and `Content-Encoding` of a request.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use runwire_model::ErrorCode;
use runwire_model::framing::Framing;

use crate::problem::Problem;

/// Framings of write requests by media type.
const FRAMINGS: [(&str, Framing); 6] = [
    ("application/x-ndjson", Framing::Ndjson),
    ("application/ndjson", Framing::Ndjson),
    ("application/jsonl", Framing::Ndjson),
    ("application/x-jsonl", Framing::Ndjson),
    ("text/event-stream", Framing::Sse),
    ("application/json", Framing::Json),
];

/// The default of `curl -d`: treated as no content type.
const CURL_DEFAULT: &str = "application/x-www-form-urlencoded";

/// Returns the framing that a request names; none if it has to be detected from the first bytes.
pub(crate) fn framing_of(headers: &HeaderMap) -> Result<Option<Framing>, Problem> {
    expect_uncoded(headers)?;
    let Some(named) = media_type(headers) else { return Ok(None) };
    match FRAMINGS.iter().find(|(media, _)| named.eq_ignore_ascii_case(media)) {
        Some((_, framing)) => Ok(Some(*framing)),
        None => {
            let media: Vec<_> = FRAMINGS.iter().map(|(media, _)| *media).collect();
            Err(unsupported(named, &media))
        }
    }
}

/// Refuses a content type other than JSON.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    expect_uncoded(headers)?;
    match media_type(headers) {
        Some(named) if !named.eq_ignore_ascii_case("application/json") => {
            Err(unsupported(named, &["application/json"]))
        }
        _ => Ok(()),
    }
}

/// Refuses compressed bodies.
fn expect_uncoded(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let coding = coding.to_str().unwrap_or("a coding that is not ASCII");
            let detail = format!("`{coding}` is not decoded here; send the body without `Content-Encoding`");
            Err(Problem::new(ErrorCode::UnsupportedMediaType, detail).with("expected", vec!["identity"]))
        }
        _ => Ok(()),
    }
}

/// Returns the media type without its parameters; none if it is missing.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(CONTENT_TYPE)?.to_str().unwrap_or("a name that is not ASCII");
    let named = text.split(';').next().unwrap_or_default().trim();
    (!named.is_empty() && !named.eq_ignore_ascii_case(CURL_DEFAULT)).then_some(named)
}

fn unsupported(named: &str, expected: &[&str]) -> Problem {
    let detail = format!("`{named}` is not read here; send {}", expected.join(", "));
    Problem::new(ErrorCode::UnsupportedMediaType, detail).with("expected", expected)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_compressed_body_is_refused_before_it_is_read() {
        let coded = |coding| HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]);
        assert!(framing_of(&coded("identity")).is_ok());
        assert_eq!(framing_of(&coded("gzip")).unwrap_err().code(), ErrorCode::UnsupportedMediaType);
        assert_eq!(expect_json(&coded("br")).unwrap_err().code(), ErrorCode::UnsupportedMediaType);
    }

    #[test]
    fn a_content_type_names_a_framing_or_leaves_it_open() {
        let of = |value: &'static str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            framing_of(&headers).map_err(|problem| problem.code())
        };
        assert_eq!(of("application/x-ndjson; charset=utf-8"), Ok(Some(Framing::Ndjson)));
        assert_eq!(of("TEXT/Event-Stream"), Ok(Some(Framing::Sse)));
        assert_eq!(of("application/json"), Ok(Some(Framing::Json)));
        assert_eq!(of("application/x-www-form-urlencoded"), Ok(None));
        assert_eq!(of("text/plain"), Err(ErrorCode::UnsupportedMediaType));
        assert_eq!(framing_of(&HeaderMap::new()).unwrap(), None);
    }
}
