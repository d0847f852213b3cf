//! The client and its builder: server URL, token, timeouts, retry options.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::error::Error;
use crate::http::{BaseUrl, Http, SlowNotice, Timeouts};

/// A server to read from and to write to. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # fn connect() -> Result<(), runwire_client::Error> {
/// use runwire_client::Client;
///
/// let local = Client::from_env()?;
/// let other = Client::builder().url("https://runs.example.org").token("secret").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: Arc<Http>,
    pub(crate) retry: RetryOptions,
}

impl Client {
    /// Returns a builder with the default options.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Builds a client from `RUNWIRE_URL` and `RUNWIRE_TOKEN`; the default URL is a server on this machine.
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().env().build()
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.http.url().to_string()
    }
}

/// When a stream reconnects, and when it gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryOptions {
    /// Attempts until the first connection succeeds.
    pub(crate) connect_attempts: u32,
    /// How long a stream that was connected tries to reconnect.
    pub(crate) give_up_after: Option<Duration>,
    /// Delay after the first failure; each further failure doubles it.
    pub(crate) initial_delay: Duration,
    pub(crate) max_delay: Duration,
    /// A connection without bytes for this long counts as dead.
    pub(crate) idle_timeout: Duration,
}

/// Builds a [`Client`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    has_invalid_token: bool,
    root_certificates: Vec<u8>,
    timeouts: Timeouts,
    slow: Option<SlowNotice>,
    retry: RetryOptions,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            url: BaseUrl::DEFAULT.to_owned(),
            token: None,
            has_invalid_token: false,
            root_certificates: Vec::new(),
            timeouts: Timeouts { connect: Duration::from_secs(10), response: Duration::from_secs(30) },
            slow: None,
            retry: RetryOptions {
                connect_attempts: 3,
                give_up_after: None,
                initial_delay: Duration::from_millis(100),
                max_delay: Duration::from_secs(5),
                idle_timeout: Duration::from_secs(45),
            },
        }
    }
}

impl ClientBuilder {
    /// Sets the server's URL; default `http://127.0.0.1:7420`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// Sets the bearer token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Reads `RUNWIRE_URL` and `RUNWIRE_TOKEN`; empty variables are ignored.
    pub fn env(mut self) -> Self {
        if let Some(url) = env_variable("RUNWIRE_URL").transpose() {
            self.url = url.unwrap_or_else(|lossy| lossy);
        }
        self.env_token()
    }

    /// Reads `RUNWIRE_TOKEN`; an empty variable is ignored.
    pub fn env_token(mut self) -> Self {
        match env_variable("RUNWIRE_TOKEN") {
            Ok(token) => self.token = token.or(self.token),
            Err(_) => self.has_invalid_token = true,
        }
        self
    }

    /// Adds trusted root certificates (PEM) to those of the system.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: &[u8]) -> Self {
        self.root_certificates.extend_from_slice(pem);
        self.root_certificates.push(b'\n');
        self
    }

    /// Sets how long a server may take to accept a connection; default 10 s.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.timeouts.connect = time;
        self
    }

    /// Limits how long a single request waits for its response; default 30 s.
    pub fn response_timeout(mut self, time: Duration) -> Self {
        self.timeouts.response = time;
        self
    }

    /// Sets a callback that gets the server's URL if the first response takes longer than `after`, so that a
    /// command line can say what it waits for.
    pub fn on_slow_response(
        mut self,
        after: Duration,
        notify: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        self.slow = Some(SlowNotice { after, notify: Arc::new(notify) });
        self
    }

    /// Sets how many attempts a stream makes until its first connection succeeds; default 3.
    ///
    /// Once connected, [`give_up_after`](Self::give_up_after) limits how long it tries.
    pub fn connect_attempts(mut self, attempts: u32) -> Self {
        self.retry.connect_attempts = attempts.max(1);
        self
    }

    /// Sets how long a stream that lost its connection tries to reconnect; default forever.
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.retry.give_up_after = Some(time);
        self
    }

    /// Sets the delays between attempts, which double from `initial` to `max`; default 100 ms and 5 s.
    ///
    /// Any progress resets the delay. A longer delay that the server asks for (`retry:`, `Retry-After`) is obeyed.
    pub fn retry_delays(mut self, initial: Duration, max: Duration) -> Self {
        self.retry.initial_delay = initial;
        self.retry.max_delay = max.max(initial);
        self
    }

    /// Sets how long a stream's connection may be without bytes until it counts as dead; default 45 s.
    ///
    /// The server sends a keep-alive every 15 s.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.retry.idle_timeout = time;
        self
    }

    /// Builds the client; sends nothing yet.
    pub fn build(self) -> Result<Client, Error> {
        let url: BaseUrl = self.url.parse().map_err(|fault| Error::Url { url: self.url.clone(), fault })?;
        let token = match self.token {
            _ if self.has_invalid_token => return Err(Error::Token),
            Some(token) => Some(bearer_header(&token)?),
            None => None,
        };
        Ok(Client {
            http: Arc::new(Http::new(url, token, self.timeouts, self.slow, &self.root_certificates)?),
            retry: self.retry,
        })
    }
}

fn bearer_header(token: &str) -> Result<HeaderValue, Error> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Token);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Reads an optional environment variable; the error is the lossy text of one that is not UTF-8.
fn env_variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(value)) => Err(value.to_string_lossy().into_owned()),
    }
}
