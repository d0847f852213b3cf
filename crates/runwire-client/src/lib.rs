//! Runwire's Rust SDK: read any run as it grows, and write the run of an agent.
//!
//! # Reading
//!
//! A run is a stream. It starts at any cursor, ends with the run, and resumes after the last delivered item when a
//! connection breaks or the server restarts: nothing is lost, nothing is delivered twice.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use runwire_client::{Body, Client};
//!
//! # async fn read() -> Result<(), runwire_client::Error> {
//! let client = Client::from_env()?; // RUNWIRE_URL, RUNWIRE_TOKEN; else a server on this machine
//! let mut events = client.run("r1").events();
//! while let Some(event) = events.try_next().await? {
//!     match &event.body {
//!         Body::TextDelta(delta) => print!("{}", delta.content),
//!         Body::ToolCalled(call) => println!("[{}]", call.name),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Only the text, as of Agio's `arun`; a run in another dialect; the message that a front end shows, as it grows; all
//! runs of a thread:
//!
//! ```no_run
//! # use futures_util::TryStreamExt;
//! # use runwire_client::{Client, Dialect, Transport};
//! # async fn read(client: Client) -> Result<(), runwire_client::Error> {
//! let run = client.run("r1");
//! let text: String = run.text().try_collect().await?;
//! let mut frames = run.frames(Dialect::AgUi).transport(Transport::WebSocket);
//! let mut states = run.message_states();
//! while let Some(state) = states.try_next().await? {
//!     println!("{} calls, {} letters", state.tool_calls.len(), state.main_content.len());
//! }
//! let mut thread = client.thread("t1").events().after("12-0".parse().unwrap());
//! # Ok(())
//! # }
//! ```
//!
//! [`RunStream::next_update`] also reports when a stream has caught up and when it was interrupted.
//!
//! # Retries
//!
//! Streams retry temporary errors: a connection that is refused, breaks, or is idle for 45 s, and the statuses 408,
//! 425, 429, 500, 502, 503 and 504. The delay between attempts doubles up to 5 s; progress resets it. A stream gives up
//! after 3 attempts until its first connection succeeds, and never after that. All of it can be set on the
//! [`ClientBuilder`]. Any other [`Error`] is the stream's last item. Single requests are not retried.
//!
//! # Single requests
//!
//! ```no_run
//! # use runwire_client::{Client, NewRun, RunFilter, RunStatus};
//! # async fn ask(client: Client) -> Result<(), runwire_client::Error> {
//! let run = client.create_run(&NewRun { agent: Some("demo".into()), ..NewRun::default() }).await?;
//! let open = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
//! println!("{} of them run", client.runs(&open).await?.runs.len());
//! client.run(run.run_id).cancel(Some("no longer needed")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Writing
//!
//! An agent writes with a [`StreamingEngine`]; see [`mod@write`].
#![forbid(unsafe_code)]

mod attempts;
mod client;
mod error;
mod http;
mod problem;
mod read;
mod resources;
pub mod write;

pub use client::{Client, ClientBuilder};
pub use error::Error;
pub use http::{BaseUrl, UrlError};
pub use problem::Problem;
pub use read::{
    CanonicalEvents, Cursor, CursorError, EventStream, FrameDecoder, FramePage, FrameStream, MessageStates,
    PageFrame, PassThrough, ReceivedEvent, ReceivedFrame, RunStream, StreamUpdate, TextOnly, TextStream,
    Transport,
};
pub use resources::{
    AgentInfo, Answer, EncodedFrames, FieldProblem, GivenAnswer, Heartbeat, Imported, Interaction,
    InteractionFilter, InteractionInfo, InteractionPage, LatestRun, ListStream, Messages, NewRun, NewThread,
    ProducerWriter, RunCounts, RunError, RunFilter, RunHandle, RunInfo, RunPage, RunStatus, ThreadExport,
    ThreadHandle, ThreadInfo, ThreadPage, Upload, UploadReceipt, Usage, Warning, Warnings,
};
pub use runwire_model as model;
pub use runwire_model::dialect::{Dialect, Slots};
pub use runwire_model::event::{Body, Decision, Event};
pub use runwire_model::fold::MessageState;
pub use runwire_model::framing::Framing;
pub use runwire_model::{ErrorCode, Json, Timestamp};
pub use runwire_producer::{Producer, WriteError};
pub use write::StreamingEngine;
