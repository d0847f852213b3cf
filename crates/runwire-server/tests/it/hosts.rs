//! The host check, against DNS rebinding.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::harness::{Answer, COMPLETED, Served, delta, within_timeout};

/// Sends a request with exactly these `Host` lines.
async fn send(served: &Served, line: &str, hosts: &[&str], more: &str) -> Answer {
    let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
    let mut raw = served.raw().await;
    raw.send(format!("{line} HTTP/1.1\r\n{hosts}{more}").as_bytes()).await.unwrap();
    raw.answer().await.unwrap()
}

#[tokio::test]
async fn another_host_is_refused_on_every_path_and_nothing_is_written() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?dialect=runwire", &delta("a")).await.written(1, 0);
    let whole = format!("content-length: {}\r\n\r\n{}", delta("b").len(), delta("b"));
    let pieces =
        format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", delta("b").len(), delta("b"));
    let requests = [
        ("GET /v1/runs/r", "\r\n"),
        ("GET /", "\r\n"),
        ("GET /nowhere", "\r\n"),
        ("OPTIONS /v1/runs", "\r\n"),
        // Without hyper, if the host were another.
        ("GET /v1/runs/r/events", "accept: text/event-stream\r\n\r\n"),
        ("POST /v1/runs/r/events", &whole),
        ("POST /v1/runs/new/events", &whole),
        // With it.
        ("POST /v1/runs/r/events", &pieces),
        ("POST /v1/threads/t/events", &whole),
        (
            "GET /v1/ws",
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        ),
        (
            "GET /loom",
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        ),
    ];
    for (line, rest) in requests {
        let port = served.address.port();
        let refused = send(&served, line, &[&format!("evil.example:{port}")], rest).await;
        let problem = refused.problem(403, "host_refused");
        assert_eq!(problem["host"], "evil.example", "{line}");
        assert!(problem["detail"].as_str().unwrap().contains("allowed_hosts"));
        for hosts in [&[][..], &["localhost", "localhost"], &["localhost", "evil.example"]] {
            let problem = send(&served, line, hosts, rest).await.problem(400, "bad_header");
            assert_eq!(problem["header"], "Host", "{line} {hosts:?}");
        }
    }
    assert_eq!(served.get("/v1/runs/r").await.json()["counts"]["records"], 1);
    served.get("/v1/runs/new").await.problem(404, "run_unknown");
    served.get("/v1/threads/t").await.problem(404, "thread_unknown");
    // A writer that is refused may go on with another request.
    let mut raw = served.raw().await;
    for (host, status) in [("evil.example", 403), ("localhost", 200), ("evil.example", 403), ("[::1]:1", 200)]
    {
        raw.send(format!("POST /v1/runs/r/events HTTP/1.1\r\nhost: {host}\r\n{whole}").as_bytes())
            .await
            .unwrap();
        assert_eq!(raw.answer().await.unwrap().status.as_u16(), status, "{host}");
    }
}

#[tokio::test]
async fn loopback_names_reach_a_server_whatever_its_port() {
    let served = Served::start().await;
    served
        .post("/v1/runs/r/events?dialect=runwire", &format!("{}{COMPLETED}", delta("a")))
        .await
        .written(2, 0);
    for host in ["localhost", "LocalHost:1", "console.localhost", "127.0.0.1", "127.9.9.9:80", "[::1]:7420"] {
        let answer = send(&served, "GET /v1/runs/r", &[host], "\r\n").await;
        assert_eq!(answer.status.as_u16(), 200, "{host}");
        let stream = send(&served, "GET /v1/runs/r/events?after=1", &[host], "\r\n").await;
        assert_eq!(stream.status.as_u16(), 200, "{host}");
    }
}

#[tokio::test]
async fn hosts_can_be_allowed_and_probes_come_by_any() {
    let hosts = ["wire.example.com", "*.inside.example"];
    let served = Served::with(|config| {
        config.allowed_hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    })
    .await;
    for (host, status) in [("wire.example.com", 200), ("a.inside.example:443", 200), ("inside.example", 403)]
    {
        assert_eq!(send(&served, "GET /v1/runs", &[host], "\r\n").await.status.as_u16(), status, "{host}");
    }
    for path in ["/healthz", "/readyz"] {
        let answer = send(&served, &format!("GET {path}"), &["10.1.2.3:7420"], "\r\n").await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
    }
}

#[tokio::test]
async fn a_socket_is_not_opened_for_another_host() {
    let served = Served::start().await;
    for path in ["/v1/ws", "/loom"] {
        let mut request = format!("ws://{}{path}", served.address).into_client_request().unwrap();
        request.headers_mut().insert("host", "evil.example".parse().unwrap());
        let stream = TcpStream::connect(served.address).await.unwrap();
        match within_timeout(tokio_tungstenite::client_async(request, stream)).await {
            Err(Error::Http(answer)) => assert_eq!(answer.status().as_u16(), 403),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_authority_of_http_2_is_a_host_too() {
    let served = Served::start().await;
    let asked = async |authority: &str, host: Option<&str>| {
        let stream = TcpStream::connect(served.address).await.unwrap();
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(Method::POST).uri(format!("http://{authority}/v1/runs"));
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
        let response = within_timeout(sender.send_request(request)).await.unwrap();
        let status = response.status().as_u16();
        let body = within_timeout(response.into_body().collect()).await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    let own = served.address.to_string();
    assert_eq!(asked(&own, None).await.0, 201);
    assert_eq!(asked(&own, Some(&own)).await.0, 201);
    assert_eq!(asked("evil.example", None).await, (403, "host_refused".into()));
    assert_eq!(asked("evil.example", Some("evil.example")).await, (403, "host_refused".into()));
    assert_eq!(asked(&own, Some("evil.example")).await, (400, "bad_header".into()));
    assert_eq!(asked("evil.example", Some(&own)).await, (400, "bad_header".into()));
    assert_eq!(served.get("/v1/runs").await.json()["runs"].as_array().unwrap().len(), 2);
}
