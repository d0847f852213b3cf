//! Runs and threads: make them, look at them, act on them.

mod agents;
mod info;
mod interactions;
mod lists;
mod records;
mod run;
mod thread;
mod upload;
mod words;

pub use agents::AgentInfo;
pub use info::{
    Beat, Counts, InteractionInfo, LatestRun, Messages, RunError, RunInfo, RunStatus, ThreadInfo, Usage,
    Warning, Warnings,
};
pub use interactions::{GivenAnswer, Interaction, InteractionFilter, InteractionPage, WrongField};
pub use lists::{ListStream, RunPage, ThreadPage};
pub use records::{Imported, Records};
pub use run::RunHandle;
pub use thread::ThreadHandle;
pub use upload::{Upload, Written};
pub use words::{Answer, NewRun, NewThread, RunFilter};

use serde_json::Value;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Names a run.
    pub fn run(&self, id: impl Into<String>) -> RunHandle {
        RunHandle { client: self.clone(), id: id.into() }
    }

    /// Names a thread.
    pub fn thread(&self, id: impl Into<String>) -> ThreadHandle {
        ThreadHandle { client: self.clone(), id: id.into() }
    }

    /// Creates a run; with an agent, the server starts it.
    pub async fn create_run(&self, run: &NewRun) -> Result<RunInfo, Error> {
        self.http.post_json(&self.http.target().segment("v1").segment("runs"), run).await
    }

    /// Creates a thread.
    pub async fn create_thread(&self, thread: &NewThread) -> Result<ThreadInfo, Error> {
        self.http.post_json(&self.http.target().segment("v1").segment("threads"), thread).await
    }

    /// Asks whether the server can read and write its store.
    pub async fn ready(&self) -> Result<(), Error> {
        self.http.get_json::<Value>(&self.http.target().segment("readyz")).await.map(drop)
    }

    /// Asks for the server's version.
    pub async fn server_version(&self) -> Result<String, Error> {
        let description: Value = self.http.get_json(&self.http.target().segment("openapi.json")).await?;
        let is_ours = description.pointer("/info/title").and_then(Value::as_str) == Some("Runwire");
        match description.pointer("/info/version").and_then(Value::as_str) {
            Some(version) if is_ours => Ok(version.to_owned()),
            _ => Err(self.http.strange("its description is not Runwire's")),
        }
    }
}
