//! How the answer is framed, by the `Accept` header.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::feed::StreamFormat;
use crate::problem::Problem;

/// What a reader gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A page, as JSON.
    Page,
    /// A stream.
    Stream(StreamFormat),
}

const MEDIA: [(&str, Answer); 5] = [
    ("text/event-stream", Answer::Stream(StreamFormat::Sse)),
    ("application/x-ndjson", Answer::Stream(StreamFormat::Ndjson)),
    ("application/ndjson", Answer::Stream(StreamFormat::Ndjson)),
    ("application/json", Answer::Page),
    ("text/plain", Answer::Stream(StreamFormat::Plain)),
];

/// Finds the answer that a request likes best; whoever says nothing gets SSE.
pub(crate) fn answer(headers: &HeaderMap, is_text: bool) -> Result<Answer, Problem> {
    let accept: Vec<_> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accept.is_empty() {
        return Ok(Answer::Stream(StreamFormat::Sse));
    }
    let mut best: Option<(f32, Answer)> = None;
    for range in accept.iter().flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let quality =
            parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse().ok()).unwrap_or(1.0);
        let found = match media {
            "*/*" | "text/*" => Some(Answer::Stream(StreamFormat::Sse)),
            "application/*" => Some(Answer::Page),
            media => {
                MEDIA.iter().find(|(name, _)| media.eq_ignore_ascii_case(name)).map(|(_, answer)| *answer)
            }
        };
        let found = found.filter(|answer| is_text || *answer != Answer::Stream(StreamFormat::Plain));
        if let Some(answer) = found.filter(|_| quality > best.map_or(0.0, |(best, _)| best)) {
            best = Some((quality, answer));
        }
    }
    let refused = || {
        let names: Vec<_> =
            MEDIA.iter().map(|(name, _)| *name).filter(|name| is_text || *name != "text/plain").collect();
        let detail =
            format!("none of `{}` can be written here; ask for {}", accept.join(", "), names.join(", "));
        Problem::new("not_acceptable", detail).with("expected", names)
    };
    best.map(|(_, answer)| answer).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_best_liked_answer_is_given() {
        let of = |value: &'static str, is_text| {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]);
            answer(&headers, is_text).map_err(|problem| problem.code())
        };
        assert_eq!(of("text/event-stream", false), Ok(Answer::Stream(StreamFormat::Sse)));
        assert_eq!(of("*/*", false), Ok(Answer::Stream(StreamFormat::Sse)));
        assert_eq!(of("text/html, application/json;q=0.9, */*;q=0.1", false), Ok(Answer::Page));
        assert_eq!(
            of("application/json;q=0.2, application/x-ndjson", false),
            Ok(Answer::Stream(StreamFormat::Ndjson))
        );
        assert_eq!(of("text/plain", true), Ok(Answer::Stream(StreamFormat::Plain)));
        assert_eq!(of("text/plain", false), Err("not_acceptable"));
        assert_eq!(of("image/png", false), Err("not_acceptable"));
        assert_eq!(answer(&HeaderMap::new(), false).unwrap(), Answer::Stream(StreamFormat::Sse));
    }
}
