//! Lists of runs and threads, as pages or as streams.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::stream::{self, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::info::{RunInfo, ThreadInfo};
use super::requests::RunFilter;
use crate::client::Client;
use crate::error::Error;

/// A stream over all pages of a list.
pub type ListStream<T> = Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>;

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunInfo>,
    /// The [`RunFilter::before`] of the next page; `None` at the end.
    #[serde(default)]
    pub next: Option<String>,
}

/// A page of threads, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadInfo>,
    /// The `before` of the next page; `None` at the end.
    #[serde(default)]
    pub next: Option<String>,
}

impl Client {
    /// Lists a page of runs.
    pub async fn runs(&self, filter: &RunFilter) -> Result<RunPage, Error> {
        let endpoint = self.http.endpoint().segment("v1").segment("runs");
        let endpoint = endpoint
            .parameter_if("status", filter.status.as_ref())
            .parameter_if("agent", filter.agent.as_ref())
            .parameter_if("thread", filter.thread.as_ref())
            .parameter_if("before", filter.before.as_ref())
            .parameter_if("limit", filter.limit);
        self.http.get_json(&endpoint).await
    }

    /// Lists all runs, page after page.
    pub fn all_runs(&self, filter: RunFilter) -> ListStream<RunInfo> {
        let client = self.clone();
        let pages = stream::try_unfold(Some(filter), move |filter| {
            let client = client.clone();
            async move {
                let Some(mut filter) = filter else { return Ok::<_, Error>(None) };
                let page = client.runs(&filter).await?;
                let next = page.next.map(|next| {
                    filter.before = Some(next);
                    filter
                });
                Ok(Some((stream::iter(page.runs.into_iter().map(Ok)), next)))
            }
        });
        Box::pin(pages.try_flatten())
    }

    /// Lists a page of threads: the newest, or those before one.
    pub async fn threads(&self, before: Option<&str>, limit: Option<u32>) -> Result<ThreadPage, Error> {
        let endpoint = self.http.endpoint().segment("v1").segment("threads");
        let endpoint = endpoint.parameter_if("before", before).parameter_if("limit", limit);
        self.http.get_json(&endpoint).await
    }

    /// Lists all threads, page after page.
    pub fn all_threads(&self) -> ListStream<ThreadInfo> {
        let client = self.clone();
        let pages = stream::try_unfold(Some(None::<String>), move |before| {
            let client = client.clone();
            async move {
                let Some(before) = before else { return Ok::<_, Error>(None) };
                let page = client.threads(before.as_deref(), None).await?;
                let next = page.next.map(Some);
                Ok(Some((stream::iter(page.threads.into_iter().map(Ok)), next)))
            }
        });
        Box::pin(pages.try_flatten())
    }
}
