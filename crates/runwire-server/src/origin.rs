//! Origin check: refuses writes and WebSockets from web pages of other sites.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method};
use runwire_model::ErrorCode;

use crate::problem::Problem;

/// Refuses a request whose `Origin` is another site.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or("an origin that is no text");
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let from = origin.split_once("://").map_or(origin, |(_, host)| host);
    if from.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    let detail = format!("pages of `{origin}` may not write here, nor open a WebSocket");
    Err(Problem::new(ErrorCode::OriginRefused, detail))
}

/// Checks the origin of requests that change something. Reads are left to the browser: without CORS headers the page
/// does not see the response.
pub(crate) fn check_request<B>(request: &http::Request<B>) -> Result<(), Problem> {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS => Ok(()),
        _ => check(request.headers()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_site_may_read_and_not_write() {
        let request = |method: Method, origin: Option<&str>| {
            let mut request = http::Request::builder().method(method).header(HOST, "127.0.0.1:7420");
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            check_request(&request.body(()).unwrap()).map_err(|problem| problem.code())
        };
        assert_eq!(request(Method::POST, None), Ok(()));
        assert_eq!(request(Method::POST, Some("http://127.0.0.1:7420")), Ok(()));
        assert_eq!(request(Method::GET, Some("https://evil.example")), Ok(()));
        assert_eq!(request(Method::POST, Some("https://evil.example")), Err(ErrorCode::OriginRefused));
        assert_eq!(request(Method::DELETE, Some("null")), Err(ErrorCode::OriginRefused));
    }
}
