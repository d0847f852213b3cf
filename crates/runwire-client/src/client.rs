//! The client: a server, who asks it, and how patiently.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::error::Error;
use crate::http::{BaseUrl, Http, Slow, Times};

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
    pub(crate) patience: Patience,
}

impl Client {
    /// Begins a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Makes a client of `RUNWIRE_URL` and `RUNWIRE_TOKEN`; without them, of a server on this machine.
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().env().build()
    }

    /// Tells the server's URL.
    pub fn url(&self) -> String {
        self.http.url().to_string()
    }
}

/// How long a stream waits, and when it gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Attempts of a stream that has never been connected.
    pub(crate) first_tries: u32,
    /// Time without progress after which a stream that was connected gives up.
    pub(crate) give_up_after: Option<Duration>,
    /// The first wait before a connection is tried again.
    pub(crate) shortest_wait: Duration,
    pub(crate) longest_wait: Duration,
    /// Silence after which a connection counts as dead.
    pub(crate) silence: Duration,
}

/// Builds a [`Client`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    has_odd_token: bool,
    trusted: Vec<u8>,
    times: Times,
    slow: Option<Slow>,
    patience: Patience,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            url: BaseUrl::DEFAULT.to_owned(),
            token: None,
            has_odd_token: false,
            trusted: Vec::new(),
            times: Times { connect: Duration::from_secs(10), answer: Duration::from_secs(30) },
            slow: None,
            patience: Patience {
                first_tries: 3,
                give_up_after: None,
                shortest_wait: Duration::from_millis(100),
                longest_wait: Duration::from_secs(5),
                silence: Duration::from_secs(45),
            },
        }
    }
}

impl ClientBuilder {
    /// Names the server: `http://127.0.0.1:7420` without it.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// Sends a bearer token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Takes `RUNWIRE_URL` and `RUNWIRE_TOKEN` where they are set and not empty.
    pub fn env(mut self) -> Self {
        if let Some(url) = variable("RUNWIRE_URL").transpose() {
            self.url = url.unwrap_or_else(|odd| odd);
        }
        self.env_token()
    }

    /// Takes `RUNWIRE_TOKEN` where it is set and not empty.
    pub fn env_token(mut self) -> Self {
        match variable("RUNWIRE_TOKEN") {
            Ok(token) => self.token = token.or(self.token),
            Err(_) => self.has_odd_token = true,
        }
        self
    }

    /// Trusts further certificates (PEM), beside those that the machine trusts.
    #[cfg(feature = "tls")]
    pub fn trust(mut self, pem: &[u8]) -> Self {
        self.trusted.extend_from_slice(pem);
        self.trusted.push(b'\n');
        self
    }

    /// Sets how long a server may take to accept a connection: 10 s without it.
    pub fn connect_time(mut self, time: Duration) -> Self {
        self.times.connect = time;
        self
    }

    /// Sets how long a server may take to answer what it can answer at once: 30 s without it.
    pub fn answer_time(mut self, time: Duration) -> Self {
        self.times.answer = time;
        self
    }

    /// Calls something with the server's URL if its first answer takes longer than this: a person who waits wants to
    /// know for what.
    pub fn when_slow(mut self, after: Duration, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.slow = Some(Slow { after, tell: Arc::new(tell) });
        self
    }

    /// Sets how often a stream tries to connect before it was ever connected: 3 times without it.
    ///
    /// Once connected, a stream tries for as long as [`give_up_after`](Self::give_up_after) says.
    pub fn first_tries(mut self, tries: u32) -> Self {
        self.patience.first_tries = tries.max(1);
        self
    }

    /// Sets how long a stream that has lost its connection tries to get it back: forever without it.
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.patience.give_up_after = Some(time);
        self
    }

    /// Sets the waits between attempts, which grow from the first to the last: 100 ms and 5 s without it.
    ///
    /// Any progress begins anew with the first. What the server asks for (`retry:`, `Retry-After`) comes first.
    pub fn waits(mut self, shortest: Duration, longest: Duration) -> Self {
        self.patience.shortest_wait = shortest;
        self.patience.longest_wait = longest.max(shortest);
        self
    }

    /// Sets the silence after which a stream's connection counts as dead: 45 s without it.
    ///
    /// A server shows every 15 s that it lives.
    pub fn silence(mut self, time: Duration) -> Self {
        self.patience.silence = time;
        self
    }

    /// Makes the client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, Error> {
        let url: BaseUrl = self.url.parse().map_err(|fault| Error::Url { url: self.url.clone(), fault })?;
        let token = match self.token {
            _ if self.has_odd_token => return Err(Error::Token),
            Some(token) => Some(header_of(&token)?),
            None => None,
        };
        Ok(Client {
            http: Arc::new(Http::new(url, token, self.times, self.slow, &self.trusted)?),
            patience: self.patience,
        })
    }
}

fn header_of(token: &str) -> Result<HeaderValue, Error> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Token);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Reads a variable that may be absent; one that is no text comes back as an error, as far as it can be shown.
fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(odd)) => Err(odd.to_string_lossy().into_owned()),
    }
}
