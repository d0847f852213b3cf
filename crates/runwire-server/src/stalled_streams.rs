//! Cuts off HTTP/2 streams whose client takes nothing for a while.
//!
//! A connection whose client takes nothing is reset by the kernel ([`limits::STALLED_TIME`]). A stream of HTTP/2 may be stalled by
//! its flow control while the connection is alive. hyper asks for the next piece of a body only when the client has taken
//! the one before, so the body tells when that was, and the task of the stream ends when it was too long ago. With the
//! task, what is held for the client is dropped, and the stream is reset.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body as ResponseBody;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::task_local;
use tokio::time::{Sleep, sleep};

/// Bytes of a body that hyper is given at once: a client that takes fewer in the time allowed counts as stalled.
const PIECE_BYTES: usize = 64 << 10;

task_local! {
    static SENT: SentPieces;
}

/// What the body of a stream has handed out.
#[derive(Debug, Default)]
struct SentPieces {
    count: Cell<u64>,
    /// Whether the last piece was handed out, and the next not asked for.
    waits_for_client: Cell<bool>,
}

/// Runs the streams of a connection.
#[derive(Debug, Clone)]
pub(crate) struct StreamExecutor {
    stalled_time: Duration,
}

impl StreamExecutor {
    pub(crate) fn new(stalled_time: Duration) -> Self {
        Self { stalled_time }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        tokio::spawn(SENT.scope(SentPieces::default(), run(stream, self.stalled_time)));
    }
}

/// Runs a stream until it ends, or its client has taken nothing for too long.
async fn run(stream: impl Future, stalled_time: Duration) {
    let mut stream = pin!(stream);
    let mut stalled: Option<(u64, Pin<Box<Sleep>>)> = None;
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let waits_for = SENT.with(|sent| sent.waits_for_client.get().then(|| sent.count.get()));
        let Some(count) = waits_for else {
            stalled = None;
            return Poll::Pending;
        };
        match &mut stalled {
            Some((since, deadline)) if *since == count => deadline.as_mut().poll(context),
            _ => {
                let mut deadline = Box::pin(sleep(stalled_time));
                let polled = deadline.as_mut().poll(context);
                stalled = Some((count, deadline));
                polled
            }
        }
    })
    .await;
}

/// Makes the body of a response on an HTTP/2 stream tell what the client takes.
pub(crate) fn watch(response: Response) -> Response {
    match SENT.try_with(|_| ()) {
        Ok(()) => response.map(|body| ResponseBody::new(WatchedBody { body, rest: Bytes::new() })),
        Err(_) => response,
    }
}

/// A body that is handed out in pieces.
struct WatchedBody {
    body: ResponseBody,
    /// What is left of the data that the body has returned.
    rest: Bytes,
}

impl WatchedBody {
    fn next_piece(&mut self) -> Bytes {
        if self.rest.len() > PIECE_BYTES {
            return self.rest.split_to(PIECE_BYTES);
        }
        std::mem::take(&mut self.rest)
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => {
                    let _ = SENT.try_with(|sent| sent.waits_for_client.set(false));
                    return other;
                }
            }
        }
        let is_part = self.rest.len() > PIECE_BYTES;
        let mut piece = self.next_piece();
        if !is_part && self.is_end_stream() {
            // The stream's task is over with the last piece, which must not keep all of the body.
            piece = Bytes::copy_from_slice(&piece);
        }
        let _ = SENT.try_with(|sent| {
            sent.count.set(sent.count.get() + 1);
            sent.waits_for_client.set(true);
        });
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut with_rest = SizeHint::new();
        with_rest.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            with_rest.set_upper(upper.saturating_add(rest));
        }
        with_rest
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Request, StatusCode};
    use http_body_util::{BodyExt, Empty};
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    use super::*;

    /// Bytes that tell when they are dropped.
    struct Held(Vec<u8>, Arc<AtomicBool>);

    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Release);
        }
    }

    #[tokio::test]
    async fn a_stream_whose_client_takes_nothing_is_reset_and_the_others_are_served() {
        let dropped = Arc::new(AtomicBool::new(false));
        let (near, far) = tokio::io::duplex(64 << 10);
        let held = dropped.clone();
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let held = held.clone();
            async move {
                let bytes = match request.uri().path() {
                    "/large" => Bytes::from_owner(Held(vec![b'x'; 4 << 20], held)),
                    _ => Bytes::from_static(b"small"),
                };
                Ok::<_, Infallible>(watch(Response::new(ResponseBody::from(bytes))))
            }
        });
        let executor = StreamExecutor::new(Duration::from_millis(300));
        let serving = hyper::server::conn::http2::Builder::new(executor);
        tokio::spawn(serving.serve_connection(TokioIo::new(far), service));
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection);
        let request = |path: &str| {
            Request::builder().uri(format!("http://x{path}")).body(Empty::<Bytes>::new()).unwrap()
        };

        // One that is read from is sent all of it.
        let large = client.send_request(request("/large")).await.unwrap();
        assert_eq!(large.headers()["content-length"], "4194304");
        assert_eq!(large.collect().await.unwrap().to_bytes().len(), 4 << 20);
        assert!(dropped.swap(false, Ordering::AcqRel));

        let stalled = client.send_request(request("/large")).await.unwrap();
        assert_eq!(stalled.status(), StatusCode::OK);
        while !dropped.load(Ordering::Acquire) {
            let small = client.send_request(request("/small")).await.unwrap();
            assert_eq!(small.collect().await.unwrap().to_bytes(), "small");
        }
        let error = stalled.collect().await.unwrap_err();
        assert!(error.to_string().contains("error reading a body"), "{error}");
        let small = client.send_request(request("/small")).await.unwrap();
        assert_eq!(small.collect().await.unwrap().to_bytes(), "small");
    }
}
