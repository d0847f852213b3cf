//! The handle of a run: streams, pages, info, cancel, retry, heartbeat.

use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use super::info::{Heartbeat, RunInfo};
use super::upload::Upload;
use crate::client::Client;
use crate::error::Error;
use crate::http::Endpoint;
use crate::read::{
    CanonicalEvents, Cursor, EventStream, FramePage, FrameStream, MessageStates, PassThrough, Resource,
    RunStream, TextOnly, TextStream,
};

/// The handle of a run. Cheap to clone; requests fail if the run does not exist.
#[derive(Debug, Clone)]
pub struct RunHandle {
    pub(crate) client: Client,
    pub(crate) id: String,
}

impl RunHandle {
    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the run's events, from its start to its end.
    pub fn events(&self) -> EventStream {
        RunStream::new(&self.client, self.resource(), Dialect::Runwire, CanonicalEvents::default())
    }

    /// Reads the run as frames of a dialect.
    pub fn frames(&self, dialect: Dialect) -> FrameStream {
        RunStream::new(&self.client, self.resource(), dialect, PassThrough)
    }

    /// Reads only the answer's text, piece by piece.
    pub fn text(&self) -> TextStream {
        RunStream::new(&self.client, self.resource(), Dialect::Text, TextOnly)
    }

    /// Reads the run's message state as it grows.
    pub fn message_states(&self) -> MessageStates {
        MessageStates::new(&self.id, self.events())
    }

    /// Returns the run's current message, folded by the server.
    pub async fn message(&self) -> Result<Value, Error> {
        self.client.http.get_json(&self.endpoint().segment("message")).await
    }

    /// Reads a page of frames of a dialect; the default limit is 100, the largest 1,000.
    pub async fn page(
        &self,
        dialect: Dialect,
        after: Option<Cursor>,
        limit: Option<u32>,
    ) -> Result<FramePage, Error> {
        page(&self.client, self.endpoint(), dialect, after, limit).await
    }

    /// Returns the run's info.
    pub async fn info(&self) -> Result<RunInfo, Error> {
        self.client.http.get_json(&self.endpoint()).await
    }

    /// Requests the run's cancellation. Returns a run that has ended unchanged.
    pub async fn cancel(&self, reason: Option<&str>) -> Result<RunInfo, Error> {
        let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
        self.client.http.post_json(&self.endpoint().segment("cancel"), &body).await
    }

    /// Starts a new run with the same agent and input.
    pub async fn retry(&self) -> Result<RunInfo, Error> {
        self.client.http.post_json(&self.endpoint().segment("retry"), &json!({})).await
    }

    /// Renews the run's lease, and returns whether its cancellation was requested.
    pub async fn heartbeat(&self) -> Result<Heartbeat, Error> {
        self.client.http.post_json(&self.endpoint().segment("heartbeat"), &json!({})).await
    }

    /// Builds an upload of frames to the run, which is created if it does not exist.
    pub fn upload(&self) -> Upload {
        Upload::new(&self.client, self.endpoint())
    }

    fn resource(&self) -> Resource {
        Resource::Run(self.id.clone())
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.resource().endpoint(&self.client.http)
    }
}

pub(super) async fn page(
    client: &Client,
    endpoint: Endpoint,
    dialect: Dialect,
    after: Option<Cursor>,
    limit: Option<u32>,
) -> Result<FramePage, Error> {
    let endpoint = endpoint
        .segment("events")
        .parameter("dialect", dialect.name())
        .parameter_if("after", after)
        .parameter_if("limit", limit);
    client.http.get_page(&endpoint).await
}
