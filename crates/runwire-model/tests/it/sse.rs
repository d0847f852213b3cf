//! SSE that is written here, read by a parser that was written elsewhere.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::{StreamExt, stream};
use runwire_model::dialect::Dialect;
use runwire_model::framing::{Framing, write_frame};
use sse_stream::{Sse, SseStream};

use super::vectors::{cases, convert};

/// Drives a future whose data is all there.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

fn read(bytes: &[u8]) -> Vec<Sse> {
    // Cut small, so that lines and characters arrive in pieces.
    let pieces = stream::iter(bytes.chunks(7).map(Ok::<_, Infallible>));
    block_on(SseStream::from_bytes_stream(pieces).map(|event| event.unwrap()).collect())
}

#[test]
fn an_independent_parser_reads_every_frame_with_its_name_and_cursor() {
    for case in cases() {
        let input = case.input();
        for to in Dialect::ALL {
            let written = convert(&input, case.options(to)).unwrap().frames;
            let mut bytes = Vec::new();
            for (cursor, name, data) in &written {
                write_frame(Framing::Sse, &mut bytes, Some(cursor), name.as_deref(), data);
            }
            let events = read(&bytes);
            let label = format!("{} to {to}", case.label());
            assert_eq!(events.len(), written.len(), "{label}");
            for (event, (cursor, name, data)) in events.iter().zip(&written) {
                assert_eq!(event.id.as_ref(), Some(cursor), "{label}");
                assert_eq!(event.event, *name, "{label}");
                let data = std::str::from_utf8(data).unwrap();
                assert_eq!(event.data.as_deref(), Some(data), "{label}");
            }
        }
    }
}

#[test]
fn an_independent_parser_reads_text_with_line_breaks_and_odd_names() {
    let frames = [
        (Some("message"), "two\nlines\n"),
        (None, ""),
        (None, " leading space"),
        (Some("name with spaces: and colons"), "\n\n"),
        (None, "data: no field"),
        (None, "漢🦀"),
    ];
    let mut bytes = Vec::new();
    for (name, data) in frames {
        write_frame(Framing::Sse, &mut bytes, Some("1-0"), name, data.as_bytes());
    }
    let events = read(&bytes);
    let read: Vec<_> = events
        .iter()
        .map(|event| (event.event.as_deref(), event.data.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(read, frames);
}
