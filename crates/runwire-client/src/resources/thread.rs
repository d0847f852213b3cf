//! One thread: read its runs, look at it, delete it.

use http::Method;
use http::header::HeaderMap;
use runwire_model::dialect::Dialect;

use super::info::{Messages, ThreadInfo};
use super::run::page;
use super::upload::Upload;
use crate::client::Client;
use crate::error::Error;
use crate::http::Target;
use crate::read::{AsTheyCome, Canonical, Cursor, Events, Frames, Page, Place, Reading};

/// A thread of a server. Cheap to clone; whether there is such a thread is found out when something is asked of it.
#[derive(Debug, Clone)]
pub struct ThreadHandle {
    pub(crate) client: Client,
    pub(crate) id: String,
}

impl ThreadHandle {
    /// Tells the thread's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the events of all runs, one after the other; the stream goes on with the next run.
    pub fn events(&self) -> Events {
        Reading::new(&self.client, self.place(), Dialect::Runwire, Canonical::default())
    }

    /// Reads all runs as frames of a dialect, which are handed on as they come.
    pub fn frames(&self, dialect: Dialect) -> Frames {
        Reading::new(&self.client, self.place(), dialect, AsTheyCome)
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

    /// Tells how the thread stands.
    pub async fn info(&self) -> Result<ThreadInfo, Error> {
        self.client.http.get_json(&self.target()).await
    }

    /// Gives what people said and one message for each run: of the newest runs, or those before a run.
    pub async fn messages(&self, before: Option<&str>, limit: Option<u32>) -> Result<Messages, Error> {
        let target = self.target().segment("messages");
        self.client.http.get_json(&target.parameter_if("before", before).parameter_if("limit", limit)).await
    }

    /// Deletes the thread and everything of it. With `force`, a run that is open is cancelled; else it refuses.
    pub async fn delete(&self, force: bool) -> Result<(), Error> {
        let target = self.target().flag("force", force);
        let response = self.client.http.ask(Method::DELETE, &target, HeaderMap::new()).await?;
        if response.status().is_success() { Ok(()) } else { Err(self.client.http.refusal(response).await) }
    }

    /// Begins to write a stream of frames that say which run each belongs to.
    pub fn upload(&self) -> Upload {
        Upload::new(&self.client, self.target())
    }

    fn place(&self) -> Place {
        Place::Thread(self.id.clone())
    }

    pub(super) fn target(&self) -> Target {
        self.place().target(&self.client.http)
    }
}
