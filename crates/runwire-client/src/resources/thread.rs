//! The handle of a thread: streams, pages, info, messages, delete.

use http::Method;
use http::header::HeaderMap;
use runwire_model::dialect::Dialect;

use super::info::{Messages, ThreadInfo};
use super::run::page;
use super::upload::Upload;
use crate::client::Client;
use crate::error::Error;
use crate::http::Endpoint;
use crate::read::{
    CanonicalEvents, Cursor, EventStream, FramePage, FrameStream, PassThrough, Resource, RunStream,
};

/// The handle of a thread. Cheap to clone; requests fail if the thread does not exist.
#[derive(Debug, Clone)]
pub struct ThreadHandle {
    pub(crate) client: Client,
    pub(crate) id: String,
}

impl ThreadHandle {
    /// Returns the thread's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the events of all runs; the stream waits for the next run.
    pub fn events(&self) -> EventStream {
        RunStream::new(&self.client, self.resource(), Dialect::Runwire, CanonicalEvents::default())
    }

    /// Reads all runs as frames of a dialect.
    pub fn frames(&self, dialect: Dialect) -> FrameStream {
        RunStream::new(&self.client, self.resource(), dialect, PassThrough)
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

    /// Returns the thread's info.
    pub async fn info(&self) -> Result<ThreadInfo, Error> {
        self.client.http.get_json(&self.endpoint()).await
    }

    /// Returns the messages of people and one message for each run: of the newest runs, or those before a run.
    pub async fn messages(&self, before: Option<&str>, limit: Option<u32>) -> Result<Messages, Error> {
        let endpoint = self.endpoint().segment("messages");
        self.client.http.get_json(&endpoint.parameter_if("before", before).parameter_if("limit", limit)).await
    }

    /// Deletes the thread and its runs. An open run is cancelled with `force`; else it is an error.
    pub async fn delete(&self, force: bool) -> Result<(), Error> {
        let endpoint = self.endpoint().flag("force", force);
        let response = self.client.http.request(Method::DELETE, &endpoint, HeaderMap::new()).await?;
        if response.status().is_success() { Ok(()) } else { Err(self.client.http.refusal(response).await) }
    }

    /// Builds an upload of frames that name their run.
    pub fn upload(&self) -> Upload {
        Upload::new(&self.client, self.endpoint())
    }

    fn resource(&self) -> Resource {
        Resource::Thread(self.id.clone())
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        self.resource().endpoint(&self.client.http)
    }
}
