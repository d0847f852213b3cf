//! HTTP/1.1 and HTTP/2 without TLS on one port.

use bytes::Bytes;
use http::Method;

use crate::harness::{COMPLETED, Served, delta};

#[tokio::test]
async fn both_versions_write_and_read_the_same() {
    let served = Served::start().await;
    let request = |method, path: &str, body: String| served.request(method, path, &[]).body(body).unwrap();
    let written = served.send_h2(request(Method::POST, "/v1/runs/r/events", delta("a") + COMPLETED)).await;
    assert_eq!(written.written(2, 0)["last_seq"], 2);
    let over_h2 = served.send_h2(request(Method::GET, "/v1/runs/r", String::new())).await;
    assert_eq!(over_h2.json(), served.get("/v1/runs/r").await.json());
    let late = served.send_h2(request(Method::POST, "/v1/runs/r/events", delta("b"))).await;
    late.problem(409, "run_closed");
    served.send_h2(request(Method::GET, "/nothing", String::new())).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_connection_serves_many_requests_also_after_a_refusal() {
    let served = Served::start().await;
    let mut raw = served.raw().await;
    for (path, status) in [("/healthz", 200), ("/nothing", 404), ("/v1/runs/r", 404), ("/readyz", 200)] {
        raw.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        assert_eq!(raw.answer().await.unwrap().status, status);
    }
    let frame = delta("a");
    for (body, status) in [(frame.as_str(), 200), ("{\n", 400), (&frame, 200)] {
        let length = body.len();
        let head =
            format!("POST /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        raw.send((head + body).as_bytes()).await.unwrap();
        assert_eq!(raw.answer().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn many_headers_over_http_2_are_refused() {
    let served = Served::start().await;
    let mut request = served.request(Method::GET, "/healthz", &[]);
    for at in 0..2000 {
        request = request.header(format!("x-header-{at}"), "x".repeat(100));
    }
    let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let handshake = hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), io);
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = request.uri(format!("http://{}/healthz", served.address));
    let request = request.body(http_body_util::Full::new(Bytes::new())).unwrap();
    // Either the stream is reset or 431 comes; what must not happen is an answer as if nothing were wrong.
    if let Ok(response) = crate::harness::within_timeout(sender.send_request(request)).await {
        assert_eq!(response.status(), 431);
    }
    assert_eq!(served.get("/healthz").await.status, 200);
}
