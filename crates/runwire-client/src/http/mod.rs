//! Requests over pooled connections, and answers read whole or as they come.

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
use crate::read::Page;
use connector::Connector;
pub(crate) use url::Target;
pub use url::{BaseUrl, UrlError};

/// Bytes of an answer that is read whole.
const ANSWER_BYTES: usize = 128 << 20;

/// Bytes of a refusal.
const REFUSAL_BYTES: usize = 1 << 20;

/// Time after which a connection that nobody uses is closed; the server keeps it a little longer (10 s).
const IDLE_TIME: Duration = Duration::from_secs(8);

/// Why a request's body broke off.
pub(crate) type BodyError = Box<dyn StdError + Send + Sync>;

/// The body of a request.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// Makes a body of anything that is one.
pub(crate) fn body_of<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Makes a body that says nothing.
pub(crate) fn no_body() -> RequestBody {
    body_of(Empty::<Bytes>::new())
}

/// One server, and the connections to it.
#[derive(Debug)]
pub(crate) struct Http {
    url: BaseUrl,
    token: Option<HeaderValue>,
    /// Time in which a server must answer what it can answer at once.
    answer_time: Duration,
    slow: Option<Slow>,
    /// Whether it has ever answered.
    was_heard: AtomicBool,
    pool: Pool<Connector, RequestBody>,
}

impl Http {
    pub(crate) fn new(
        url: BaseUrl,
        token: Option<HeaderValue>,
        times: Times,
        slow: Option<Slow>,
        trusted: &[u8],
    ) -> Result<Self, Error> {
        let connector = connector::new(&url, times.connect, trusted)?;
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { url, token, answer_time: times.answer, slow, was_heard: AtomicBool::new(false), pool })
    }

    pub(crate) fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// Begins the address of something on the server.
    pub(crate) fn target(&self) -> Target {
        Target::of(&self.url)
    }

    /// Asks for JSON.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, target: &Target) -> Result<T, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        self.in_time(async {
            let response = self.send(Method::GET, target, headers, no_body()).await?;
            self.json(response).await
        })
        .await
    }

    /// Asks for a page; where there is nothing more to read, it is empty.
    pub(crate) async fn get_page(&self, target: &Target) -> Result<Page, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        self.in_time(async {
            let response = self.send(Method::GET, target, headers, no_body()).await?;
            match response.status() {
                StatusCode::NO_CONTENT => Ok(Page { frames: Vec::new(), next: None }),
                _ => self.json(response).await,
            }
        })
        .await
    }

    /// Sends JSON and reads JSON.
    pub(crate) async fn post_json<T: DeserializeOwned>(
        &self,
        target: &Target,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(|error| self.strange(error.to_string()))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        self.in_time(async {
            let body = body_of(Full::new(Bytes::from(body)));
            let response = self.send(Method::POST, target, headers, body).await?;
            self.json(response).await
        })
        .await
    }

    /// Asks for something without a body, and waits for the head of the answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, Error> {
        self.in_time(self.send(method, target, headers, no_body())).await
    }

    /// Sends a request and waits for the head of its answer, for as long as it takes.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(target.as_str())
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
            match connector::mistrust(error) {
                Some(reason) => Error::Tls(format!("{}: {reason}", self.url)),
                None if connector::is_no_tls(error) => {
                    self.unreachable("it does not speak TLS; try the address with `http://`")
                }
                None if is_connect => self.unreachable(root_of(error)),
                None if is_no_http(error) && !self.url.is_secure() => {
                    self.strange("it does not speak plain HTTP; try the address with `https://`")
                }
                None => self.broken(error),
            }
        })
    }

    /// Reads an answer that is JSON; a refusal is an error.
    pub(crate) async fn json<T: DeserializeOwned>(&self, response: Response<Incoming>) -> Result<T, Error> {
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let body = self.whole(response, ANSWER_BYTES).await?;
        serde_json::from_slice(&body).map_err(|error| {
            self.strange(format!("it answers {status} with something else than was asked for: {error}"))
        })
    }

    /// Reads why the server refused.
    pub(crate) async fn refusal(&self, response: Response<Incoming>) -> Error {
        let status = response.status();
        if status.is_redirection() || status == StatusCode::SWITCHING_PROTOCOLS {
            return self.strange(format!("it answers {status}"));
        }
        let headers = response.headers().clone();
        match self.in_time(self.whole(response, REFUSAL_BYTES)).await {
            Ok(body) => Problem::read(status, &headers, &body).into(),
            // The status alone says more than that its explanation did not arrive.
            Err(_) => Problem::read(status, &headers, b"").into(),
        }
    }

    async fn whole(&self, response: Response<Incoming>, most: usize) -> Result<Bytes, Error> {
        let body = Limited::new(response.into_body(), most).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| self.broken(error.as_ref()))
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (mut answer, mut left) = (pin!(answer), self.answer_time);
        if let Some(slow) = self.slow.as_ref().filter(|_| !self.was_heard.load(Ordering::Relaxed)) {
            let first = slow.after.min(left);
            match tokio::time::timeout(first, answer.as_mut()).await {
                Ok(answered) => return self.heard(answered),
                Err(_) => (slow.tell)(&self.url.to_string()),
            }
            left -= first;
        }
        let answered = tokio::time::timeout(left, answer).await.unwrap_or_else(|_| Err(self.silent()));
        self.heard(answered)
    }

    fn heard<T>(&self, answered: Result<T, Error>) -> Result<T, Error> {
        if matches!(answered, Ok(_) | Err(Error::Refused(_))) {
            self.was_heard.store(true, Ordering::Relaxed);
        }
        answered
    }

    pub(crate) fn unreachable(&self, reason: impl ToString) -> Error {
        Error::Unreachable { url: self.url.to_string(), reason: reason.to_string() }
    }

    /// Says that a connection did not last.
    pub(crate) fn broken(&self, error: &(dyn StdError + 'static)) -> Error {
        // Hyper says what it was doing; why it failed stands in the source.
        let reason = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Error::Broken { url: self.url.to_string(), reason }
    }

    /// Says that a server ended a connection by itself.
    pub(crate) fn closed(&self, reason: &str) -> Error {
        Error::Broken { url: self.url.to_string(), reason: reason.to_owned() }
    }

    /// Says that a server has not been heard of for too long.
    pub(crate) fn silent(&self) -> Error {
        self.closed("it has been silent for too long")
    }

    /// Says that an answer makes no sense.
    pub(crate) fn strange(&self, reason: impl Into<String>) -> Error {
        Error::Strange { url: self.url.to_string(), reason: reason.into() }
    }
}

/// Whom to tell that a server takes its time.
#[derive(Clone)]
pub(crate) struct Slow {
    pub(crate) after: Duration,
    pub(crate) tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Slow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Slow").field("after", &self.after).finish_non_exhaustive()
    }
}

/// Tells whether something answered that cannot be read as HTTP.
fn is_no_http(error: &(dyn StdError + 'static)) -> bool {
    match error.downcast_ref::<hyper::Error>() {
        Some(error) => error.is_parse(),
        None => error.source().is_some_and(is_no_http),
    }
}

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// To accept a connection.
    pub(crate) connect: Duration,
    /// To answer what it can answer at once.
    pub(crate) answer: Duration,
}

/// Finds what lies beneath everything that was being done when it happened.
fn root_of(error: &(dyn StdError + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
