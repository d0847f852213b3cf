//! Requests, one connection each, and answers read whole or as a stream.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::refusal::Refusal;
use super::url::{BaseUrl, Target};
use crate::failure::Failure;

/// Bytes of an answer that is read whole.
const ANSWER_BYTES: usize = 128 << 20;

/// Time in which a server must accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Time in which a server must answer what it can answer at once.
const ANSWER_TIME: Duration = Duration::from_secs(30);

const TOKEN: &str = "RUNWIRE_TOKEN";

/// Talks to one server.
pub(super) struct Client {
    url: BaseUrl,
    token: Option<HeaderValue>,
}

impl Client {
    pub(super) fn new(url: &BaseUrl) -> Result<Self, Failure> {
        let token = match std::env::var(TOKEN) {
            Ok(token) if !token.is_empty() => {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| bad_token())?;
                value.set_sensitive(true);
                Some(value)
            }
            Ok(_) | Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => return Err(bad_token()),
        };
        Ok(Self { url: url.clone(), token })
    }

    /// Begins the address of something on the server.
    pub(super) fn target(&self) -> Target {
        Target::of(&self.url)
    }

    /// Asks for JSON.
    pub(super) async fn get_json(&self, target: &Target) -> Result<Value, Failure> {
        let answer = async { self.json(self.get(target, HeaderMap::new()).await?).await };
        tokio::time::timeout(ANSWER_TIME, answer).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Asks for something, and waits for the head of the answer.
    pub(super) async fn get(
        &self,
        target: &Target,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, Failure> {
        let answer = self.send(Method::GET, target, headers, Empty::<Bytes>::new());
        tokio::time::timeout(ANSWER_TIME, answer).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send<B>(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: B,
    ) -> Result<Response<Incoming>, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let connecting = TcpStream::connect((self.url.host.as_str(), self.url.port));
        let stream = match tokio::time::timeout(CONNECT_TIME, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.unreachable(error)),
            Err(_) => return Err(self.unreachable("it does not answer")),
        };
        // A frame that waits for more to go with it is a frame that readers see late.
        let _ = stream.set_nodelay(true);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(&error))?;
        // What goes wrong with the connection is told by the request or the body that it carries.
        tokio::spawn(connection);
        let request = self.request(method, target, headers, body)?;
        sender.send_request(request).await.map_err(|error| self.broken(&error))
    }

    fn request<B>(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: B,
    ) -> Result<Request<B>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(target.as_str())
            .header(HOST, &self.url.authority)
            .header(USER_AGENT, concat!("runwire/", env!("CARGO_PKG_VERSION")))
            .body(body)
            .map_err(|error| self.unreachable(error))?;
        request.headers_mut().extend(headers);
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        Ok(request)
    }

    /// Reads an answer that is JSON; a refusal is a failure.
    pub(super) async fn json(&self, response: Response<Incoming>) -> Result<Value, Failure> {
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let body = self.whole(response).await?;
        serde_json::from_slice(&body).map_err(|error| self.strange(format!("{status}, but no JSON: {error}")))
    }

    /// Reads why the server refused.
    pub(super) async fn refusal(&self, response: Response<Incoming>) -> Failure {
        let status = response.status();
        if status.is_redirection() || status == StatusCode::SWITCHING_PROTOCOLS {
            return self.strange(format!("it answers {status}"));
        }
        match self.whole(response).await {
            Ok(body) => Failure::Refused(Box::new(Refusal::read(status, &body))),
            Err(failure) => failure,
        }
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, Failure> {
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| self.broken(error.as_ref()))
    }

    fn unreachable(&self, reason: impl ToString) -> Failure {
        Failure::Unreachable { url: self.url.to_string(), reason: reason.to_string() }
    }

    /// Says that a connection did not last.
    pub(super) fn broken(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        // Hyper says what it was doing; why it failed stands in the source.
        let reason = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Failure::Broken { url: self.url.to_string(), reason }
    }

    /// Says that a server has not been heard of for too long.
    pub(super) fn silent(&self) -> Failure {
        Failure::Broken { url: self.url.to_string(), reason: "it has been silent for too long".to_owned() }
    }

    /// Says that an answer makes no sense.
    pub(super) fn strange(&self, reason: String) -> Failure {
        Failure::Answer { url: self.url.to_string(), reason }
    }
}

fn bad_token() -> Failure {
    Failure::Usage {
        message: format!("{TOKEN} cannot be sent in a header"),
        hint: "a token is ASCII without spaces and line ends",
    }
}
