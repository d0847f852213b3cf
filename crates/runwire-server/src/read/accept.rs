//! Content negotiation: chooses the response format of a read by the `Accept` header.

use http::HeaderMap;
use http::header::ACCEPT;
use runwire_model::ErrorCode;

use crate::feed::StreamFormat;
use crate::problem::Problem;

/// The format of a response to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFormat {
    /// A JSON page.
    Page,
    /// A stream.
    Stream(StreamFormat),
}

const MEDIA: [(&str, ResponseFormat); 5] = [
    ("text/event-stream", ResponseFormat::Stream(StreamFormat::Sse)),
    ("application/x-ndjson", ResponseFormat::Stream(StreamFormat::Ndjson)),
    ("application/ndjson", ResponseFormat::Stream(StreamFormat::Ndjson)),
    ("application/json", ResponseFormat::Page),
    ("text/plain", ResponseFormat::Stream(StreamFormat::Plain)),
];

/// Returns the accepted format with the highest quality; SSE without an `Accept` header.
pub(crate) fn response_format(headers: &HeaderMap, is_text: bool) -> Result<ResponseFormat, Problem> {
    let accept: Vec<_> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accept.is_empty() {
        return Ok(ResponseFormat::Stream(StreamFormat::Sse));
    }
    let mut best: Option<(f32, ResponseFormat)> = None;
    for range in accept.iter().flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let quality =
            parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse().ok()).unwrap_or(1.0);
        let found = match media {
            "*/*" | "text/*" => Some(ResponseFormat::Stream(StreamFormat::Sse)),
            "application/*" => Some(ResponseFormat::Page),
            media => {
                MEDIA.iter().find(|(name, _)| media.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
            }
        };
        let found = found.filter(|format| is_text || *format != ResponseFormat::Stream(StreamFormat::Plain));
        if let Some(format) = found.filter(|_| quality > best.map_or(0.0, |(best, _)| best)) {
            best = Some((quality, format));
        }
    }
    let refused = || {
        let names: Vec<_> =
            MEDIA.iter().map(|(name, _)| *name).filter(|name| is_text || *name != "text/plain").collect();
        let detail =
            format!("none of `{}` can be written here; ask for {}", accept.join(", "), names.join(", "));
        Problem::new(ErrorCode::NotAcceptable, detail).with("expected", names)
    };
    best.map(|(_, format)| format).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_format_with_the_highest_quality_is_chosen() {
        let of = |value: &'static str, is_text| {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]);
            response_format(&headers, is_text).map_err(|problem| problem.code())
        };
        assert_eq!(of("text/event-stream", false), Ok(ResponseFormat::Stream(StreamFormat::Sse)));
        assert_eq!(of("*/*", false), Ok(ResponseFormat::Stream(StreamFormat::Sse)));
        assert_eq!(of("text/html, application/json;q=0.9, */*;q=0.1", false), Ok(ResponseFormat::Page));
        assert_eq!(
            of("application/json;q=0.2, application/x-ndjson", false),
            Ok(ResponseFormat::Stream(StreamFormat::Ndjson))
        );
        assert_eq!(of("text/plain", true), Ok(ResponseFormat::Stream(StreamFormat::Plain)));
        assert_eq!(of("text/plain", false), Err(ErrorCode::NotAcceptable));
        assert_eq!(of("image/png", false), Err(ErrorCode::NotAcceptable));
        assert_eq!(
            response_format(&HeaderMap::new(), false).unwrap(),
            ResponseFormat::Stream(StreamFormat::Sse)
        );
    }
}
