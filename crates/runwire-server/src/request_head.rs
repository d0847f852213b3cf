//! Parses the head of an HTTP/1.1 request for connections that bypass hyper (`read/raw_http.rs`, `socket_loop`).
//!
//! Only plain requests are parsed; callers leave a [`RequestHead::Unusual`] one to hyper.

use std::mem::MaybeUninit;

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::limits;

/// The parsed first bytes of a request.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for a moment, and a box for every request would cost"
)]
pub(crate) enum RequestHead {
    /// A complete head and its length in bytes.
    Whole(Parts, usize),
    /// An incomplete head.
    Partial,
    /// A head that hyper has to handle.
    Unusual,
}

impl RequestHead {
    /// Parses the head at the start of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut fields = [const { MaybeUninit::uninit() }; limits::HEADERS];
        let mut head = httparse::Request::new(&mut []);
        let end = match head.parse_with_uninit_headers(bytes, &mut fields) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Self::Partial,
            Err(_) => return Self::Unusual,
        };
        match parts_of(&head) {
            Some(parts) => Self::Whole(parts, end),
            None => Self::Unusual,
        }
    }
}

/// Converts a head to a request, if it is plain HTTP/1.1.
fn parts_of(head: &httparse::Request<'_, '_>) -> Option<Parts> {
    let path = head.path.filter(|path| path.starts_with('/') && head.version == Some(1))?;
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = Method::from_bytes(head.method?.as_bytes()).ok()?;
    parts.uri = Uri::try_from(path).ok()?;
    parts.headers = HeaderMap::with_capacity(head.headers.len());
    for field in head.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if [TRANSFER_ENCODING, EXPECT, UPGRADE].contains(&name) {
            return None;
        }
        let value = HeaderValue::from_bytes(field.value).ok()?;
        if name == CONNECTION && !value.as_bytes().eq_ignore_ascii_case(b"keep-alive") {
            return None;
        }
        parts.headers.append(name, value);
    }
    Some(parts)
}

/// Returns the `Content-Length`, if there is exactly one valid value.
pub(crate) fn body_length(headers: &HeaderMap) -> Option<usize> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next()?.to_str().ok()?;
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    (digits && lengths.next().is_none()).then(|| length.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /v1/runs/r/events?end=true HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n";

    #[test]
    fn a_complete_head_is_parsed_to_its_end() {
        let bytes = format!("{HEAD}{{}}");
        let RequestHead::Whole(parts, end) = RequestHead::of(bytes.as_bytes()) else { panic!("not whole") };
        assert_eq!((parts.method, end), (Method::POST, HEAD.len()));
        assert_eq!(parts.uri, "/v1/runs/r/events?end=true");
        assert_eq!(parts.headers["host"], "x");
        assert_eq!(body_length(&parts.headers), Some(2));
        for end in 0..HEAD.len() {
            assert!(matches!(RequestHead::of(&HEAD.as_bytes()[..end]), RequestHead::Partial), "{end}");
        }
    }

    #[test]
    fn unusual_heads_are_left_to_hyper() {
        let with = |field: &str| HEAD.replace("Host: x", field);
        let unusual = [
            HEAD.replace("HTTP/1.1", "HTTP/1.0"),
            HEAD.replace("POST ", "POST http://x"),
            HEAD.replace("/v1/runs/r/events?end=true", "*"),
            with("Transfer-Encoding: chunked"),
            with("Expect: 100-continue"),
            with("Upgrade: h2c"),
            with("Connection: close"),
            with("Connection: keep-alive, Upgrade"),
            with("no field"),
            with("Folded: a\r\n b"),
            with(&["X: y"; limits::HEADERS].join("\r\n")),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ];
        for head in unusual {
            assert!(matches!(RequestHead::of(head.as_bytes()), RequestHead::Unusual), "{head}");
        }
    }

    #[test]
    fn the_length_of_a_body_is_one_plain_number() {
        let of = |lengths: &[&str]| {
            let fields = lengths.iter().map(|length| (CONTENT_LENGTH, length.parse().unwrap()));
            body_length(&fields.fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            }))
        };
        assert_eq!(of(&["12"]), Some(12));
        for doubtful in [&[][..], &["1", "1"], &["+1"], &["1, 1"], &["0x1"], &["99999999999999999999999"]] {
            assert_eq!(of(doubtful), None, "{doubtful:?}");
        }
    }
}
