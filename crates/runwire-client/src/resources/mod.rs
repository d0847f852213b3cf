//! Single requests: runs, threads, interactions, agents, uploads, exports.

mod agents;
mod info;
mod interactions;
mod lists;
mod producer_writer;
mod records;
mod requests;
mod run;
mod thread;
mod upload;

pub use agents::AgentInfo;
pub use info::{
    Heartbeat, InteractionInfo, LatestRun, Messages, RunCounts, RunError, RunInfo, RunStatus, ThreadInfo,
    Usage, Warning, Warnings,
};
pub use interactions::{FieldProblem, GivenAnswer, Interaction, InteractionFilter, InteractionPage};
pub use lists::{ListStream, RunPage, ThreadPage};
pub use producer_writer::{EncodedFrames, ProducerWriter};
pub use records::{Imported, ThreadExport};
pub use requests::{Answer, NewRun, NewThread, RunFilter};
pub use run::RunHandle;
pub use thread::ThreadHandle;
pub use upload::{Upload, UploadReceipt};

use serde_json::Value;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Returns the handle of a run; sends nothing.
    pub fn run(&self, id: impl Into<String>) -> RunHandle {
        RunHandle { client: self.clone(), id: id.into() }
    }

    /// Returns the handle of a thread; sends nothing.
    pub fn thread(&self, id: impl Into<String>) -> ThreadHandle {
        ThreadHandle { client: self.clone(), id: id.into() }
    }

    /// Creates a run; with an agent, the server starts it.
    pub async fn create_run(&self, run: &NewRun) -> Result<RunInfo, Error> {
        self.http.post_json(&self.http.endpoint().segment("v1").segment("runs"), run).await
    }

    /// Creates a thread.
    pub async fn create_thread(&self, thread: &NewThread) -> Result<ThreadInfo, Error> {
        self.http.post_json(&self.http.endpoint().segment("v1").segment("threads"), thread).await
    }

    /// Checks that the server can read and write its store.
    pub async fn ready(&self) -> Result<(), Error> {
        self.http.get_json::<Value>(&self.http.endpoint().segment("readyz")).await.map(drop)
    }

    /// Returns the server's version.
    pub async fn server_version(&self) -> Result<String, Error> {
        let description: Value = self.http.get_json(&self.http.endpoint().segment("openapi.json")).await?;
        let is_ours = description.pointer("/info/title").and_then(Value::as_str) == Some("Runwire");
        match description.pointer("/info/version").and_then(Value::as_str) {
            Some(version) if is_ours => Ok(version.to_owned()),
            _ => Err(self.http.protocol_error("its description is not Runwire's")),
        }
    }
}
