//! Upload of a stream of encoded frames in one request.

use bytes::Bytes;
use futures_core::Stream;
use futures_util::TryStreamExt;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use runwire_model::dialect::Dialect;
use runwire_model::framing::Framing;
use runwire_producer::Stamp;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::Error;
use crate::http::{BodyError, Endpoint, RequestBody, boxed_body};

/// Uploads encoded frames in any dialect and framing.
///
/// Each frame is durable and visible as it arrives; the response comes when the bytes end. Nothing is retried: see
/// [`Upload::into_producer`] for that.
#[derive(Debug, Clone)]
#[must_use = "nothing is written until it is sent"]
pub struct Upload {
    client: Client,
    endpoint: Endpoint,
    framing: Framing,
    dialect: Option<Dialect>,
    thread: Option<String>,
    end: bool,
    parallel: bool,
    producer: Option<(String, Option<u64>, Option<u64>)>,
}

/// The result of an upload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UploadReceipt {
    /// Frames written.
    #[serde(default)]
    pub accepted: u64,
    /// Frames that were written before.
    #[serde(default)]
    pub duplicates: u64,
    /// `seq` of the newest record.
    #[serde(default)]
    pub last_seq: u64,
    /// The threads written to, if the frames name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
}

impl Client {
    /// Builds an upload of frames that name their thread and run.
    pub fn upload(&self) -> Upload {
        Upload::new(self, self.http.endpoint().segment("v1"))
    }
}

impl Upload {
    pub(super) fn new(client: &Client, endpoint: Endpoint) -> Self {
        Self {
            client: client.clone(),
            endpoint: endpoint.segment("events"),
            framing: Framing::Ndjson,
            dialect: None,
            thread: None,
            end: false,
            parallel: false,
            producer: None,
        }
    }

    /// Sets the framing; default NDJSON.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sets the dialect; by default the server detects it from the first frames.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets the thread of a new run.
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Ends the run after the last frame.
    pub fn end(mut self, end: bool) -> Self {
        self.end = end;
        self
    }

    /// Allows a new thread to have several open runs at once.
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// Sets the producer's id, epoch and the sequence of the first frame, so that the server drops duplicates.
    pub fn producer(mut self, id: impl Into<String>, epoch: Option<u64>, seq: Option<u64>) -> Self {
        self.producer = Some((id.into(), epoch, seq));
        self
    }

    /// Sends the bytes and waits until all frames are durable, or one is refused.
    ///
    /// A stream that ends in an error aborts the request: complete frames are written, and the run is not ended.
    pub async fn send<S, E>(self, bytes: S) -> Result<UploadReceipt, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BodyError> + 'static,
    {
        let body = boxed_body(StreamBody::new(bytes.map_ok(Frame::data)));
        let producer = self.producer.as_ref().map(|(id, epoch, seq)| (id.as_str(), *epoch, *seq));
        self.request(producer, body, self.end).await
    }

    /// Sends a batch of a producer once.
    pub(super) async fn post(&self, stamp: &Stamp, body: Bytes, end: bool) -> Result<UploadReceipt, Error> {
        let producer = (&*stamp.producer, Some(stamp.epoch), Some(stamp.index));
        self.request(Some(producer), boxed_body(Full::new(body)), end).await
    }

    async fn request(
        &self,
        producer: Option<(&str, Option<u64>, Option<u64>)>,
        body: RequestBody,
        end: bool,
    ) -> Result<UploadReceipt, Error> {
        let endpoint = self.endpoint.clone();
        let endpoint = endpoint
            .parameter_if("dialect", self.dialect.map(Dialect::name))
            .parameter_if("thread", self.thread.as_deref())
            .flag("end", end)
            .flag("parallel", self.parallel);
        let headers = headers(self.framing, producer)?;
        let response = self.client.http.send(Method::POST, &endpoint, headers, body).await?;
        self.client.http.json(response).await
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = Some(dialect);
    }

    pub(super) fn dialect_name(&self) -> Option<Dialect> {
        self.dialect
    }
}

fn headers(framing: Framing, producer: Option<(&str, Option<u64>, Option<u64>)>) -> Result<HeaderMap, Error> {
    let media = match framing {
        Framing::Ndjson => "application/x-ndjson",
        Framing::Sse => "text/event-stream",
        Framing::Json => "application/json",
    };
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
    if let Some((id, epoch, seq)) = producer {
        let written = HeaderValue::from_str(id).map_err(|_| Error::Producer(id.to_owned()))?;
        headers.insert(HeaderName::from_static("producer-id"), written);
        for (name, number) in [("producer-epoch", epoch), ("producer-seq", seq)] {
            if let Some(number) = number {
                headers.insert(HeaderName::from_static(name), number.into());
            }
        }
    }
    Ok(headers)
}
