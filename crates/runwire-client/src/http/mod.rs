//! HTTP requests over a connection pool, and their responses.

mod connector;
mod url;

use std::error::Error as StdError;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::problem::Problem;
use crate::read::FramePage;
use connector::ClientConnector;
pub(crate) use url::Endpoint;
pub use url::{BaseUrl, UrlError};

/// Limits the bytes of a buffered response.
const MAX_RESPONSE_BYTES: usize = 128 << 20;

/// Limits the bytes of a buffered error response.
const MAX_PROBLEM_BYTES: usize = 1 << 20;

/// How long the pool keeps an idle connection; the server keeps it a little longer (10 s).
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// The error of a request's body.
pub(crate) type BodyError = Box<dyn StdError + Send + Sync>;

/// The body of a request.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// Boxes a body.
pub(crate) fn boxed_body<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Returns an empty body.
pub(crate) fn empty_body() -> RequestBody {
    boxed_body(Empty::<Bytes>::new())
}

/// A server and the pool of connections to it.
#[derive(Debug)]
pub(crate) struct Http {
    url: BaseUrl,
    token: Option<HeaderValue>,
    /// Limits how long a single request waits for its response.
    response_timeout: Duration,
    slow: Option<SlowNotice>,
    /// Whether the server has ever responded.
    has_responded: AtomicBool,
    pool: Pool<ClientConnector, RequestBody>,
}

impl Http {
    pub(crate) fn new(
        url: BaseUrl,
        token: Option<HeaderValue>,
        timeouts: Timeouts,
        slow: Option<SlowNotice>,
        root_certificates: &[u8],
    ) -> Result<Self, Error> {
        let connector = connector::new(&url, timeouts.connect, root_certificates)?;
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self {
            url,
            token,
            response_timeout: timeouts.response,
            slow,
            has_responded: AtomicBool::new(false),
            pool,
        })
    }

    pub(crate) fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// Returns the root endpoint, to which segments are added.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::of(&self.url)
    }

    /// Gets JSON.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, endpoint: &Endpoint) -> Result<T, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        self.with_timeout(async {
            let response = self.send(Method::GET, endpoint, headers, empty_body()).await?;
            self.json(response).await
        })
        .await
    }

    /// Gets a page of frames; it is empty at the end of the run.
    pub(crate) async fn get_page(&self, endpoint: &Endpoint) -> Result<FramePage, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        self.with_timeout(async {
            let response = self.send(Method::GET, endpoint, headers, empty_body()).await?;
            match response.status() {
                StatusCode::NO_CONTENT => Ok(FramePage { frames: Vec::new(), next: None }),
                _ => self.json(response).await,
            }
        })
        .await
    }

    /// Posts JSON and parses the response as JSON.
    pub(crate) async fn post_json<T: DeserializeOwned>(
        &self,
        endpoint: &Endpoint,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(|error| self.protocol_error(error.to_string()))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        self.with_timeout(async {
            let body = boxed_body(Full::new(Bytes::from(body)));
            let response = self.send(Method::POST, endpoint, headers, body).await?;
            self.json(response).await
        })
        .await
    }

    /// Sends a request without a body, and waits for the response head within the timeout.
    pub(crate) async fn request(
        &self,
        method: Method,
        endpoint: &Endpoint,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, Error> {
        self.with_timeout(self.send(method, endpoint, headers, empty_body())).await
    }

    /// Sends a request and waits for the response head, without a timeout.
    pub(crate) async fn send(
        &self,
        method: Method,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(endpoint.as_str())
            .header(USER_AGENT, concat!("runwire-client/", env!("CARGO_PKG_VERSION")))
            .body(body)
            .map_err(|error| self.unreachable(error))?;
        request.headers_mut().extend(headers);
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        self.pool.request(request).await.map_err(|error| {
            let is_connect = error.is_connect();
            let error: &(dyn StdError + 'static) = &error;
            match connector::certificate_error(error) {
                Some(reason) => Error::Tls(format!("{}: {reason}", self.url)),
                None if connector::is_not_tls(error) => {
                    self.unreachable("it does not speak TLS; try the address with `http://`")
                }
                None if is_connect => self.unreachable(root_cause(error)),
                None if is_not_http(error) && !self.url.is_secure() => {
                    self.protocol_error("it does not speak plain HTTP; try the address with `https://`")
                }
                None => self.broken(error),
            }
        })
    }

    /// Parses a response as JSON; a status other than 2xx is an error.
    pub(crate) async fn json<T: DeserializeOwned>(&self, response: Response<Incoming>) -> Result<T, Error> {
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let body = self.read_body(response, MAX_RESPONSE_BYTES).await?;
        serde_json::from_slice(&body).map_err(|error| {
            self.protocol_error(format!(
                "it answers {status} with something else than was asked for: {error}"
            ))
        })
    }

    /// Reads the problem of a refused request.
    pub(crate) async fn refusal(&self, response: Response<Incoming>) -> Error {
        let status = response.status();
        if status.is_redirection() || status == StatusCode::SWITCHING_PROTOCOLS {
            return self.protocol_error(format!("it answers {status}"));
        }
        let headers = response.headers().clone();
        match self.with_timeout(self.read_body(response, MAX_PROBLEM_BYTES)).await {
            Ok(body) => Problem::read(status, &headers, &body).into(),
            // The status is more useful than the error of reading the body.
            Err(_) => Problem::read(status, &headers, b"").into(),
        }
    }

    async fn read_body(&self, response: Response<Incoming>, limit: usize) -> Result<Bytes, Error> {
        let body = Limited::new(response.into_body(), limit).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| self.broken(error.as_ref()))
    }

    async fn with_timeout<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (mut answer, mut left) = (pin!(answer), self.response_timeout);
        if let Some(slow) = self.slow.as_ref().filter(|_| !self.has_responded.load(Ordering::Relaxed)) {
            let first = slow.after.min(left);
            match tokio::time::timeout(first, answer.as_mut()).await {
                Ok(answered) => return self.heard(answered),
                Err(_) => (slow.notify)(&self.url.to_string()),
            }
            left -= first;
        }
        let answered = tokio::time::timeout(left, answer).await.unwrap_or_else(|_| Err(self.idle_error()));
        self.heard(answered)
    }

    fn heard<T>(&self, answered: Result<T, Error>) -> Result<T, Error> {
        if matches!(answered, Ok(_) | Err(Error::Refused(_))) {
            self.has_responded.store(true, Ordering::Relaxed);
        }
        answered
    }

    pub(crate) fn unreachable(&self, reason: impl ToString) -> Error {
        Error::Unreachable { url: self.url.to_string(), reason: reason.to_string() }
    }

    /// Returns the error of a broken connection.
    pub(crate) fn broken(&self, error: &(dyn StdError + 'static)) -> Error {
        // Hyper's message says what it was doing; its source says why that failed.
        let reason = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Error::Broken { url: self.url.to_string(), reason }
    }

    /// Returns the error of a connection that the server closed.
    pub(crate) fn closed_error(&self, reason: &str) -> Error {
        Error::Broken { url: self.url.to_string(), reason: reason.to_owned() }
    }

    /// Returns the error of a connection that timed out.
    pub(crate) fn idle_error(&self) -> Error {
        self.closed_error("it has been silent for too long")
    }

    /// Returns the error of a response that breaks the protocol.
    pub(crate) fn protocol_error(&self, reason: impl Into<String>) -> Error {
        Error::Protocol { url: self.url.to_string(), reason: reason.into() }
    }
}

/// Callback for a slow first response.
#[derive(Clone)]
pub(crate) struct SlowNotice {
    pub(crate) after: Duration,
    pub(crate) notify: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for SlowNotice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SlowNotice").field("after", &self.after).finish_non_exhaustive()
    }
}

/// Returns true if the response cannot be parsed as HTTP.
fn is_not_http(error: &(dyn StdError + 'static)) -> bool {
    match error.downcast_ref::<hyper::Error>() {
        Some(error) => error.is_parse(),
        None => error.source().is_some_and(is_not_http),
    }
}

/// Timeouts of single requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until the connection is open.
    pub(crate) connect: Duration,
    /// Until the response has arrived.
    pub(crate) response: Duration,
}

/// Returns the message of the innermost error.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
