//! One run: read it, look at it, act on it.

use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use super::info::{Beat, RunInfo};
use super::upload::Upload;
use crate::client::Client;
use crate::error::Error;
use crate::http::Target;
use crate::read::{
    AsTheyCome, Canonical, Cursor, Events, Frames, MessageStates, Page, Place, Reading, TextAlone, Texts,
};

/// A run of a server. Cheap to clone; whether there is such a run is found out when something is asked of it.
#[derive(Debug, Clone)]
pub struct RunHandle {
    pub(crate) client: Client,
    pub(crate) id: String,
}

impl RunHandle {
    /// Tells the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the run's events, from its start to its end.
    pub fn events(&self) -> Events {
        Reading::new(&self.client, self.place(), Dialect::Runwire, Canonical::default())
    }

    /// Reads the run as frames of a dialect, which are handed on as they come.
    pub fn frames(&self, dialect: Dialect) -> Frames {
        Reading::new(&self.client, self.place(), dialect, AsTheyCome)
    }

    /// Reads the answer's text alone, piece by piece.
    pub fn text(&self) -> Texts {
        Reading::new(&self.client, self.place(), Dialect::Text, TextAlone)
    }

    /// Reads the run's message as it grows.
    pub fn message_states(&self) -> MessageStates {
        MessageStates::new(&self.id, self.events())
    }

    /// Gives the run's message as the server folds it now.
    pub async fn message(&self) -> Result<Value, Error> {
        self.client.http.get_json(&self.target().segment("message")).await
    }

    /// Reads a page of frames of a dialect; 100 of them without a limit, and at most 1,000.
    pub async fn page(
        &self,
        dialect: Dialect,
        after: Option<Cursor>,
        limit: Option<u32>,
    ) -> Result<Page, Error> {
        page(&self.client, self.target(), dialect, after, limit).await
    }

    /// Tells how the run stands.
    pub async fn info(&self) -> Result<RunInfo, Error> {
        self.client.http.get_json(&self.target()).await
    }

    /// Asks the run to stop. One that has ended is told as it is.
    pub async fn cancel(&self, reason: Option<&str>) -> Result<RunInfo, Error> {
        let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
        self.client.http.post_json(&self.target().segment("cancel"), &body).await
    }

    /// Starts the same agent on the same input as a new run.
    pub async fn retry(&self) -> Result<RunInfo, Error> {
        self.client.http.post_json(&self.target().segment("retry"), &json!({})).await
    }

    /// Keeps the run's lease, and tells whether somebody asked it to stop.
    pub async fn heartbeat(&self) -> Result<Beat, Error> {
        self.client.http.post_json(&self.target().segment("heartbeat"), &json!({})).await
    }

    /// Begins to write a stream of frames to the run, which is created if there is none.
    pub fn upload(&self) -> Upload {
        Upload::new(&self.client, self.target())
    }

    fn place(&self) -> Place {
        Place::Run(self.id.clone())
    }

    pub(crate) fn target(&self) -> Target {
        self.place().target(&self.client.http)
    }
}

pub(super) async fn page(
    client: &Client,
    target: Target,
    dialect: Dialect,
    after: Option<Cursor>,
    limit: Option<u32>,
) -> Result<Page, Error> {
    let target = target
        .segment("events")
        .parameter("dialect", dialect.name())
        .parameter_if("after", after)
        .parameter_if("limit", limit);
    client.http.get_page(&target).await
}
