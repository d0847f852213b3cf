//! The embedded console and its paths.

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::harness::{Answer, Served};

async fn ask(served: &Served, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    served.send(served.request(method, path, headers).body(Bytes::new()).unwrap()).await
}

/// The first file that the page names in a folder.
fn named(page: &str, before: &str) -> Option<String> {
    let at = page.find(before)?;
    Some(page[at..].chars().take_while(|letter| *letter != '"').collect())
}

#[tokio::test]
async fn every_page_of_the_console_is_the_one_page() {
    let served = Served::start().await;
    let index = served.get("/").await;
    assert_eq!(
        (index.status, &index.headers["content-type"]),
        (StatusCode::OK, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert!(index.text.contains("<title>Runwire"), "{}", index.text);
    for path in [
        "/index.html",
        "/runs",
        "/runs/r1",
        "/runs/r1/events",
        "/runs/%E4%BD%A0?status=failed",
        "/threads",
        "/threads/t1",
        "/inbox",
        "/agents",
        "/agents/demo",
    ] {
        assert_eq!(served.get(path).await.text, index.text, "{path}");
    }
    let over_h2 =
        served.send_h2(served.request(Method::GET, "/inbox", &[]).body(Bytes::new()).unwrap()).await;
    assert_eq!(over_h2.text, index.text);
}

#[tokio::test]
async fn the_interface_is_not_the_consoles() {
    let served = Served::start().await;
    for path in
        ["/v1", "/v1/nothing", "/api/nothing", "/ag-ui", "/agent", "/nothing", "/assets/nothing.js", "/runsx"]
    {
        served.get(path).await.problem(404, "not_found");
    }
    for path in ["/../Cargo.toml", "/assets/../../Cargo.toml", "/assets/..%2f..%2fCargo.toml", "//etc/passwd"]
    {
        served.get(path).await.problem(404, "not_found");
    }
    for path in ["/", "/runs/r1"] {
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            ask(&served, method, path, &[]).await.problem(404, "not_found");
        }
    }
}

#[tokio::test]
async fn the_page_may_load_nothing_from_elsewhere() {
    let served = Served::start().await;
    let index = served.get("/runs").await;
    let policy = index.headers["content-security-policy"].to_str().unwrap();
    for rule in [
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "connect-src 'self';",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(index.headers["x-content-type-options"], "nosniff");
    assert_eq!(index.headers["referrer-policy"], "no-referrer");
    assert!(
        !index.text.contains("<script>") && !index.text.contains("<style"),
        "inline code: {}",
        index.text
    );
    assert!(named(&index.text, "=\"http").is_none(), "something from elsewhere: {}", index.text);
}

#[tokio::test]
async fn a_current_file_is_not_sent_again() {
    let served = Served::start().await;
    let index = served.get("/").await;
    assert_eq!(index.headers["cache-control"], "no-cache");
    let etag = index.headers["etag"].to_str().unwrap().to_owned();
    for known in [etag.as_str(), &etag["W/".len()..], &format!("\"old\", {etag}"), "*"] {
        let answer = ask(&served, Method::GET, "/inbox", &[("if-none-match", known)]).await;
        assert_eq!((answer.status, answer.text.len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
        assert_eq!(answer.headers["etag"].to_str().unwrap(), etag);
    }
    let changed = ask(&served, Method::GET, "/", &[("if-none-match", "W/\"old\"")]).await;
    assert_eq!(changed.text, index.text);
    // The files that the page names are there, and never change under their names.
    if let Some(script) = named(&index.text, "/assets/") {
        let script = served.get(&script).await;
        assert_eq!(script.status, StatusCode::OK);
        assert_eq!(script.headers["cache-control"], "public, max-age=31536000, immutable");
    }
}

#[tokio::test]
async fn a_head_request_has_the_headers_of_a_get() {
    let served = Served::start().await;
    let index = served.get("/").await;
    let head = ask(&served, Method::HEAD, "/", &[]).await;
    assert_eq!((head.status, head.text.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["content-length"], index.text.len().to_string());
    assert_eq!(head.headers["etag"], index.headers["etag"]);
}

#[tokio::test]
async fn a_server_without_console_has_no_pages() {
    let served = Served::with(|config| config.console = false).await;
    for path in ["/", "/runs", "/index.html"] {
        served.get(path).await.problem(404, "not_found");
    }
    assert_eq!(served.get("/v1/runs").await.status, StatusCode::OK);
}
