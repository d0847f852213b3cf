//! A stream of frames in one request, which may stay open as long as it likes.

use bytes::Bytes;
use futures_core::Stream;
use futures_util::TryStreamExt;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use runwire_model::dialect::Dialect;
use runwire_model::framing::Framing;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::Error;
use crate::http::{BodyError, Target, body_of};

/// Writes bytes that are frames already, in any dialect and framing, as they come.
///
/// Each frame is durable and visible as it arrives; the answer comes when the bytes end. Nothing is tried again:
/// an agent that wants that has [`StreamingEngine`](crate::StreamingEngine).
#[derive(Debug, Clone)]
#[must_use = "nothing is written until it is sent"]
pub struct Upload {
    client: Client,
    target: Target,
    framing: Framing,
    dialect: Option<Dialect>,
    thread: Option<String>,
    end: bool,
    parallel: bool,
    producer: Option<(String, Option<u64>, Option<u64>)>,
}

/// What is on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Written {
    /// Frames that were written.
    #[serde(default)]
    pub accepted: u64,
    /// Frames that had been written before.
    #[serde(default)]
    pub duplicates: u64,
    /// The newest record.
    #[serde(default)]
    pub last_seq: u64,
    /// The threads that were written to, where the frames name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
}

impl Client {
    /// Begins to write a stream of frames that say which thread and run each belongs to.
    pub fn upload(&self) -> Upload {
        Upload::new(self, self.http.target().segment("v1"))
    }
}

impl Upload {
    pub(super) fn new(client: &Client, target: Target) -> Self {
        Self {
            client: client.clone(),
            target: target.segment("events"),
            framing: Framing::Ndjson,
            dialect: None,
            thread: None,
            end: false,
            parallel: false,
            producer: None,
        }
    }

    /// Sets how frames are cut; one a line without it.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Names the dialect; the server finds out from the first frames without it.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Names the thread of a run that this creates.
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Ends the run where the bytes end.
    pub fn end(mut self, end: bool) -> Self {
        self.end = end;
        self
    }

    /// Lets a thread that this creates have several runs at once.
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// Says who writes, in which incarnation, and the index of the first frame: nothing is written twice then.
    pub fn producer(mut self, id: impl Into<String>, epoch: Option<u64>, seq: Option<u64>) -> Self {
        self.producer = Some((id.into(), epoch, seq));
        self
    }

    /// Sends the bytes and waits until all of them are on disk, or one frame is refused.
    ///
    /// A stream that ends in an error breaks the request off: what is whole is written, and nothing is ended.
    pub async fn send<S, E>(self, bytes: S) -> Result<Written, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BodyError> + 'static,
    {
        let target = self
            .target
            .parameter_if("dialect", self.dialect.map(Dialect::name))
            .parameter_if("thread", self.thread)
            .flag("end", self.end)
            .flag("parallel", self.parallel);
        let headers = headers(self.framing, self.producer)?;
        let body = body_of(StreamBody::new(bytes.map_ok(Frame::data)));
        let response = self.client.http.send(Method::POST, &target, headers, body).await?;
        self.client.http.json(response).await
    }
}

fn headers(
    framing: Framing,
    producer: Option<(String, Option<u64>, Option<u64>)>,
) -> Result<HeaderMap, Error> {
    let media = match framing {
        Framing::Ndjson => "application/x-ndjson",
        Framing::Sse => "text/event-stream",
        Framing::Json => "application/json",
    };
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
    if let Some((id, epoch, seq)) = producer {
        let written = HeaderValue::from_str(&id).map_err(|_| Error::Producer(id))?;
        headers.insert(HeaderName::from_static("producer-id"), written);
        for (name, number) in [("producer-epoch", epoch), ("producer-seq", seq)] {
            if let Some(number) = number {
                headers.insert(HeaderName::from_static(name), number.into());
            }
        }
    }
    Ok(headers)
}
