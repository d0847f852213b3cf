//! Writes HTTP/1.1 responses for connections that bypass hyper (`socket_loop`, `read/raw_http.rs`).

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::response::IntoResponse;
use http::header::CONTENT_LENGTH;

use crate::problem::Problem;

/// Writes a response with a JSON body; `closing` is its `Connection` header line, if any.
pub(crate) fn write_json(out: &mut Vec<u8>, json: &str, closing: &str) {
    let length = json.len();
    write(
        out,
        format_args!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"),
    );
    write_date(out);
    write(out, format_args!("{closing}\r\n{json}"));
}

/// Writes an error response; `closing` is its `Connection` header line, if any.
pub(crate) fn write_problem(out: &mut Vec<u8>, problem: Problem, closing: &str) {
    let body = problem.to_text();
    let (parts, _) = problem.into_response().into_parts();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    write(out, format_args!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()));
    for (name, value) in parts.headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH) {
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(piece);
        }
    }
    write(out, format_args!("content-length: {}\r\n", body.len()));
    write_date(out);
    write(out, format_args!("{closing}\r\n{body}"));
}

/// Writes the `Date` header, formatted once per second.
fn write_date(out: &mut Vec<u8>) {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    DATE.with_borrow_mut(|(second, date)| {
        if *second != now {
            *second = now;
            *date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now));
        }
        write(out, format_args!("date: {date}\r\n"));
    });
}

/// Writing to memory does not fail.
fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
