//! Error responses: problem details with documented codes.

use bytes::Bytes;
use http::Method;

use crate::harness::{Served, delta};

#[tokio::test]
async fn unknown_routes_and_wrong_methods_are_problems_too() {
    let served = Served::start().await;
    for path in ["/nothing", "/v1", "/v1/nothing", "/v1/runs/r/nothing", "/v1/runs/a/b/events"] {
        served.get(path).await.problem(404, "not_found");
        served.post(path, "{}").await.problem(404, "not_found");
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/v1/runs", "GET,HEAD,POST"),
        (Method::PUT, "/v1/runs/r/cancel", "POST"),
        (Method::PATCH, "/v1/threads/t", "DELETE,GET,HEAD"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::PUT, "/v1/runs/r/events", "GET,HEAD,POST"),
    ] {
        let answer = served.send(served.request(method, path, &[]).body(Bytes::new()).unwrap()).await;
        answer.problem(405, "method_not_allowed");
        let mut allow: Vec<_> = answer.headers["allow"].to_str().unwrap().split(',').collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), allowed);
    }
}

#[tokio::test]
async fn a_bad_id_is_named() {
    let served = Served::start().await;
    let long = "x".repeat(257);
    served.post("/v1/runs//events", &delta("a")).await.problem(400, "bad_id");
    for id in ["%00", "a%0Ab", "%FF", long.as_str()] {
        served.post(&format!("/v1/runs/{id}/events"), &delta("a")).await.problem(400, "bad_id");
        served.get(&format!("/v1/runs/{id}")).await.problem(400, "bad_id");
        served.get(&format!("/v1/threads/{id}")).await.problem(400, "bad_id");
    }
    let problem = served.post("/v1/runs", r#"{"thread_id":""}"#).await.problem(400, "bad_id");
    assert_eq!(problem["field"], "thread_id");
    served.post("/v1/runs/r/events?thread=%0A", &delta("a")).await.problem(400, "bad_id");
    // What is only unusual is an id like any other.
    for id in ["a%2Fb", "%E4%BD%A0%E5%A5%BD", "a.b:c@d", &"x".repeat(256)] {
        served.post(&format!("/v1/runs/{id}/events"), &delta("a")).await.written(1, 0);
        assert_eq!(served.get(&format!("/v1/runs/{id}")).await.status, 200);
    }
    assert_eq!(served.get("/v1/runs/a%2Fb").await.json()["run_id"], "a/b");
}

#[tokio::test]
async fn a_bad_parameter_is_named() {
    let served = Served::start().await;
    for (path, parameter) in [
        ("/v1/runs?limit=0", "limit"),
        ("/v1/runs?limit=201", "limit"),
        ("/v1/runs?status=done", "status"),
        ("/v1/runs?sort=name", "sort"),
        ("/v1/threads?limit=x", "limit"),
        ("/v1/runs/r?x=1", "x"),
        ("/v1/threads/t/messages?limit=1000", "limit"),
    ] {
        assert_eq!(served.get(path).await.problem(400, "bad_query")["parameter"], parameter, "{path}");
    }
    for (path, parameter) in [
        ("/v1/runs/r/events?dialect=klingon", "dialect"),
        ("/v1/runs/r/events?dialect=text", "dialect"),
        ("/v1/runs/r/events?end=yes", "end"),
        ("/v1/runs/r/events?end=true&end=true", "end"),
        ("/v1/threads/t/events?thread=u", "thread"),
    ] {
        assert_eq!(served.post(path, &delta("a")).await.problem(400, "bad_query")["parameter"], parameter);
    }
}

#[tokio::test]
async fn a_bad_header_is_named() {
    let served = Served::start().await;
    for (headers, at_fault) in [
        (&[("producer-id", "p")][..], "Producer-Seq"),
        (&[("producer-seq", "0")], "Producer-Id"),
        (&[("producer-id", "p"), ("producer-seq", "-1")], "Producer-Seq"),
        (&[("producer-id", "p"), ("producer-seq", "0"), ("producer-epoch", "1.5")], "Producer-Epoch"),
    ] {
        let answer = served.post_with("/v1/runs/r/events", headers, &delta("a")).await;
        assert_eq!(answer.problem(400, "bad_header")["header"], at_fault);
    }
    served.get("/v1/runs/r").await.problem(404, "run_unknown");
}

#[tokio::test]
async fn a_bad_json_body_is_refused_with_its_place() {
    let served = Served::start().await;
    let unknown = served.post("/v1/runs", "{\"run\":\n\"r\"}").await.problem(400, "bad_body");
    assert!(unknown["detail"].as_str().unwrap().contains("unknown field `run`"), "{unknown}");
    let malformed = served.post("/v1/threads", "{\"thread_id\":\n\"t\"").await.problem(400, "not_json");
    assert_eq!(malformed["line"], 2);
    served.post("/v1/threads", r#"{"parallel":"yes"}"#).await.problem(400, "bad_body");
    served.post("/v1/runs/r/cancel", "[]").await.problem(400, "bad_body");
    let text = served.post_with("/v1/runs", &[("content-type", "text/plain")], "{}").await;
    text.problem(415, "unsupported_media_type");
}
